"""What the agents are told: one Markdown (jinja2) template per role and the world sheet."""

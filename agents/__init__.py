"""Who decides: the loop, the planner, slow, fast and critic agents, the LLM client, the rule-based model.

Knows neither SQL nor stable-baselines3; it sees the folded history and answers with the next step.
"""

"""Episodes that are played to measure something: trials, evaluations, and the evidence they leave."""

"""Coded actions inside the policy's action space: slots, priors, and the ticker that runs them in worlds.

Training, evaluation and trials share the ticker. Nothing here learns (`training/ppo`) and nothing here
executes generated code (`training/host`).
"""

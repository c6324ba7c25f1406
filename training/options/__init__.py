"""Coded actions inside the policy's action space: slots, priors, and the runner that runs them in worlds.

Training, evaluation and trials share the runner. Nothing here learns (`training/ppo`) and nothing here
executes generated code (`training/host`).
"""

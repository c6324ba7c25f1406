"""What learns and what runs: worker, supervisor, worlds, action host, options, PPO, evaluation.

No textual here.
"""

"""PPO over primitives and options on stable-baselines3: policy, buffer, algorithm, self-imitation, `train`.

Results are plain dataclasses; the worker turns them into rows. No SQL and no agents here, but for the
configuration they write (`agents.contracts`).
"""

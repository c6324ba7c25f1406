"""Kitchen: the Franka kitchen of gymnasium-robotics with end-effector primitives, randomised starts and blind tasks.

`names`, `view`, `library`, `host_side` and `frame` use the standard library only; `model`, `arm`, `env`, `features`
and `world` need the extra `rlgpt[kitchen]`. See docs/kitchen.md.
"""

"""The arms of an experiment, enforced on every plan whatever the slow agent answered. Pure.

`rlgpt` is the whole method. `code`: every sub-action is coded and the plan itself acts, PPO never runs. `rl`: no
sub-action is coded, PPO learns on primitives alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rlgpt.agents.contracts import Executor
from rlgpt.agents.enforce import Enforced
from rlgpt.store.history import Item

MODES = {"code": "code", "rl": "rl"}
EXECUTORS: dict[str, Executor] = {"code": "sequence", "rl": "policy"}


def confined(arm: str, executor: Executor, plan: Enforced) -> tuple[Executor, Enforced]:
    """(executor, items) of the arm; what the plan wanted otherwise is kept in `attempted`."""
    if arm not in MODES:
        return executor, plan
    mode = MODES[arm]
    attempted: dict[str, dict[str, Any]] = {name: dict(asked) for name, asked in plan.attempted.items()}
    items: list[Item] = []
    for item in plan.items:
        if item.mode != mode:
            attempted.setdefault(item.name, {}).setdefault("mode", item.mode)
            item = replace(item, mode=mode, author="loop")
        items.append(item)
    return EXECUTORS[arm], Enforced(items, attempted)

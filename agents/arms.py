"""Enforces an experiment's arm on every plan of the slow agent. Pure.

`rlgpt` is the whole method. `code`: every sub-action is coded and the plan itself acts, PPO never runs. `rl`: no
sub-action is coded, PPO learns on primitives alone. Beside that, single sub-actions may be left without code.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from rlgpt.agents.contracts import Executor
from rlgpt.agents.enforce import Enforced
from rlgpt.store.history import Item

MODES = {"code": "code", "rl": "rl"}
EXECUTORS: dict[str, Executor] = {"code": "sequence", "rl": "policy"}


def confined(
    arm: str, executor: Executor, plan: Enforced, uncoded: Collection[str] = ()
) -> tuple[Executor, Enforced]:  # fmt: skip
    """(executor, items) of the arm; what the plan wanted otherwise is kept in `attempted`. The items named in `uncoded`
    are not coded in any arm."""
    if arm not in MODES and not uncoded:
        return executor, plan
    attempted: dict[str, dict[str, Any]] = {name: dict(asked) for name, asked in plan.attempted.items()}
    items: list[Item] = []
    for item in plan.items:
        mode = "rl" if item.name in uncoded else MODES.get(arm, item.mode)
        if item.is_option and mode != "option":
            attempted.setdefault(item.name, {}).setdefault("dropped", "an option is code that a policy calls")
            continue
        if item.trigger and mode == "rl":
            attempted.setdefault(item.name, {}).setdefault("dropped", "a guard is code")
            continue
        if item.mode != mode:
            attempted.setdefault(item.name, {}).setdefault("mode", item.mode)
            item = replace(item, mode=mode, author="loop")
        items.append(item)
    return EXECUTORS.get(arm, executor), Enforced(items, attempted)

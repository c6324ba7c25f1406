"""Questions to the rule-based model about a bakery, for tests of its answers."""

from __future__ import annotations

from typing import Any

from rlgpt.agents.context import Context
from rlgpt.agents.contracts import PlanReply
from tests.agents.histories import Told, context
from tests.agents.toys import BREAD, bakery


def where(told: Told | None = None, sheet: dict[str, Any] | None = None, **fields: Any) -> Context:
    return context(told or Told().iteration(), sheet or bakery(), fields.pop("task", BREAD), **fields)


def shape(plan: PlanReply) -> dict[str, str]:
    return {item.name: item.mode for item in plan.sub_actions}


FIRST = {"get_flour": "code", "make_dough": "code", "build_oven": "rl", "make_bread": "code"}


def accepted_plan(executor: str = "sequence", **modes: str) -> Told:
    """Iteration 0 with every coded sub-action accepted."""
    told = Told().iteration().plan(executor, **(FIRST | modes))
    for name, mode in (FIRST | modes).items():
        if mode == "code":
            told.code(name).trial(name)
    return told

"""The order of sub-tasks that stands, whatever the planner answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from rlgpt.agents import loop
from rlgpt.agents.contracts import TaskPlanReply
from rlgpt.training.steps import planning


def standing(*names: str) -> Sequence[str]:
    sub_tasks = [{"task": name, "goal": "g", "reason": "r"} for name in names]
    reply = TaskPlanReply.model_validate({"sub_tasks": sub_tasks, "reason": "so"})
    rows: list[Any] = []

    @contextmanager
    def transaction(durable: bool) -> Iterator[Any]:
        yield SimpleNamespace(add=rows.append)

    runtime: Any = SimpleNamespace(
        history=SimpleNamespace(task_plans=[], sub_task=0),
        ask=lambda call: reply,
        world=SimpleNamespace(tasks={name: SimpleNamespace(prompt=name) for name in ("wood", "stone", "all")}),
        session_task="all",
        writer=SimpleNamespace(transaction=transaction),
    )
    planning.plan_tasks(runtime, loop.PlanTasks())
    return [sub_task["task"] for sub_task in rows[0].sub_tasks]


@pytest.mark.parametrize("named", ["wood stone all", "wood stone", "wood all stone", "all wood stone"])
def test_the_sessions_own_task_comes_last_and_once(named: str) -> None:
    assert standing(*named.split()) == ["wood", "stone", "all"]

"""The bound on an iteration's calls, against the loop itself."""

from __future__ import annotations

import typing

import pytest

from rlgpt.agents.contracts import PlanReply
from rlgpt.agents.loop import (
    Code,
    Configure,
    Evaluate,
    JudgeItem,
    JudgeIteration,
    Limits,
    Plan,
    Train,
    Trial,
    next_step,
)
from rlgpt.store.calls import LARGEST_PLAN, most_calls, usual_calls

from .histories import Told


def worst(limits: Limits, size: int) -> int:
    """Calls of one iteration whose every plan is new and whose every attempt fails."""
    told, calls = Told().iteration(), 0
    for _ in range(10_000):
        step = next_step(told.history, limits)
        calls += isinstance(step, Plan | Code | JudgeItem | Configure | JudgeIteration)
        match step:
            case Plan():
                depth = told.history.plan.depth + 1 if told.history.plan else 0
                told.plan("policy", depth, **{f"try{depth}_{n}": "code" for n in range(size)})
            case Code(item=name, draft=draft):
                told.code(name, draft=draft)
            case Trial(item=name):
                told.trial(name, 0)
            case JudgeItem(item=name, version=version):
                told.verdict(name, version=version)
            case Configure():
                told.config()
            case Train():
                told.train()
            case Evaluate(variant=variant, first=first, episodes=episodes):
                run = len(told.history.runs)
                told.evaluate(0, episodes, variant=variant, first=first, run=run)
            case JudgeIteration():
                return calls
            case _:
                raise AssertionError(step)
    raise AssertionError("the iteration never ends")


@pytest.mark.parametrize("critic", ["model", "none"])
@pytest.mark.parametrize("candidates", [1, 3])
@pytest.mark.parametrize(("inner", "depth", "size"), [(3, 2, 3), (1, 0, 1), (2, 1, 5), (5, 3, 2)])
def test_the_most_calls_of_an_iteration_are_those_of_the_loop(
    critic: typing.Literal["model", "none"], candidates: int, inner: int, depth: int, size: int
) -> None:
    limits = Limits(inner=inner, depth=depth, critic=critic, candidates=candidates)
    assert worst(limits, size) == most_calls(inner, depth, critic, size, candidates)
    assert usual_calls(inner, critic, candidates) < most_calls(inner, depth, critic, candidates=candidates)


def test_a_plan_cannot_be_larger_than_the_bound_takes_it() -> None:
    (length,) = [m for m in PlanReply.model_fields["sub_actions"].metadata if hasattr(m, "max_length")]
    assert length.max_length == LARGEST_PLAN

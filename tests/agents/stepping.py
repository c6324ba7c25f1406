"""The next step after a history, and the histories that tests of the loop begin with."""

from __future__ import annotations

from typing import Any

from rlgpt.agents.loop import (
    Limits,
    Step,
    next_step,
)
from tests.agents.histories import Told

LIMITS = Limits(iterations=2, inner=2, depth=2, target=0.9, dev_first=20, dev_more=30, test_episodes=100)


def step(told: Told, over_budget: str = "", **limits: Any) -> Step:
    return next_step(told.history, Limits(**(vars(LIMITS) | limits)), over_budget)


def coded(**modes: str) -> Told:
    """An open iteration whose only sub-action `dig` is accepted, beside `modes`."""
    return Told().iteration().plan(dig="code", **modes).code("dig").trial("dig")


def judged(successes: int, episodes: int = 20, number: int = 0, told: Told | None = None) -> Told:
    told = (told or Told()).iteration(number).plan(dig="code")
    if not told.history.attempts:
        told.code("dig").trial("dig")
    return told.evaluate(successes, episodes).verdict()

"""The skill library tells of code what was measured of it, not what a later plan wished of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rlgpt.store.states import Attempt, Item, TrialState
from rlgpt.training.steps.skills import _skill


def plan(goal: str, done_when: str) -> Any:
    return SimpleNamespace(items=(Item("collect_wood", "code", goal, "r", done_when, 100, False, "slow"),))


def trial(outcome: str, successes: int) -> TrialState:
    return TrialState(
        iteration=0, revision=1, outcome=outcome, episodes=5, successes=successes, prefixes=5, env_steps=100, error="",
        seq=1,
    )  # fmt: skip


def test_code_is_kept_with_the_goal_the_predicate_and_the_measurement_that_accepted_it() -> None:
    attempt = Attempt.__new__(Attempt)
    attempt.sub_action, attempt.source_hash, attempt.done_when = "collect_wood", "h", "wood >= 8"
    attempt.trials = [("wood >= 6", trial("accepted", 5)), ("wood >= 8", trial("failed", 0))]
    attempt.trial = attempt.trials[-1][1]
    runtime: Any = SimpleNamespace(
        history=SimpleNamespace(
            plans={1: plan("Collect 6 wood.", "wood >= 6"), 2: plan("Collect 8 wood.", "wood >= 8"),
                3: plan("Collect 6 wood before night.", "wood >= 6")},
        ),
        world=SimpleNamespace(name="crafter"), session_task="collect_wood", source=lambda name: "code",
        folder=SimpleNamespace(id="s"),
    )  # fmt: skip
    kept = _skill(runtime, attempt)
    assert kept is not None
    assert (kept.description, kept.done_when) == ("Collect 6 wood.", "wood >= 6")
    assert (kept.successes, kept.episodes) == (5, 5)

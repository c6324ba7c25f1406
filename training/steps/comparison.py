"""Compares policy and code by the open iteration's dev episodes, and checks whether the target is reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlgpt.agents import outcome
from rlgpt.store.history import History, IterationState, Measured
from rlgpt.store.intervals import chance_of_lead
from rlgpt.store.row_types import EpisodeRow
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.worlds.optional_parts import Scores, offers

FEWEST = 6
"""Episodes below which no interval is told."""
RESAMPLES = 2_000
DECIDED = 0.025
"""One-sided probability of a difference by luck below which it is told: as outside an interval of 95%."""


class Comparison(NamedTuple):
    reached: bool
    """Dev success is at the target."""
    better: str
    """policy | code | undecided | only one."""
    difference: tuple[float, float, float] | None
    """Where the result is a score, in [0, 1]: that of the policy minus that of its code alone on the same seeds, with
    the 95% interval of a bootstrap over seeds."""


def measure(runtime: SessionRuntime) -> Comparison:
    history = runtime.history
    iteration = history.iteration
    assert iteration is not None
    full, code = (history.pooled(iteration, "dev", variant) for variant in ("full", "plan"))
    reached = bool(full.episodes) and full.value >= runtime.limits.target
    play, policy = outcome.best_play(history, iteration)
    last = [e for e in iteration.evaluations if e.split == "dev" and e.variant == "full"][-1]
    if last.policy == "plan" or not code.episodes:
        return Comparison(reached, "only one", None)
    difference = _difference(runtime, iteration, play) if history.scored else None
    if difference:
        _, low, high = difference
        return Comparison(reached, "policy" if low > 0 else "code" if high < 0 else "undecided", difference)
    return Comparison(reached, _winner(history, iteration, policy, code), None)


def _winner(history: History, iteration: IterationState, policy: Measured, code: Measured) -> str:
    """By the episodes that only one of them won; by their intervals where these were not recorded."""
    apart = None if history.scored else outcome.won_apart(history, iteration)
    if apart is None:
        return "policy" if policy.low > code.high else "code" if code.low > policy.high else "undecided"
    ours, theirs, _ = apart
    if chance_of_lead(ours, theirs) >= DECIDED:
        return "undecided"
    return "policy" if ours > theirs else "code"


def _difference(runtime: SessionRuntime, iteration: IterationState, play: str) -> tuple[float, float, float] | None:
    if not offers(runtime.world, Scores):
        return None
    dev = [e for e in iteration.evaluations if e.split == "dev"]
    reached: dict[str, dict[int, Sequence[str]]] = {play: {}, "plan": {}}
    for evaluation in dev:
        if evaluation.variant in reached and (evaluation.revision, evaluation.run) == (dev[-1].revision, dev[-1].run):
            for row in runtime.reader.rows(EpisodeRow, {"split": "dev", "owner": evaluation.number}):
                reached[evaluation.variant][row["seed"]] = row["milestones"]
    both = sorted(reached[play].keys() & reached["plan"].keys())
    if len(both) < FEWEST:
        return None
    policy, code = (
        np.array([[name in reached[variant][seed] for name in runtime.history.scored] for seed in both])
        for variant in (play, "plan")
    )
    drawn = np.random.default_rng(0).integers(0, len(both), (RESAMPLES, len(both)))
    score = runtime.world.score
    spread = score(policy[drawn].mean(axis=1)) - score(code[drawn].mean(axis=1))
    low, high = np.quantile(spread, (0.025, 0.975))
    return float(score(policy.mean(axis=0)) - score(code.mean(axis=0))), float(low), float(high)

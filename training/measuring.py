"""What the open iteration's dev episodes say: is the target reached, and which of policy and code is better?"""

from __future__ import annotations

from typing import NamedTuple

from rlgpt.store.history import IterationState
from rlgpt.store.intervals import mean_interval, wilson
from rlgpt.training.live import Live

FEWEST = 6
"""Episodes below which no interval of a mean is told."""


class Measured(NamedTuple):
    reached: bool
    """Dev success is at the target."""
    better: str
    """policy | code | undecided | only one."""
    difference: tuple[float, float, float] | None
    """Where the result is a score: milestones an episode that the policy reached beyond its code alone on the same
    seeds, as mean and 95% interval."""


def measure(live: Live) -> Measured:
    history = live.history
    iteration = history.iteration
    assert iteration is not None
    successes, episodes = history.pooled(iteration, "dev", "full")
    reached = bool(episodes) and successes / episodes >= live.limits.target
    last = [e for e in iteration.evaluations if e.split == "dev" and e.variant == "full"][-1]
    code = history.pooled(iteration, "dev", "plan")
    if last.policy == "plan" or not code[1]:
        return Measured(reached, "only one", None)
    difference = _difference(live, iteration) if history.scored else None
    if difference:
        _, low, high = difference
        return Measured(reached, "policy" if low > 0 else "code" if high < 0 else "undecided", difference)
    low, high = wilson(successes, episodes)
    code_low, code_high = wilson(*code)
    return Measured(reached, "policy" if low > code_high else "code" if code_low > high else "undecided", None)


def _difference(live: Live, iteration: IterationState) -> tuple[float, float, float] | None:
    scored = set(live.history.scored)
    dev = [e for e in iteration.evaluations if e.split == "dev"]
    reached: dict[str, dict[int, int]] = {"full": {}, "plan": {}}
    for evaluation in dev:
        if (evaluation.revision, evaluation.run) == (dev[-1].revision, dev[-1].run):
            for row in live.reader.rows("episode", {"split": "dev", "owner": evaluation.number}):
                reached[evaluation.variant][row["seed"]] = len(scored.intersection(row["milestones"]))
    both = sorted(reached["full"].keys() & reached["plan"].keys())
    if len(both) < FEWEST:
        return None
    return mean_interval([reached["full"][seed] - reached["plan"][seed] for seed in both])

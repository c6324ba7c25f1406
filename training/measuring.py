"""What the open iteration's dev episodes say: is the target reached, and which of policy and code is better?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlgpt.store.history import IterationState
from rlgpt.store.intervals import wilson
from rlgpt.training.live import Live

FEWEST = 6
"""Episodes below which no interval is told."""
RESAMPLES = 2_000


class Measured(NamedTuple):
    reached: bool
    """Dev success is at the target."""
    better: str
    """policy | code | undecided | only one."""
    difference: tuple[float, float, float] | None
    """Where the result is a score, in [0, 1]: that of the policy minus that of its code alone on the same seeds, with
    the 95% interval of a bootstrap over seeds."""


def measure(live: Live) -> Measured:
    history = live.history
    iteration = history.iteration
    assert iteration is not None
    successes, episodes = history.pooled(iteration, "dev", "full")
    reached = bool(episodes) and successes / episodes >= live.limits.target
    play = history.sampled_or_greedy(iteration)
    last = [e for e in iteration.evaluations if e.split == "dev" and e.variant == "full"][-1]
    code = history.pooled(iteration, "dev", "plan")
    if last.policy == "plan" or not code[1]:
        return Measured(reached, "only one", None)
    difference = _difference(live, iteration, play) if history.scored else None
    if difference:
        _, low, high = difference
        return Measured(reached, "policy" if low > 0 else "code" if high < 0 else "undecided", difference)
    low, high = wilson(*history.pooled(iteration, "dev", play))
    code_low, code_high = wilson(*code)
    return Measured(reached, "policy" if low > code_high else "code" if code_low > high else "undecided", None)


def _difference(live: Live, iteration: IterationState, play: str) -> tuple[float, float, float] | None:
    dev = [e for e in iteration.evaluations if e.split == "dev"]
    reached: dict[str, dict[int, list[str]]] = {play: {}, "plan": {}}
    for evaluation in dev:
        if evaluation.variant in reached and (evaluation.revision, evaluation.run) == (dev[-1].revision, dev[-1].run):
            for row in live.reader.rows("episode", {"split": "dev", "owner": evaluation.number}):
                reached[evaluation.variant][row["seed"]] = row["milestones"]
    both = sorted(reached[play].keys() & reached["plan"].keys())
    if len(both) < FEWEST:
        return None
    policy, code = (
        np.array([[name in reached[variant][seed] for name in live.history.scored] for seed in both])
        for variant in (play, "plan")
    )
    drawn = np.random.default_rng(0).integers(0, len(both), (RESAMPLES, len(both)))
    spread = _scores(policy, drawn) - _scores(code, drawn)
    every = np.arange(len(both))[np.newaxis]
    low, high = np.quantile(spread, (0.025, 0.975))
    return float((_scores(policy, every) - _scores(code, every))[0]), float(low), float(high)


def _scores(reached: NDArray[np.bool_], drawn: NDArray[np.int_]) -> NDArray[np.float64]:
    """Score in [0, 1] of each sample of episodes; `reached` is (episodes, milestones), `drawn` (samples, episodes)."""
    rates = 100 * reached[drawn].mean(axis=1)
    return np.asarray(np.exp(np.log1p(rates).mean(axis=1)) - 1) / 100

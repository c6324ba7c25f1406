"""Comparing sessions: the unit is a session, one score a seed and task. Pure.

IQM, stratified bootstrap and probability of improvement as in Agarwal et al. 2021 ("Deep RL at the edge of the
statistical precipice"); paired differences over seeds; Holm over the tasks declared together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
"""(seeds, tasks)."""
Statistic = Callable[[Scores], Scores]
"""(..., seeds, tasks) -> (...)."""

RESAMPLES = 10_000
BOUNDS = (0.025, 0.975)
"""Quantiles of a 95% percentile interval."""
EXACT = 16
"""Up to so many pairs every assignment of signs is tried."""


COVERED = {2: 50, 3: 75, 5: 85, 10: 90}
"""Seeds -> in how many of 100 cases `bootstrap` of normal scores covers their mean: in too few where seeds are few.
With 2 or 3 it reaches from the smallest to the largest score, so it misses where all are on one side of the mean."""


class Interval(NamedTuple):
    value: float
    low: float
    high: float


class Difference(NamedTuple):
    """Of two arms on the same seeds of one task."""

    pairs: int
    mean: float
    low: float
    high: float
    p: float
    """Two-sided, by flipping signs."""


def mean(scores: Scores) -> Scores:
    return np.asarray(scores.mean(axis=(-2, -1)))


def iqm(scores: Scores) -> Scores:
    """Mean of the middle half of all scores; a quarter of them (rounded down) is cut at each end."""
    flat = np.sort(scores.reshape(*scores.shape[:-2], -1), axis=-1)
    size = flat.shape[-1]
    return np.asarray(flat[..., size // 4 : size - size // 4].mean(axis=-1))


def bootstrap(scores: Scores, statistic: Statistic, resamples: int = RESAMPLES) -> Interval:
    """95% percentile interval of `statistic`, seeds drawn with replacement within each task."""
    random = np.random.default_rng(0)
    drawn = statistic(scores[random.integers(0, len(scores), (resamples, *scores.shape)), np.arange(scores.shape[1])])
    low, high = np.quantile(drawn, BOUNDS)
    return Interval(float(statistic(scores)), float(low), float(high))


class Band(NamedTuple):
    """An interval at each point of a curve."""

    value: Scores
    low: Scores
    high: Scores


def bootstrap_curve(curves: Scores, resamples: int = 500) -> Band:
    """IQM of curves (seeds, points) with its 95% percentile interval; whole curves are drawn with replacement."""

    def over_seeds(values: Scores) -> Scores:
        return iqm(np.moveaxis(values, -2, -1)[..., None])

    drawn = over_seeds(curves[np.random.default_rng(0).integers(0, len(curves), (resamples, len(curves)))])
    low, high = np.quantile(drawn, BOUNDS, axis=0)
    return Band(over_seeds(curves), low, high)


def paired(ours: Sequence[float], theirs: Sequence[float], seed: int = 0, resamples: int = RESAMPLES) -> Difference:
    """Mean of ours - theirs over paired seeds with its 95% bootstrap interval."""
    differences = np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float)
    random = np.random.default_rng(seed)
    drawn = differences[random.integers(0, differences.size, (resamples, differences.size))].mean(axis=1)
    low, high = np.quantile(drawn, BOUNDS)
    p = sign_flip(differences, random, resamples)
    return Difference(differences.size, float(differences.mean()), float(low), float(high), p)


def sign_flip(differences: Scores, random: np.random.Generator, resamples: int = RESAMPLES) -> float:
    """P(|mean| at least as large as seen) if each difference could as well have had the other sign."""
    if differences.size <= EXACT:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=differences.size)))
    else:  # of those drawn the one that was seen is always one: a p of 0 there is not (Phipson and Smyth 2010)
        drawn = random.choice((-1.0, 1.0), size=(resamples, differences.size))
        signs = np.concatenate([np.ones((1, differences.size)), drawn])
    flipped = np.abs((signs * differences).mean(axis=1))
    return float(np.mean(flipped >= abs(differences.mean()) - 1e-12))


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given: the family-wise error stays below the level they are compared with."""
    adjusted = [0.0] * len(p)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        largest = max(largest, min(1.0, (len(p) - rank) * p[index]))
        adjusted[index] = largest
    return adjusted


def improvement(ours: Scores, theirs: Scores) -> float:
    """Probability that a run of ours beats a run of theirs on a task drawn at random; a tie is half."""
    chances = []
    for task in range(ours.shape[1]):
        gaps = np.subtract.outer(ours[:, task], theirs[:, task])
        chances.append(np.mean((gaps > 0) + 0.5 * (gaps == 0)))
    return float(np.mean(chances))

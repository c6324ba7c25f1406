"""Intervals for shares: pure, standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

Z95 = 1.959963984540054
"""Two-sided 95% quantile of the standard normal distribution."""


def wilson(successes: float, episodes: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval for a share (Wilson 1927). (0, 1) without episodes."""
    if not 0 <= successes <= episodes:
        raise ValueError(f"{successes} successes of {episodes} episodes cannot be")
    if episodes == 0:
        return (0.0, 1.0)
    share = successes / episodes
    spread = z * z / episodes
    centre = (share + spread / 2) / (1 + spread)
    half = z * sqrt(share * (1 - share) / episodes + spread / (4 * episodes)) / (1 + spread)
    return (0.0 if successes == 0 else centre - half, 1.0 if successes == episodes else centre + half)


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """(mean, low, high): Student's 95% interval for the mean; the quantile by Abramowitz and Stegun 26.7.5.

    Raises ValueError below 6 values, where that is too coarse.
    """
    freedom = len(values) - 1
    if freedom < 5:
        raise ValueError(f"{len(values)} values are too few for an interval")
    z = Z95
    quantile = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    quantile += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    mean, half = fmean(values), quantile * stdev(values) / sqrt(len(values))
    return mean, mean - half, mean + half

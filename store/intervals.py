"""Wilson's interval for shares. Pure, standard library only."""

from __future__ import annotations

from math import sqrt

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

"""Wilson's interval for shares, and exact probabilities of counts. Pure, standard library only."""

from __future__ import annotations

from math import exp, fsum, lgamma, log, log1p, sqrt

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


def chance_of_at_most(done: int, of: int, share: float) -> float:
    """Probability of so many successes or fewer, each with the probability `share`, which is above 0 and below 1."""
    # By logarithms, because a binomial coefficient of more than 1,029 episodes can be too large for a float.
    chances = log(share), log1p(-share)
    ways = (lgamma(of + 1) - lgamma(k + 1) - lgamma(of - k + 1) for k in range(done + 1))
    return fsum(exp(way + k * chances[0] + (of - k) * chances[1]) for k, way in enumerate(ways))


def chance_of_lead(ours: int, theirs: int) -> float:
    """Probability of so clear a lead, or a clearer one, if neither of two is better. `ours`, `theirs`: episodes that
    only one of the two won. One-sided; McNemar's test (1947) in its exact form."""
    return chance_of_at_most(min(ours, theirs), ours + theirs, 0.5)

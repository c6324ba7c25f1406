"""Whether a network can take a feature in: what it divides by, and how many categories it has rows for."""

from __future__ import annotations

from math import isfinite
from numbers import Real

from rlgpt.training.worlds.protocol import Feature

WIDEST = 1e30
"""Of a bound. Beyond it every value is the same to a network; some libraries write the largest float32 for infinity."""


def bounds_flaw(feature: Feature) -> str:
    """The sentence on why a network cannot take the feature in; "" where it can."""
    name, low, high = feature.name, feature.low, feature.high
    if type(feature.categories) is not int or feature.categories < 0:
        return f"feature {name!r} has {feature.categories!r} categories, which is no whole number"
    if feature.categories:
        return ""
    if not all(isinstance(bound, Real) for bound in (low, high)):
        return f"feature {name!r} has the bounds {low!r} and {high!r}, which are no numbers"
    told = f"feature {name!r} has the range {low} to {high}"
    if not all(isfinite(bound) and abs(bound) <= WIDEST for bound in (low, high)):
        return f"{told}, and a network needs finite bounds: clip or squash its values, and say between what"
    if low >= high:
        return f"{told}, and low must be below high: a feature that never changes is of no use"
    return ""

"""Whether a network can take in a feature (what it divides by, how many categories it has rows for) or a picture, and
whether a command can be recorded."""

from __future__ import annotations

from math import isfinite
from numbers import Real

from rlgpt.training.worlds.protocol import Feature

WIDEST = 1e30
"""Of a bound. Beyond it every value is the same to a network; some libraries write the largest float32 for infinity."""

SMALLEST = 36
"""Side of a picture: three layers of convolutions leave nothing of less."""


def picture_flaw(shape: object) -> str:
    """The sentence on why no network can look at pictures of this `World.pixel_shape`; "" where one can."""
    if not (isinstance(shape, tuple) and len(shape) == 3 and all(type(side) is int and side > 0 for side in shape)):
        return f"pixel_shape is {shape!r:.60}; (height, width, 3) was expected"
    height, width, _ = shape
    if min(height, width) < SMALLEST:
        return f"its pictures have {height} x {width} pixels, and a network needs {SMALLEST} x {SMALLEST} at least"
    return ""


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


def command_flaw(command: object, size: int) -> str:
    """The sentence on why a `World.native_action` of `size` integers cannot be sent, counted and recorded; "" where it
    can."""
    plain = isinstance(command, tuple) and len(command) == size and all(type(part) is int for part in command)
    if plain and all(-(1 << 15) <= part < 1 << 15 for part in command):  # type: ignore[attr-defined]
        return ""
    return f"native_action() gives {command!r:.60}; a tuple of {size} plain ints from -32768 to 32767 was expected"

"""Ranges and ticks of an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from rlgpt.console.view.numbers import count


def ticks(low: float, high: float, most: int) -> list[float]:
    """At most `most` round values (1, 2, 5 times a power of ten) within [low, high]."""
    if most < 1 or not math.isfinite(low) or not math.isfinite(high) or high <= low:
        return [low]
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((s * power for s in (1, 2, 5, 10) if s * power >= raw * 0.999999), 10 * power)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)][: most + 1] or [low]


def tick_labels(values: Sequence[float], room: int) -> list[str]:
    """A label of at most `room` cells for each value, with the digits that tell neighbours apart; none ("") where
    those do not fit."""
    apart = min((b - a for a, b in pairwise(values)), default=abs(values[0]) if values else 1.0)
    digits = max(0, -math.floor(math.log10(apart) + 1e-9)) if apart > 0 else 0
    return [_label(value, digits, room) for value in values]


def _label(value: float, digits: int, room: int) -> str:
    if abs(value) >= 10_000:
        rounded = count(value)
        return rounded if len(rounded) <= room else ""
    fixed = f"{value:.{digits}f}"
    if float(fixed) == 0:
        return "0"
    if "." in fixed:
        fixed = fixed.rstrip("0").rstrip(".")
    if len(fixed) <= room:
        return fixed
    short = fixed.replace("0.", ".", 1) if fixed.startswith(("0.", "-0.")) else fixed
    if len(short) <= room:
        return short
    figures, power = f"{value:.0e}".split("e")
    short = f"{figures}e{int(power)}"
    return short if len(short) <= room and float(short) == float(fixed) else ""


def padded(low: float, high: float, share: float = 0.05) -> tuple[float, float]:
    """A range with a margin; a single value gets a range around it."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return (0.0, 1.0)
    if high - low < 1e-12 * max(abs(low), abs(high), 1e-9):
        air = abs(high) * 0.1 or 1.0
        return (low - air, high + air)
    air = (high - low) * share
    return (low - air, high + air)


def place(values: Sequence[float], low: float, high: float, cells: int) -> list[int]:
    """Cell index (0 .. cells - 1) of each value on an axis."""
    span = max(high - low, 1e-12)
    return [min(max(round((v - low) / span * (cells - 1)), 0), cells - 1) for v in values]

"""Pure functions for coded actions: commands, offsets and distances. Standard library only.

Arguments are checked, because generated code calls these functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rlgpt.training.worlds.kitchen.names import MAX_ROLL, ROLL_STEP, STEP
from rlgpt.training.worlds.kitchen.view import View

Command = tuple[int, int, int, int, int]
OPEN, CLOSE, KEEP = 1, -1, 0


def _clip(value: object, limit: int) -> int:
    """A number rounded and clipped to [-limit, limit]. Raises ValueError."""
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
        raise ValueError(f"a part of a command must be a finite number, not {str(value)[:30]!r}")
    return max(-limit, min(limit, round(value)))  # type: ignore[call-overload, no-any-return]


def _check_view(view: object) -> View:
    if type(view) is not View:
        raise TypeError("The first argument must be the view.")
    return view


def _check_place(point: object) -> tuple[float, float, float]:
    if type(point) is not tuple or len(point) != 3:
        raise TypeError("A place is a tuple (x, y, z) in mm.")
    x, y, z = point
    for value in point:
        if type(value) not in (int, float) or not math.isfinite(value):
            raise ValueError("A place holds three finite numbers.")
    return x, y, z


def move(dx: float = 0, dy: float = 0, dz: float = 0, roll: float = 0, fingers: int = 0) -> Command:
    """The command that moves the aim by (dx, dy, dz) mm, at most 60 each, turns the hand by roll mrad, at most 200, and
    opens (1), closes (-1) or keeps (0) the fingers. Larger values are cut. `move()` waits."""
    return _clip(dx, STEP), _clip(dy, STEP), _clip(dz, STEP), _clip(roll, ROLL_STEP), _clip(fingers, 1)


def go(view: object, point: object, speed: float = 40, fingers: int = 0, roll: float | None = None) -> Command:
    """The command that brings the aim up to `speed` mm closer to a place in a straight line; with `roll`, the hand also
    turns towards that roll (mrad)."""
    current, goal = _check_view(view), _check_place(point)
    dx, dy, dz = (there - here for there, here in zip(goal, current.aim, strict=True))
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    share = min(1.0, max(1.0, float(_clip(speed, STEP))) / length) if length else 0.0
    turn = 0 if roll is None else _clip(roll, MAX_ROLL) - current.roll
    return move(dx * share, dy * share, dz * share, turn, fingers)


def beside(view: object, name: str, dx: float = 0, dy: float = 0, dz: float = 0) -> tuple[float, float, float]:
    """The place (dx, dy, dz) mm from where the handle of an object is said to be."""
    x, y, z = _check_view(view).handle(name)
    return _check_place((x + dx, y + dy, z + dz))


def offset(view: object, name: str) -> tuple[int, int, int]:
    """(dx, dy, dz) mm from the hand to where the handle of an object is said to be."""
    current = _check_view(view)
    x, y, z = (there - here for there, here in zip(current.handle(name), current.hand, strict=True))
    return x, y, z


def distance(view: object, point: object) -> float:
    """mm from the hand to a place."""
    return math.dist(_check_view(view).hand, _check_place(point))


def _number(value: object) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
        raise ValueError(f"this takes a finite number, not {str(value)[:30]!r}")
    return float(value)  # type: ignore[arg-type]


def sqrt(x: float) -> float:
    """The square root of a number from 0 on."""
    if _number(x) < 0:
        raise ValueError("sqrt takes a number from 0 on")
    return math.sqrt(_number(x))


def sin(angle: float) -> float:
    """Of an angle in radians, not mrad."""
    return round(math.sin(_number(angle)), 9)


def cos(angle: float) -> float:
    """Of an angle in radians, not mrad."""
    return round(math.cos(_number(angle)), 9)


def atan2(y: float, x: float) -> float:
    """The angle in radians, -pi to pi, of the direction (x, y)."""
    return round(math.atan2(_number(y), _number(x)), 9)


LIBRARY: Mapping[str, Any] = MappingProxyType({
    "move": move, "go": go, "beside": beside, "offset": offset, "distance": distance,
    "sqrt": sqrt, "sin": sin, "cos": cos, "atan2": atan2,
    "OPEN": OPEN, "CLOSE": CLOSE, "KEEP": KEEP,
})  # fmt: skip
"""Everything generated code may name besides the host's own builtins."""

"""The view of coded actions, its decoder, and the conversion of a yield to a command. Standard library only."""

from __future__ import annotations

import math
from typing import Any

from rlgpt.training.worlds.kitchen import names
from rlgpt.training.worlds.kitchen.library import LIBRARY as LIBRARY
from rlgpt.training.worlds.kitchen.view import View

NATIVE_ACTION_SIZE = names.NATIVE_ACTION_SIZE
ATTRIBUTES = tuple(name for name in vars(View) if not name.startswith("_"))
"""See `optional_parts.NamesAttributes`."""
_RANGES = (names.STEP, names.STEP, names.STEP, names.ROLL_STEP, names.FINGERS)
_PARTS = ("dx", "dy", "dz", "roll", "fingers")


class Decoder:
    """Every packed view is whole, so nothing is kept between calls."""

    def view(self, packed: bytes) -> View:
        """Raises ValueError (a sentence) for bytes that are no packed view."""
        if len(packed) != names.VIEW.size:
            raise ValueError("The packed view has the wrong size.")
        return View(packed)


def decoder() -> Decoder:
    return Decoder()


def encode(yielded: object) -> tuple[int, ...]:
    """The command of a yield: a tuple of five ints in range. Raises ValueError (a sentence)."""
    if type(yielded) is not tuple or len(yielded) != NATIVE_ACTION_SIZE:
        raise ValueError("yield one command, such as `view = yield move(0, 12, 0)` or `view = yield go(view, place)`")
    for value, limit, part in zip(yielded, _RANGES, _PARTS, strict=True):
        if type(value) is not int or not -limit <= value <= limit:
            raise ValueError(f"`{part}` of a command must be an int from {-limit} to {limit}")
    return yielded


def _from_hand(view: View, name: str) -> str:
    """Where a handle is said to be, from the hand."""
    return f"{name} {' '.join(str(there - here) for there, here in zip(view.handle(name), view.hand, strict=True))} mm"


def describe(view: View) -> dict[str, Any]:
    """The view in the few words that tell a person or a critic what is going on."""
    return {
        "hand": list(view.hand), "lag": list(view.lag), "roll": view.roll, "gap": view.gap, "fingers": view.fingers,
        "holding": view.holding, "reached": sorted(view.reached),
        "opened": {name: view.opened(name) for name in names.NAMES},
        "handles_from_hand": [_from_hand(view, name) for name in names.NAMES],
    }  # fmt: skip


def moment(view: View) -> dict[str, Any]:
    """One line of a timeline; see `optional_parts.ShowsMoments`."""
    nearest = min(names.NAMES, key=lambda name: math.dist(view.handle(name), view.hand))
    return {
        "hand": list(view.hand), "lag": list(view.lag), "gap": view.gap, "holding": view.holding,
        "nearest": _from_hand(view, nearest),
        "opened": {name: round(view.opened(name), 2) for name in names.NAMES if view.opened(name)},
    }  # fmt: skip

"""Frames that a world draws itself: its drawing module is loaded by path, never imported as a part of `training`.

Such a module uses the standard library only and has `draw(body, width, height, decision)`, which returns rows of
(text, style), or None where the bytes are no frame of its format.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from rlgpt.console.view.text import Line, Span, fit

Draw = Callable[[bytes, int, int, str], list[list[tuple[str, str]]] | None]
_WORLDS = Path(__file__).parents[2] / "training" / "worlds"
_MODULES = {"kitchen-lines-1": "kitchen/frame.py"}
"""Frame format -> module, below the folder of the worlds."""


@cache
def _drawer(format_: str) -> Draw | None:
    path = _MODULES.get(format_)
    if path is None:
        return None
    name = f"rlgpt_frame_{format_.replace('-', '_')}"
    spec = spec_from_file_location(name, _WORLDS / path)
    if spec is None or spec.loader is None:
        return None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    draw: Draw = module.draw
    return draw


def drawn(format_: str, body: bytes, width: int, height: int, decision: str) -> list[Line] | None:
    """The frame as lines, None where no world draws its format or the bytes are damaged."""
    draw = _drawer(format_)
    rows = None if draw is None else draw(body, width, height, decision)
    return None if rows is None else [fit(tuple(Span(*part) for part in row), width) for row in rows]

"""Exceptions that the code of a world raises: the sentence says what and where, on one line."""

from __future__ import annotations

import traceback
from pathlib import Path

from rlgpt.training.worlds.protocol import World


def one_line(error: BaseException) -> str:
    """`ValueError: the door is stuck`, whatever line breaks the message has."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def raised_in(error: BaseException, package: str) -> str:
    """`env.py, line 3`: the innermost frame of this package that the exception passed; "" if there is none."""
    frames = [
        f"{Path(frame.f_code.co_filename).name}, line {line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if f"{frame.f_globals.get('__name__')}.".startswith(f"{package}.")
    ]
    return frames[-1] if frames else ""


def world_fault(error: BaseException, world: World) -> str:
    """The sentence for an exception of the world's own code; "" for any other."""
    module = type(world).__module__
    place = raised_in(error, module.rpartition(".")[0] or module)
    return f"The world {world.name} failed in {place}: {one_line(error)}" if place else ""

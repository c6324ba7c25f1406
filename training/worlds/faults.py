"""Exceptions that the code of a world raises: the sentence says what and where, on one line."""

from __future__ import annotations

import sys
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


def _raised_beside(error: BaseException, module: str) -> str:
    """As `raised_in`, of the modules without a package that lie beside this one."""
    folder = Path(getattr(sys.modules.get(module), "__file__", None) or "/").parent
    frames = [
        f"{Path(frame.f_code.co_filename).name}, line {line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if "." not in frame.f_globals.get("__name__", "") and Path(frame.f_code.co_filename).parent == folder
    ]
    return frames[-1] if frames else ""


def world_fault(error: BaseException, world: World) -> str:
    """The sentence for an exception of the world's own code; "" for any other. To a world of somebody else belongs the
    whole of its package; to one that is a module in no package, as in docs/worlds.md, those in the same folder."""
    module = type(world).__module__
    top = module.partition(".")[0]
    own = module.rpartition(".")[0] if top == "rlgpt" else top
    place = raised_in(error, own) or ("" if own != module else _raised_beside(error, module))
    return f"The world {world.name} failed in {place}: {one_line(error)}" if place else ""

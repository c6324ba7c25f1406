"""`-o -`: a file that a command writes goes to standard output instead."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rlgpt.console.commands.failure import Exit, Failure

WAS_CLOSED = 1
"""The name of a standard output that the shell had closed (`>&-`) and cli.py opened anew: it leads nowhere."""


def is_standard_output(target: Path | None, json: bool) -> bool:
    """Whether `target` is `-`. Raises Failure where a file there would be in the way of something.

    A terminal is refused because a file holds what models wrote as they wrote it: it could command the terminal.
    """
    if str(target) != "-":
        return False
    if json:
        raise Failure("--json and --output - are both for standard output: say one of them.", Exit.USAGE)
    if getattr(sys.stdout, "name", "") == WAS_CLOSED:
        raise Failure("standard output is closed: there is nowhere to write to.", Exit.UNAVAILABLE)
    if sys.stdout.isatty():
        raise Failure("standard output is a terminal: send the file on with > or |, or name it.", Exit.USAGE)
    return True


def write_to_standard_output(write: Callable[[Path], object]) -> None:
    """`write` makes the file at the path it gets, whole; then it is sent."""
    with tempfile.TemporaryDirectory(prefix="rlgpt-") as folder:
        path = Path(folder) / "file"
        write(path)
        sys.stdout.flush()
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()

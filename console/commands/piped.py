"""`-o -`, `-o /dev/stdout`, `-o PIPE`: a file that a command writes goes to standard output or a pipe instead."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from rlgpt.console.commands.failure import Exit, Failure

WAS_CLOSED = 1
"""The name of a standard output that the shell had closed (`>&-`) and cli.py opened anew: it leads nowhere."""


def is_standard_output(target: Path | None, json: bool) -> bool:
    """Whether `target` is `-`, or what standard output leads to. Raises Failure where a file there would be in the way.

    A terminal is refused because a file holds what models wrote as they wrote it: it could command the terminal.
    """
    if target is None or (str(target) != "-" and not _is_where_output_goes(target)):
        return False
    if json:
        raise Failure("--json and --output - are both for standard output: say one of them.", Exit.USAGE)
    if getattr(sys.stdout, "name", "") == WAS_CLOSED:
        raise Failure("standard output is closed: there is nowhere to write to.", Exit.UNAVAILABLE)
    _refuse_terminal(sys.stdout)
    return True


def _is_where_output_goes(target: Path) -> bool:
    """/dev/stdout, whatever the shell led it to."""
    with contextlib.suppress(OSError, ValueError):  # no such file; no descriptor, or one of a test
        return os.path.samestat(target.stat(), os.fstat(sys.stdout.fileno()))
    return False


def is_device(target: Path | None) -> bool:
    """Whether `target` is a pipe or a device, such as /dev/stdout: it is there, and is written as it is."""
    return target is not None and target.exists() and not target.is_file() and not target.is_dir()


def write_to_standard_output(write: Callable[[Path], object]) -> None:
    """`write` makes the file at the path it gets, whole; then it is sent."""
    sys.stdout.flush()
    _send(write, sys.stdout.buffer)


def write_to_device(write: Callable[[Path], object], target: Path) -> None:
    """The same. Raises Failure for a terminal, and where the device takes no bytes."""
    try:
        with target.open("wb", buffering=0) as device:
            _refuse_terminal(device)
            _send(write, device)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(f"{target} cannot be written: {error.strerror or error}", Exit.UNAVAILABLE) from error


def _refuse_terminal(file: IO[Any]) -> None:
    if file.isatty():
        raise Failure("standard output is a terminal: send the file on with > or |, or name it.", Exit.USAGE)


def _send(write: Callable[[Path], object], out: IO[bytes]) -> None:
    with tempfile.TemporaryDirectory(prefix="rlgpt-") as folder:
        path = Path(folder) / "file"
        write(path)
        with path.open("rb") as file:
            shutil.copyfileobj(file, out)
        out.flush()

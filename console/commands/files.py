"""The files that commands write for people."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.store import atomic


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A path to write to; when the block ends without an error, `path` is there, whole. Missing folders are made. What
    is no regular file, such as /dev/stdout, is written as it is.

    Raises Failure, also where a file is already there.
    """
    if path.is_file() or path.is_dir():
        raise Failure(f"{path} is already there.", Exit.REFUSED)
    try:
        if path.exists():
            yield path
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic.new_file(path) as partial:
            yield partial
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror or error}", Exit.UNAVAILABLE) from error

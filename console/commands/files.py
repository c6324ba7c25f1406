"""The files that commands write for people."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.store import atomic


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A path to write to; when the block ends without an error, `path` is there, whole. Missing folders are made. What
    is no regular file, such as /dev/stdout, is written as it is; through a link the file that it names, which need not
    be there yet.

    Raises Failure, also where a file is already there.
    """
    if path.is_file() or path.is_dir():
        raise Failure(f"{path} is already there.", Exit.REFUSED)
    try:
        if path.exists():
            yield path
            return
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic.new_file(target, must_be_new=True) as partial:
            yield partial
    except (OSError, ValueError) as error:  # ValueError: a null byte
        if isinstance(error, FileExistsError) and path.exists():  # another process was faster
            raise Failure(f"{path} is already there.", Exit.REFUSED) from error
        reason = error.strerror if isinstance(error, OSError) else None
        raise Failure(f"{path} cannot be written: {reason or error}", Exit.UNAVAILABLE) from error

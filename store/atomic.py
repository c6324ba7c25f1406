"""Files and folders that appear whole or not at all, readable by their owner only. Standard library only.

The new content is written beside the target under a hidden name and renamed over it, which POSIX makes atomic.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SCRATCH = ".d"
"""The end of a scratch folder's name: where people keep their files, a name of this form is nobody else's."""


_LONGEST = 240
"""Bytes of a target's name that the hidden one holds: a file's name has at most 255, and here a pid is among them."""


def _hidden(target: Path) -> str:
    """How the names of all that is written for this target begin."""
    name = target.name
    while len(os.fsencode(name)) > _LONGEST:  # by letters: some file systems take no part of one
        name = name[:-1]
    return f".{name}."


def _partial_name(target: Path) -> Path:
    """Beside the target: a rename is atomic only within one file system. The pid keeps two writers apart."""
    return target.with_name(f"{_hidden(target)}{os.getpid()}")


_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""How file systems without hard links refuse one: FAT, some network and FUSE file systems."""


def publish_new(partial: Path, target: Path) -> None:
    """Give a finished file its name. A rename replaces what another process has put there since anybody looked; a link
    does not. Raises FileExistsError, and other OSErrors."""
    try:
        os.link(partial, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))  # the name is ours now
        try:
            partial.replace(target)
        except OSError:
            target.unlink(missing_ok=True)
            raise
    else:
        partial.unlink()


@contextmanager
def new_file(target: Path, durable: bool = False, *, must_be_new: bool = False) -> Iterator[Path]:
    """A path to write to; what stands there replaces `target` when the block ends without an error.

    `durable`: on the disk, not only in the system's cache, before it replaces anything. `must_be_new`: it replaces
    nothing; raises FileExistsError where another process was first.
    """
    partial = _partial_name(target)
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600))
        yield partial
        if durable:
            sync(partial)
        if must_be_new:
            publish_new(partial, target)
        else:
            partial.replace(target)
        if durable:
            sync(target.parent)
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        # of a full disk a write says no path
        raise OSError(error.errno, error.strerror, str(target)) from error
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """An empty folder to fill; it becomes `target`, which must not exist, when the block ends without an error."""
    partial = _partial_name(target)
    partial.mkdir(mode=0o700)
    try:
        yield partial
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def scratch_folder(target: Path) -> Iterator[Path]:
    """An empty folder on the target's disk, for what is not whole yet; it goes when the block ends, and what processes
    left of theirs which died while they wrote the same target goes with it."""
    scratch = target.with_name(f"{_hidden(target)}{os.getpid()}{_SCRATCH}")
    with suppress(OSError):  # a folder that cannot be listed may still be written
        drop_unfinished(target.parent, _hidden(target), tail=_SCRATCH)
    shutil.rmtree(scratch, ignore_errors=True)  # of a process that had this number before
    scratch.mkdir(mode=0o700)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def drop_unfinished(parent: Path, prefix: str, age: float = 0.0, tail: str = "") -> None:
    """Remove the folders `prefix`...PID`tail` that processes left which died while they filled them, where nothing was
    changed in them for `age` seconds."""
    for entry in [e for e in os.scandir(parent) if e.name.startswith(prefix) and e.name.endswith(tail)]:
        number = entry.name.removesuffix(tail).rpartition(".")[2]
        if not number.isdecimal():  # none of ours
            continue
        try:
            if age and time.time() - entry.stat().st_mtime < age:
                continue
            os.kill(int(number), 0)
        except (ProcessLookupError, OverflowError):
            shutil.rmtree(entry.path, ignore_errors=True)
        except (PermissionError, FileNotFoundError):  # it lives, and is another user's; it is gone by now
            continue


def private_folder(path: Path) -> None:
    """The folder and those above it that are not there yet, for their owner alone; `mkdir` leaves those above to the
    umask. Raises OSError."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        if path.parent == path:
            raise
        private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def write_bytes(target: Path, body: bytes, durable: bool = False) -> None:
    """Raises OSError."""
    with new_file(target, durable) as partial:
        partial.write_bytes(body)


def sync(path: Path) -> None:
    """Make a file's content, or a folder's entries, survive a power cut. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Starts host processes from one thread that lives as long as the worker.

A host asks the kernel to be killed with its parent; the kernel counts the *thread* that spawned it as such.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import NamedTuple

from rlgpt.training.host.sandbox import libc

CHILD = Path(__file__).parents[1] / "sandbox" / "child.py"
ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "MALLOC_ARENA_MAX": "1"}
"""All a host gets: no keys, no paths, no proxy."""
FLAGS = ("-P", "-s", "-S")
"""No site packages and no folder of ours on the path. Not -I or -E: they would ignore the hash seed."""
_FREE = 16
"""Descriptors are moved above the ones they will become in the child."""


class Spawned(NamedTuple):
    pid: int
    requests: int
    """Our writing end."""
    replies: int
    """Our reading end."""
    page: int
    """Descriptor of the shared page."""


ADDR_NO_RANDOMIZE = 0x0040000
ASK = 0xFFFFFFFF
"""What `personality` takes to change nothing."""


def fixed_addresses() -> bool:
    """From now on what this thread starts has everything at the same addresses as the last one it started. A second
    line only: no address decides anything that code can see. Not allowed everywhere: Docker's filter refuses it."""
    if not sys.platform.startswith("linux"):
        return False
    now = libc.call("personality", ASK)
    return now >= 0 and libc.call("personality", now | ADDR_NO_RANDOMIZE) >= 0


class Spawner:
    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Path, Future[Spawned]]] = SimpleQueue()
        Thread(target=self._run, name="host-spawner", daemon=True).start()

    def spawn(self, script: Path) -> Spawned:
        """Blocks a millisecond or two; the child is not ready yet. Raises OSError."""
        future: Future[Spawned] = Future()
        self._jobs.put((script, future))
        return future.result()

    def _run(self) -> None:
        fixed_addresses()
        while True:
            script, future = self._jobs.get()
            try:
                future.set_result(_spawn(script))
            except BaseException as error:
                future.set_exception(error)


_lock = Lock()
_spawner: list[Spawner] = []


def spawner() -> Spawner:
    """The one of this process."""
    with _lock:
        if not _spawner:
            _spawner.append(Spawner())
        return _spawner[0]


def _spawn(script: Path) -> Spawned:
    theirs_in, ours_out = _pipe()
    ours_in, theirs_out = _pipe()
    page = _page()
    command = [sys.executable, *FLAGS, str(script), str(os.getpid())]
    actions: Sequence[tuple[int, int, int]] = [
        (os.POSIX_SPAWN_DUP2, theirs_in, 0),
        (os.POSIX_SPAWN_DUP2, theirs_out, 1),
        (os.POSIX_SPAWN_DUP2, page, 3),
    ]
    try:
        pid = os.posix_spawn(sys.executable, command, ENVIRONMENT, file_actions=actions)
    except BaseException:
        for descriptor in (ours_out, ours_in, page):
            os.close(descriptor)
        raise
    finally:
        os.close(theirs_in)
        os.close(theirs_out)
    os.set_blocking(ours_out, False)
    os.set_blocking(ours_in, False)
    return Spawned(pid, ours_out, ours_in, page)


def _pipe() -> tuple[int, int]:
    low_read, low_write = os.pipe()
    return _moved(low_read), _moved(low_write)


def _moved(descriptor: int) -> int:
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FREE)
    os.close(descriptor)
    return moved


def _page() -> int:
    """An unnamed file of one page."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("rlgpt-host")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, os.sysconf("SC_PAGESIZE"))
    return _moved(descriptor)

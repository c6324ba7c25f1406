"""Processes that carry a mark in their environment: found wherever they went, and ended for good.

A child may lead its own session or outlive its parent, but it keeps the environment it was started with, and so do
its children. Standard library and psutil only, and valid on Python 3.9: the bridge child of MineDojo loads this file
under another interpreter.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

SESSION = "RLGPT_SESSION_FOLDER"
"""The mark of a session's worker and of all that it starts; `session_value` is its value."""
QUIET = 2
"""Looks in a row that must find nothing: a process that forks and ends during one look hides its child from it."""


def session_value(folder: Path) -> str:
    return os.path.realpath(folder)


def marked(mark: str, value: str) -> list[psutil.Process]:
    """Live processes of this user whose environment has `mark=value`, this one among them."""
    import psutil  # late: the supervisor, which only names the mark, stays small

    processes = []
    for process in psutil.process_iter(["pid"]):
        try:
            if process.environ().get(mark) == value and process.status() != psutil.STATUS_ZOMBIE:
                processes.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess, OSError):
            continue  # not ours to see: not ours to end
    return processes


def end_marked(mark: str, value: str, *, patience: float = 5.0, spare: Iterable[int] = ()) -> tuple[int, list[int]]:
    """Kill every marked process but those of `spare`: (how many were met, those that are there still).

    Returns when none is left, or after `patience` seconds (an unkillable process waits in the kernel).
    """
    import psutil

    met: set[int] = set()
    spared = set(spare)
    left: list[psutil.Process] = []
    deadline = time.monotonic() + patience
    quiet = 0
    while quiet < QUIET:
        left = [process for process in marked(mark, value) if process.pid not in spared]
        quiet = 0 if left else quiet + 1
        if time.monotonic() >= deadline:
            break
        for process in left:
            met.add(process.pid)
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=0.2)
        time.sleep(0.02)
    return len(met), [process.pid for process in left]

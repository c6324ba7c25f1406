"""Processes of this world: named by pid and start time, found by a mark in their environment, ended for good.

A child leads its own process group, but the client starts the game in another session and a failed launch
watchdog leaves it alive; so every process of one bridge carries `RLGPT_MINEDOJO_RUN=<run>` in its environment
and an ending looks for that mark (`store.processes`) as well as for the groups.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from rlgpt.store import processes

MARK = "RLGPT_MINEDOJO_RUN"
RECORD = "process.json"


@dataclass(frozen=True)
class ProcessRecord:
    """What is stored of a started child. `pid` with `started` names a process even when pids are reused."""

    run: str
    pid: int
    started: float
    """Start time in seconds since 1970, as the system tells it."""
    owner_pid: int
    owner_started: float


def started_at(pid: int) -> float | None:
    """Start time of a live process, None if there is none (or only its zombie)."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.NoSuchProcess:
        return None


def is_alive(pid: int, started: float) -> bool:
    now = started_at(pid)
    return now is not None and abs(now - started) < 1.0


def marked(run: str) -> list[psutil.Process]:
    """Live processes of this user that carry the mark of a run."""
    return processes.marked(MARK, run)


def end(run: str, pid: int | None = None, patience: float = 5.0) -> int:
    """Kill the group of `pid` and everything with the mark of `run`; returns how many marked processes were met.

    Returns only when none is left, or after `patience` seconds (an unkillable process waits in the kernel).
    """
    if pid is not None:
        _kill_group(pid)
    deadline = time.monotonic() + patience
    met, _ = processes.end_marked(MARK, run, patience=patience)
    # a process that is ending has lost its environment, so its mark, before it loses its pid
    while pid is not None and started_at(pid) is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    return met


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def write_record(run_folder: Path, record: ProcessRecord) -> None:
    (run_folder / RECORD).write_text(json.dumps(asdict(record)))


def sweep(records: Iterable[ProcessRecord]) -> list[ProcessRecord]:
    """End what is left of runs whose owner is gone; returns those in which something was still alive."""
    swept = []
    for record in records:
        if is_alive(record.owner_pid, record.owner_started):
            continue
        alive = is_alive(record.pid, record.started)
        if end(record.run, record.pid if alive else None) or alive:
            swept.append(record)
    return swept


def sweep_folder(runs: Path) -> list[ProcessRecord]:
    """`sweep` every run that has a record here; what a gone owner left on the disk goes too."""
    records = records_in(runs)
    swept = sweep(records)
    for record in records:
        if not is_alive(record.owner_pid, record.owner_started):
            shutil.rmtree(runs / record.run, ignore_errors=True)
    return swept


def records_in(runs: Path) -> list[ProcessRecord]:
    """The records that bridges left in their run directories; an unreadable one is passed over."""
    found = []
    for path in sorted(runs.glob(f"*/{RECORD}")):
        try:
            found.append(ProcessRecord(**json.loads(path.read_text())))
        except (OSError, ValueError, TypeError):
            continue  # written half when its writer was killed: the mark of that run is lost with it
    return found

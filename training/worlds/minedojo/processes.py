"""The processes of this world: identified by pid and start time, found by a mark in their environment, and killed.

A child leads a process group of its own, but the client starts the game in another session, and the client's launch
watchdog leaves the game alive if it fails. So every process of one bridge carries `RLGPT_MINEDOJO_RUN=<run>` in its
environment, and `end` kills by that mark (`store.processes`) as well as by the group.
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
    """What is stored of a child process. `pid` and `started` together identify it, because pids are used again."""

    run: str
    pid: int
    started: float
    """Start time in seconds since 1970, as the system reports it."""
    owner_pid: int
    """The process that started the child."""
    owner_started: float


def started_at(pid: int) -> float | None:
    """Start time of a live process in seconds since 1970, None if there is no such process or only its zombie."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.NoSuchProcess:
        return None


def is_alive(pid: int, started: float) -> bool:
    actual_start = started_at(pid)
    return actual_start is not None and abs(actual_start - started) < 1.0


def marked(run: str) -> list[psutil.Process]:
    """Live processes of this user that carry the mark of a run."""
    return processes.marked(MARK, run)


def end(run: str, pid: int | None = None, patience: float = 5.0) -> int:
    """Kill the group of `pid` and everything with the mark of `run`; returns how many processes had the mark.

    Returns when none is left, or after `patience` seconds (a process that waits in the kernel cannot be killed).
    """
    if pid is not None:
        _kill_group(pid)
    deadline = time.monotonic() + patience
    marked_count, _ = processes.end_marked(MARK, run, patience=patience)
    # a process that is ending has lost its environment, so its mark, before it loses its pid
    while pid is not None and started_at(pid) is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    return marked_count


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def write_record(run_folder: Path, record: ProcessRecord) -> None:
    (run_folder / RECORD).write_text(json.dumps(asdict(record)))


def sweep(records: Iterable[ProcessRecord]) -> list[ProcessRecord]:
    """End what is left of runs whose owner is gone; returns those in which something was still alive."""
    still_alive = []
    for record in records:
        if is_alive(record.owner_pid, record.owner_started):
            continue
        child_alive = is_alive(record.pid, record.started)
        if end(record.run, record.pid if child_alive else None) or child_alive:
            still_alive.append(record)
    return still_alive


def sweep_folder(runs: Path) -> list[ProcessRecord]:
    """`sweep` every run that has a record in `runs`, and delete the folders of runs whose owner is gone."""
    records = records_in(runs)
    still_alive = sweep(records)
    for record in records:
        if not is_alive(record.owner_pid, record.owner_started):
            shutil.rmtree(runs / record.run, ignore_errors=True)
    return still_alive


def records_in(runs: Path) -> list[ProcessRecord]:
    """The records in the run directories; an unreadable one is left out."""
    records = []
    for path in sorted(runs.glob(f"*/{RECORD}")):
        try:
            records.append(ProcessRecord(**json.loads(path.read_text())))
        except (OSError, ValueError, TypeError):
            continue  # its writer was killed while it wrote, so the mark of that run is not known
    return records

"""Keeps one session's worker running: holds the lock, restarts, writes last words.

Standard library only, so that it stays small and outlives anything the worker can do to itself.
`python -P -m rlgpt.training.supervisor FOLDER [--leash]`; ends with the session. SIGTERM and SIGHUP stop it: they are
passed on to the worker, which leaves at its next poll. On a leash it ends at once, with everything of the session,
when its standard input does.
"""

from __future__ import annotations

import collections
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import IO

from rlgpt.store.epilogue import append_event, append_stop, ended_at, progress_mark, undecided
from rlgpt.store.errors import BadPlace, StoreError
from rlgpt.store.events import Ended, Event, TrainerDied, Waiting
from rlgpt.store.lease import SLOT_DESCRIPTOR, Lease, LeaseTaken, training_slot
from rlgpt.store.limits import environment
from rlgpt.store.processes import SESSION, end_marked, session_value
from rlgpt.store.states import SIGNALLED, SLOT
from rlgpt.training import last_words
from rlgpt.training.keeping import begin_keeping, set_aside

RESTARTS = 3
"""Restarts without new completed work before the session is given up."""
LAST_LINES = 30
LOG_BYTES = 20_000_000
LOG_FILES = 3
TAKEN = 4
"""Exit code: another worker has the session."""
STOP = "stop"
"""The command that ends a session."""
CANNOT = 3
"""Exit code of a worker that no restart would help."""


STOPPING = (signal.SIGTERM, signal.SIGHUP)


class _Left(Exception):
    """The session was stopped while it had no worker; the argument is the reason."""


def _leave_if_asked(folder: Path) -> None:
    """There is no worker yet that would decide a command."""
    try:
        queued = undecided(folder)
    except sqlite3.Error:  # not the supervisor's to tell: the worker opens the same database
        return
    if any(command.kind == STOP for command in queued):
        raise _Left("stopped by the operator")


def supervise(folder: Path) -> int:
    """Run the session of `folder` to its end; returns the exit code of this process."""
    try:
        lease = Lease.acquire(folder)
    except (LeaseTaken, BadPlace) as error:
        print(error, file=sys.stderr)
        return TAKEN
    with lease:
        try:
            keeper = begin_keeping(folder)
        except StoreError as error:
            print(error, file=sys.stderr)
            return TAKEN
        with contextlib.closing(keeper):
            try:
                code = _keep_running(folder)
            except _Left as left:
                _end(folder, str(left))
                code = 0
            except (StoreError, sqlite3.Error) as error:  # all slots are another user's, or the database is damaged
                print(error, file=sys.stderr)
                _say(folder, Ended("failed", str(error)))
                code = 1
        if keeper.fenced:
            set_aside(folder, keeper)
        return code


def _keep_running(folder: Path) -> int:
    failures, mark = 0, progress_mark(folder)
    earlier_end = ended_at(folder)
    worker: _Worker | None = None
    told_to_stop = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal told_to_stop
        told_to_stop = True
        if worker is not None:
            worker.stop()

    def look() -> None:
        if told_to_stop:
            raise _Left(SIGNALLED)
        _leave_if_asked(folder)

    for number in STOPPING:
        signal.signal(number, stop)
    while True:
        with training_slot(folder, lambda: _say(folder, Waiting(SLOT)), look) as slot:
            look()
            worker = _Worker(folder, slot)
        if told_to_stop:  # between the look and the start
            worker.stop()
        code, peak = worker.wait()
        end = ended_at(folder)
        if end > earlier_end or (code == 0 and end):  # a signal that hits a worker which has ended takes nothing back
            return 0  # code 0 alone may be the world, which has ended the process
        if code == CANNOT:
            _say(folder, Ended("failed", _last_of(worker.last_lines())))
            return 1
        _end_left(folder)
        now = progress_mark(folder)
        failures = 1 if now > mark else failures + 1
        mark = now
        again = failures <= RESTARTS and not told_to_stop
        words = worker.last_lines()
        _say(
            folder,
            TrainerDied(
                exit_code=code if code >= 0 else None,
                signal=signal.Signals(-code).name if code < 0 else None,
                last_lines=words,
                restart=again,
                peak_mb=peak // 1024,
            ),
        )
        if told_to_stop:
            continue
        if not again:
            reason = f"the worker died {failures} times without getting further; its last words: {_last_of(words)}"
            _say(folder, Ended("failed", reason))
            return 1
        time.sleep(0.25 * 2 ** (failures - 1))


def _end_left(folder: Path) -> None:
    """What a worker that died has left running: its world had no chance to close its games, and the next worker's would
    find their ports and files taken."""
    with contextlib.suppress(Exception):
        end_marked(SESSION, session_value(folder), patience=2.0, spare=[os.getpid()])


def _last_of(lines: Sequence[str]) -> str:
    return next((line for line in reversed(lines) if line.strip()), "it said nothing")


def _say(folder: Path, event: Event) -> None:
    _write(folder, str(event), lambda: append_event(folder, event))


def _end(folder: Path, reason: str) -> None:
    _write(folder, f"that it was {reason}", lambda: append_stop(folder, reason, applied=[STOP]))


def _write(folder: Path, what: str, write: Callable[[], object]) -> None:
    try:
        write()
    except Exception as error:  # the store may be what broke; the log still tells, unless the disk is full
        with contextlib.suppress(OSError), (folder / "worker.log").open("a") as log:
            log.write(f"supervisor: could not write {what}: {error}\n")


class _Worker:
    """One worker process and the tail of what it prints."""

    def __init__(self, folder: Path, slot: Lease) -> None:
        """The worker gets the slot, which it may give back while it waits for a person."""
        self._log = folder / "worker.log"
        self._tail: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "rlgpt.training.worker", str(folder)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(slot.fileno(),),
            env={
                **os.environ,
                **environment(folder),
                "PYTHONUNBUFFERED": "1",
                "PYTHONHASHSEED": "0",
                SESSION: session_value(folder),
                SLOT_DESCRIPTOR: str(slot.fileno()),
            },
        )
        assert self._child.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self._child.stdout,), daemon=True)
        self._reader.start()

    def _read(self, output: IO[bytes]) -> None:
        for raw in output:
            line = raw.decode(errors="replace").rstrip("\n")
            self._tail.append(line[:500])
            with contextlib.suppress(OSError):  # on a full disk: read on, or the worker waits for ever
                _rotate(self._log)
                with self._log.open("a") as log:
                    log.write(line + "\n")

    def stop(self) -> None:
        """Not by Popen's own means: they might reap the child, for which `wait` waits."""
        if self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, signal.SIGTERM)

    def wait(self) -> tuple[int, int]:
        """(exit code or negative signal, peak resident kB)."""
        _, status, usage = os.wait4(self._child.pid, 0)
        self._child.returncode = os.waitstatus_to_exitcode(status)
        self._reader.join(timeout=2)
        return self._child.returncode, usage.ru_maxrss

    def last_lines(self) -> list[str]:
        return last_words.last(list(self._tail))


def _rotate(log: Path) -> None:
    """Keep at most three files of 20 MB."""
    if not log.exists() or log.stat().st_size < LOG_BYTES:
        return
    for number in range(LOG_FILES - 1, 0, -1):
        older = log.with_suffix(f".log.{number}")
        newer = log if number == 1 else log.with_suffix(f".log.{number - 1}")
        if newer.exists():
            newer.replace(older)


def _end_with_leash() -> None:
    """Whoever held the other end is gone, however it went, and nobody reads what the session writes any more. What left
    the group (a world's games) carries the session's mark."""
    while os.read(0, 1024):  # not by sys.stdin, whose lock Python wants at its end
        pass
    with contextlib.suppress(Exception):
        end_marked(SESSION, session_value(Path(sys.argv[1])), patience=2.0)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    os.umask(0o077)
    if sys.argv[2:] == ["--leash"]:
        if os.getpgrp() != os.getpid():
            os.setpgid(0, 0)
        threading.Thread(target=_end_with_leash, name="leash", daemon=True).start()
    sys.exit(supervise(Path(sys.argv[1])))

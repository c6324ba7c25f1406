"""Locks: `worker.lock` says who runs a session, and a few slots of this machine say who may train now.

A lock is `flock` on a descriptor that no child keeps (close-on-exec, and closed after a bare fork), so it is
free the moment its owner is gone, however it went. Dead = the lock is free; nothing else says so.
Standard library only: the supervisor imports it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from rlgpt.store.errors import BadPlace, DiskFull, LeaseTaken, NoSession
from rlgpt.store.home import home
from rlgpt.store.limits import SLOTS, limits
from rlgpt.store.sqlite_errors import is_full

__all__ = ["Lease", "LeaseTaken", "Owner", "TrainingSlot", "training_slot"]

SLOT_DESCRIPTOR = "RLGPT_SLOT_DESCRIPTOR"
"""Variable of a worker's environment: the descriptor of the slot that its supervisor hands over."""
WORKER = "worker.lock"
WRITER = "writer.lock"
PATIENCE = 0.2
"""Seconds an acquirer insists. A mere question (`held`) takes a shared lock for an instant: it is always waited for."""


class Owner(NamedTuple):
    pid: int
    host: str
    since: float
    """UTC seconds."""


class Lease:
    """An exclusive lock on one file of a session's folder; a context manager."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        _held.add(self)

    @classmethod
    def acquire(
        cls, folder: Path, name: str = WORKER, patience: float = PATIENCE, holder: Owner | None = None
    ) -> Lease:
        """Raises LeaseTaken if another process still has it after `patience` seconds, BadPlace where it is another
        user's or cannot be written, DiskFull where there is no lock file yet and no room for one. `holder`: for whom
        this process has it, where that is another one."""
        try:
            descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError as error:  # deleted, or moved away, since it was listed
            raise NoSession(f"session {folder.name} is no longer there") from error
        except PermissionError as error:
            raise _unusable(folder / name, error) from error
        except OSError as error:
            if not is_full(error):
                raise
            raise DiskFull(f"the disk of {folder} has no room for one more file, {name}: remove any other") from error
        until = time.monotonic() + patience
        while not _try(descriptor, fcntl.LOCK_EX):
            if _try(descriptor, fcntl.LOCK_SH):  # nobody has it: somebody asks just now, and on a busy machine for long
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            elif time.monotonic() >= until:
                os.close(descriptor)
                who = owner(folder, name)
                by = f" by process {who.pid} on {who.host}" if who and who.pid else ""
                raise LeaseTaken(f"session {folder.name} is already run{by}; attach to it, or stop it first")
            time.sleep(0.01)
        lease = cls(descriptor)
        try:
            lease.tell(holder)
        except OSError as error:
            lease.release()
            raise _unusable(folder / name, error) from error
        return lease

    def tell(self, holder: Owner | None = None) -> None:
        """For whom it is held from now on; this process if nobody is named. On a full disk, where only who holds it can
        make room, it is held without a word, as before the first one is written. Raises OSError."""
        words = json.dumps((holder or Owner(os.getpid(), socket.gethostname(), time.time()))._asdict()).encode()
        os.ftruncate(self._descriptor, 0)
        try:
            os.pwrite(self._descriptor, words, 0)
        except OSError as error:
            if not is_full(error):
                raise

    @staticmethod
    def held(folder: Path, name: str = WORKER) -> bool:
        """Whether a living process has the lock."""
        return owner(folder, name) is not None

    def fileno(self) -> int:
        """The descriptor. A process that inherits it holds the lock too, until it closes it or ends."""
        return self._descriptor

    @property
    def alive(self) -> bool:
        return self._descriptor >= 0

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            _held.discard(self)

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


_held: set[Lease] = set()


def _drop_in_child() -> None:
    for lease in list(_held):
        lease.release()


os.register_at_fork(after_in_child=_drop_in_child)


def owner(folder: Path, name: str = WORKER) -> Owner | None:
    """The living owner of the lock, None when it is free. Raises BadPlace where it is another user's."""
    try:
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise _unusable(folder / name, error) from error
    try:
        if _try(descriptor, fcntl.LOCK_SH):
            return None
        try:
            words = json.loads(os.pread(descriptor, 1000, 0))
            return Owner(int(words["pid"]), str(words["host"]), float(words["since"]))
        except (ValueError, KeyError, TypeError):  # locked, and not written yet, or on a full disk
            return Owner(0, socket.gethostname(), time.time())
    finally:
        os.close(descriptor)


def _unusable(lock: Path, error: OSError) -> BadPlace:
    """A lock of another user (of root, after `sudo rlgpt run`), or one that the disk does not take, as an error of the
    store: who goes through many sessions leaves this one out and goes on."""
    return BadPlace(f"{lock}: {error.strerror}")


def _try(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def training_slot(
    folder: Path, on_wait: Callable[[], object], while_waiting: Callable[[], object] = lambda: None
) -> Iterator[Lease]:
    """One of the slots of this machine's store; `on_wait` is called once if all are taken, `while_waiting` every half
    second: what it raises ends the wait."""
    announced = False
    while (lease := _free_slot(folder)) is None:
        if not announced:
            on_wait()
            announced = True
        while_waiting()
        time.sleep(0.5)
    with lease:
        yield lease


def _free_slot(folder: Path) -> Lease | None:
    """How many slots there are is the session's setting `limits.host_slots`. Raises BadPlace where all of them are
    another user's."""
    slots = home() / "slots"
    slots.mkdir(mode=0o700, parents=True, exist_ok=True)
    barred: list[BadPlace] = []
    most = int(limits(folder).get("host_slots", SLOTS))
    for number in range(most):
        try:
            return Lease.acquire(slots, f"slot-{number}.lock", patience=0.0)
        except LeaseTaken:
            continue
        except BadPlace as error:  # of root, after `sudo rlgpt run`: another slot may do
            barred.append(error)
    if barred and len(barred) == most:  # no wait would help
        raise barred[0]
    return None


class TrainingSlot:
    """A worker's slot: handed over by its supervisor, given back while the session is paused or waits for a person,
    and taken again. A worker without a supervisor has none and needs none."""

    def __init__(self, folder: Path, lease: Lease | None = None) -> None:
        self._folder, self._lease, self._needed = folder, lease, lease is not None

    @classmethod
    def inherited(cls, folder: Path) -> TrainingSlot:
        """That of this process's environment."""
        descriptor = os.environ.pop(SLOT_DESCRIPTOR, "")
        if not descriptor:
            return cls(folder)
        os.set_inheritable(int(descriptor), False)
        lease = Lease(int(descriptor))
        lease.tell()
        return cls(folder, lease)

    def give_back(self) -> None:
        if self._lease is not None:
            self._lease.release()
            self._lease = None

    def take(self) -> bool:
        """Whether this session may train now: it has a slot, or one was free."""
        if self._needed and self._lease is None:
            self._lease = _free_slot(self._folder)
        return self._lease is not None or not self._needed

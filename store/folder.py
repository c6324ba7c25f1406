"""Where a session lives: `sessions/<id>/{session.db, worker.lock, worker.log, artifacts/}`.

Ids sort by time and can be read: `261121-013012-x7qmk` (UTC).
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from rlgpt.store import atomic
from rlgpt.store.database import connect
from rlgpt.store.errors import AlreadyThere, BadPlace, StoreError
from rlgpt.store.home import home

DATABASE = "session.db"
ARTIFACTS = "artifacts"
LOG = "worker.log"
RESERVE = "reserve"
"""File that is kept aside while a session runs, and given up on a full disk: room for its last words."""
FRAMES_STOP_BELOW = 1_000_000_000
"""Bytes free below which no more frames are kept."""
SESSIONS_STOP_BELOW = 200_000_000
"""Bytes free below which a session ends cleanly and none starts."""
ID = re.compile(r"[a-z0-9][a-z0-9-]{2,40}\Z")
"""An id that may come from elsewhere: it becomes the name of a folder."""
_MADE = re.compile(r"[0-9]{6}-[0-9]{6}-[a-z0-9]+\Z")
"""What `new_id` makes."""
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_NETWORK = (
    "nfs", "cifs", "smb", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "fuse.glusterfs",
    "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.ceph", "fuse.gcsfuse", "fuse.grpcfuse", "ncpfs",
    "webdav", "orangefs",
)  # fmt: skip


@dataclass(frozen=True)
class SessionFolder:
    path: Path

    @property
    def id(self) -> str:
        return self.path.name

    @cached_property
    def name(self) -> str:
        """Empty where it cannot be read: a damaged session goes by its id alone."""
        unreadable = (StoreError, sqlite3.Error, ValueError)  # ValueError: what is there is no text
        with contextlib.suppress(*unreadable), contextlib.closing(connect(self.database)) as base:
            row = base.execute("SELECT name FROM session").fetchone()
            return str(row[0]) if row else ""
        return ""

    @property
    def database(self) -> Path:
        return self.path / DATABASE

    @property
    def artifacts(self) -> Path:
        return self.path / ARTIFACTS

    def artifact_files(self) -> list[Path]:
        """By name, with those that are being written (they begin with a dot). None where the folder is missing: git
        and some copies leave out an empty one."""
        return sorted(self.artifacts.iterdir()) if self.artifacts.is_dir() else []

    @property
    def log(self) -> Path:
        return self.path / LOG

    def __fspath__(self) -> str:
        return str(self.path)


Place = Path | SessionFolder


def path_of(place: Place) -> Path:
    return place.path if isinstance(place, SessionFolder) else place


def root() -> Path:
    return home() / "sessions"


def sessions() -> list[SessionFolder]:
    """All of this store, oldest first, whatever state they are in. Raises BadPlace."""
    try:
        return sessions_in(root())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BadPlace(f"the sessions in {root()} cannot be listed: {error.strerror or error}") from error


def sessions_in(parent: Path) -> list[SessionFolder]:
    """Oldest first. Other folders, such as the lost+found of a disk, are none: a session has a database, or, where that
    is lost or cannot be looked at, at least an id that was made for one. Raises OSError."""
    with os.scandir(parent) as entries:
        names = sorted(e.name for e in entries if e.is_dir() and not e.name.startswith("."))
    folders = [SessionFolder(parent / name) for name in names]
    return [folder for folder in folders if _MADE.match(folder.id) or os.path.lexists(folder.database)]


LONG_AGO = 86_400.0
"""Seconds after which the folder of a process that is not known here is taken for unfinished: it may live in a
container that shares the sessions, under another number."""


@dataclass(frozen=True)
class Staging:
    """A folder being filled, of this process alone; others do not see it before `publish`."""

    id: str
    parent: Path

    @property
    def staging(self) -> Path:
        return self.parent / f".new-{self.id}.{os.getpid()}"

    def publish(self) -> SessionFolder:
        """Raises AlreadyThere where another process was first."""
        final = self.parent / self.id
        atomic.sync(self.staging)
        try:
            self.staging.rename(final)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise AlreadyThere(f"session {self.id} is already here") from error
            raise
        atomic.sync(self.parent)
        return SessionFolder(final)

    def drop(self) -> None:
        shutil.rmtree(self.staging, ignore_errors=True)


def prepare(session_id: str | None = None, parent: Path | None = None) -> Staging:
    """An empty folder for a new session, in this store or in `parent`, with an empty private database file. Raises
    AlreadyThere, BadPlace."""
    parent = parent or root()
    check_place(parent)
    try:
        atomic.private_folder(parent)
        atomic.drop_unfinished(parent, ".new-", LONG_AGO)
        if session_id:
            atomic.drop_unfinished(parent, f".new-{session_id}.")
        while True:
            staging = Staging(session_id or new_id(), parent)
            if (parent / staging.id).exists():
                if session_id:
                    raise AlreadyThere(f"session {session_id} is already here")
                continue
            try:
                staging.staging.mkdir(mode=0o700)
                break
            except FileExistsError:
                if session_id:  # of a process that had this number before
                    staging.drop()
        (staging.staging / ARTIFACTS).mkdir(mode=0o700)
        os.close(os.open(staging.staging / DATABASE, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as error:
        raise BadPlace(f"cannot make a session in {parent}: {error.strerror or error}") from error
    return staging


def new_id() -> str:
    """Five letters make 28 million ids a second: two machines that share a store will not meet."""
    tail = "".join(secrets.choice(_LETTERS) for _ in range(5))
    return time.strftime("%y%m%d-%H%M%S-", time.gmtime()) + tail


# ---- the place ----------------------------------------------------------------------------------
def check_place(path: Path) -> None:
    """Raises BadPlace on a network file system or without space."""
    kind = file_system(path)
    if any(kind == n or kind.startswith(n) for n in _NETWORK):
        raise BadPlace(
            f"{path} is on a network file system ({kind}), where SQLite loses data: "
            "set RLGPT_HOME to a folder on a local disk"
        )
    if space(path) == "none":
        raise BadPlace(
            f"only {free_bytes(path) // 1_000_000} MB are free at {path}: make room "
            "there (`rlgpt store prune`), or name a folder on another disk (RLGPT_HOME, for this machine's own store)"
        )


def require_outside(target: Path) -> None:
    """Raises StoreError for a copy among the sessions of this store: it would be listed as one of them, or go with the
    session that it lies in."""
    real = Path(os.path.realpath(target))  # `resolve` raises for a link to itself
    if root().resolve() in (real, *real.parents):
        raise StoreError(f"{target} lies among the sessions of this store: name a folder elsewhere")


def file_system(path: Path, mounts: Callable[[], list[tuple[str, str]]] | None = None) -> str:
    """Type of the file system that holds `path` (which need not exist yet), "" if the system does not say."""
    real = os.path.realpath(path)
    best, kind = "", ""
    for point, found in (mounts or _mounts)():
        if (real == point or real.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, found
    return kind


def _mounts() -> list[tuple[str, str]]:
    import psutil  # late: only a new session asks

    return [(part.mountpoint, part.fstype.lower()) for part in psutil.disk_partitions(all=True)]


def free_bytes(path: Path) -> int:
    while not path.exists():
        path = path.parent
    state = os.statvfs(path)
    return state.f_bavail * state.f_frsize


def space(path: Path) -> Literal["ok", "no frames", "none"]:
    """The storage law: below 1 GB free no more frames, below 200 MB the session ends cleanly."""
    free = free_bytes(path)
    return "none" if free < SESSIONS_STOP_BELOW else "no frames" if free < FRAMES_STOP_BELOW else "ok"

"""`rlgpt store size | check | prune | backup | delete`: what the store takes, whether it is sound, and less of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rlgpt.store import artifacts, atomic, catalog, query
from rlgpt.store.address import MARK
from rlgpt.store.database import connect
from rlgpt.store.errors import AlreadyThere, BadPlace, Damaged, DiskFull, StoreError, WriteFailed
from rlgpt.store.folder import DATABASE, RESERVE, Place, SessionFolder, path_of, require_outside
from rlgpt.store.home import home
from rlgpt.store.lease import WORKER, WRITER, Lease
from rlgpt.store.placing import placed_on
from rlgpt.store.reader import Reader
from rlgpt.store.revision import found
from rlgpt.store.row_types import CheckpointRow
from rlgpt.store.snapshot import copy_database, unguarded
from rlgpt.store.soundness import faults, torn
from rlgpt.store.sqlite_errors import is_full

BYTES_PER_ENV_STEP = 200
"""The storage law: at most 200 MB per 1M env steps."""
LEAST_STEPS = 100_000
"""Below this many env steps the law speaks of this many."""


@dataclass(frozen=True)
class Size:
    """Bytes on the disk."""

    id: str
    total: int
    database: int
    artifacts: int
    logs: int
    tables: dict[str, int]
    """Bytes of the values in each table."""
    env_steps: int

    @property
    def allowed(self) -> int:
        return BYTES_PER_ENV_STEP * max(self.env_steps, LEAST_STEPS)


@dataclass
class Pruned:
    """What prune removed; bytes are those freed on the disk."""

    id: str
    freed: int = 0
    checkpoints: int = 0
    films: int = 0


def size(place: Place) -> Size:
    """Raises StoreError."""
    folder = SessionFolder(path_of(place))
    with Reader(folder) as reader:
        env_steps = reader.history_at().spent.env_steps
    with contextlib.closing(_open(folder, "ro")) as base:
        tables = {name: _table_bytes(base, table) for name, table in query.every(base).items()}
    database = sum(_bytes(folder.path / f"{DATABASE}{tail}") for tail in ("", "-wal", "-shm"))
    logs = sum(_bytes(p) for p in folder.path.glob("worker.log*"))
    artifact_bytes = catalog.disk_bytes(folder.artifacts)
    return Size(folder.id, catalog.disk_bytes(folder.path), database, artifact_bytes, logs, tables, env_steps)


def check(place: Place) -> list[str]:
    """Everything that is wrong with a session, as sentences; [] if it is sound. Safe while it is running."""
    folder = SessionFolder(path_of(place))
    try:
        with contextlib.closing(_open(folder, "ro")) as base:
            base.execute("BEGIN")  # one moment of a session that is being written
            problems = faults(base, folder.database)
            kept = base.execute("SELECT artifact FROM checkpoint WHERE kind = 'boundary'").fetchall()
    except Damaged as error:  # of the schema: the sentence names the session
        return [str(error)]
    except (StoreError, sqlite3.Error, OSError) as error:
        return [f"session {folder.id}: {error}"]
    try:
        names = {path.name for path in folder.artifact_files()}
    except OSError as error:
        problems.append(f"the files in {folder.artifacts} cannot be listed: {error.strerror}")
    else:
        whole = sorted(name for name in names if not name.startswith("."))
        problems += [fault for name in whole if (fault := _file_fault(folder, name))]
        problems += [
            f"the checkpoint {name} is missing: a fork from it is not possible" for (name,) in kept if name not in names
        ]
    return [f"session {folder.id}: {problem}" for problem in problems]


def _file_fault(folder: SessionFolder, name: str) -> str:
    try:
        artifacts.get(folder.artifacts, name)
    except StoreError as error:
        return str(error) if (folder.artifacts / name).exists() else ""  # a rollout checkpoint, superseded meanwhile
    except OSError as error:  # of another user, or where the disk does not answer
        return f"the file {name} in {folder.artifacts} cannot be read: {error.strerror}"
    return ""


def prune(place: Place, *, frames: bool = False) -> Pruned:
    """Free what no resume or fork needs: old rollout checkpoints, left-over files, spare pages.

    `frames`: the stored frames too; replay then has no world pane. Raises LeaseTaken for a running session, StoreError.
    """
    folder = SessionFolder(path_of(place))
    done = Pruned(folder.id)
    before = catalog.disk_bytes(folder.path)
    if damage := torn(folder.database):
        raise damage
    with at_rest(folder):
        try:
            _prune(folder, done, frames)
        except sqlite3.Error as error:
            raise _unfinished(error, folder, done) from error
    done.freed = max(0, before - catalog.disk_bytes(folder.path))
    return done


def _unfinished(error: sqlite3.Error, folder: SessionFolder, done: Pruned) -> StoreError:
    """The files are gone by then, and perhaps the films: only the database could not be written."""
    gone = f"{done.checkpoints} files and {done.films} films of session {folder.id} were removed"
    if is_full(error):
        room = "make as much room as it takes, or move it to another disk (`rlgpt store move`), and prune it again"
        return DiskFull(f"the disk of {folder.path} is full: {gone}, its database could not be made smaller; {room}")
    return WriteFailed(f"{gone}, its database could not be written: {error}")


def backup(place: Place, target: Path) -> Path:
    """Copy a session, running or not, to `target`/<id>; returns that. Raises AlreadyThere, BadPlace, StoreError."""
    folder = SessionFolder(path_of(place))
    final = target / folder.id
    partial = target / f".{folder.id}.{os.getpid()}"
    if final.exists():
        raise AlreadyThere(f"{final} is already there")
    require_outside(target)
    try:
        atomic.private_folder(target)
        atomic.drop_unfinished(target, f".{folder.id}.")
        partial.mkdir(mode=0o700)
        copy_database(folder.database, partial / DATABASE)
        (partial / "artifacts").mkdir(mode=0o700)
        for path in folder.artifact_files():
            if not path.name.startswith("."):
                with contextlib.suppress(FileNotFoundError):  # a rollout checkpoint, superseded meanwhile
                    copy = partial / "artifacts" / path.name
                    shutil.copy2(path, copy)
                    copy.chmod(0o600)
        if tags := catalog.tags(folder):
            catalog.set_tags(SessionFolder(partial), tags)
        partial.rename(final)
        atomic.sync(target)
    except OSError as error:
        raise BadPlace(f"session {folder.id} could not be copied to {target}: {error.strerror}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return final


def delete(place: Place) -> None:
    """Remove a session for good. Raises LeaseTaken while it runs, BadPlace for anything outside the store."""
    folder = SessionFolder(path_of(place))
    if folder.path.resolve().parent != (home() / "sessions").resolve():
        raise BadPlace(f"{folder.path} is not a session of this store")
    with at_rest(folder):
        remove(folder)


@contextlib.contextmanager
def at_rest(folder: SessionFolder) -> Iterator[None]:
    """No worker and no writer has the session, or begins to. Raises LeaseTaken; StoreError for one that may go on
    elsewhere with nobody here who follows it."""
    with Lease.acquire(folder.path, WORKER), Lease.acquire(folder.path, WRITER):
        if (cluster := placed_on(folder.path)) and _goes_on(folder):
            raise StoreError(
                f"session {folder.id} may go on at the Ray cluster {cluster}: follow it (`rlgpt resume {folder.id}`) "
                f"and stop it first, or, if that cluster is gone for good, delete {folder.path / MARK}"
            )
        yield


def _goes_on(folder: SessionFolder) -> bool:
    with contextlib.suppress(StoreError), Reader(folder) as reader:
        return reader.history_at().status != "ended"
    return False


def remove(folder: SessionFolder) -> None:
    """For good, and whole at once: what is half removed is no session any more. Call it `at_rest`. Raises StoreError
    where its files cannot be deleted."""
    for left in folder.path.parent.glob(".gone-*"):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    hidden = folder.path.with_name(f".gone-{folder.id}")
    folder.path.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)  # what another process removes meanwhile is no error
    if hidden.exists():
        raise StoreError(f"session {folder.id} is no longer listed, but files of it cannot be deleted: {hidden}")


def _prune(folder: SessionFolder, done: Pruned, frames: bool) -> None:
    for path in [*folder.path.glob("worker.log.*"), folder.path / RESERVE]:  # first: even to read takes some room
        path.unlink(missing_ok=True)
    with Reader(folder) as reader:
        history = reader.history_at()
        needed = {row["artifact"] for row in reader.rows(CheckpointRow) if row["kind"] == "boundary"}
        referenced = {row["artifact"] for row in reader.rows(CheckpointRow)}
    needed |= {run.checkpoint.artifact for run in history.runs.values() if run.checkpoint}
    for path in folder.artifact_files():
        if path.name.startswith(".") or (path.name in referenced and path.name not in needed):
            path.unlink()
            done.checkpoints += 1
    with contextlib.closing(_open(folder, "rw")) as base:
        if frames:
            base.execute("BEGIN IMMEDIATE")
            with unguarded(base, ("frame",)):
                episodes = "SELECT DISTINCT source, owner, episode FROM frame"
                films = int(base.execute(f"SELECT count(*) FROM ({episodes})").fetchone()[0])
                base.execute("DELETE FROM frame")
            base.execute("COMMIT")
            done.films = films
        base.execute("VACUUM")
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _open(folder: SessionFolder, mode: Literal["ro", "rw"]) -> sqlite3.Connection:
    base = connect(folder.database, mode, timeout=30)
    try:
        found(base, folder.database)
    except BaseException:
        base.close()
        raise
    return base


def _table_bytes(base: sqlite3.Connection, table: query.Table) -> int:
    lengths = " + ".join(f"coalesce(length(CAST({query.quoted(c)} AS BLOB)), 0)" for c in table.columns)
    row = base.execute(f"SELECT coalesce(sum({lengths}), 0) FROM {query.quoted(table.name)}").fetchone()
    return int(row[0])


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0

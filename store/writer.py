"""The only writer of a session: every row of a worker goes through here, in transactions, in order.

A transaction collects rows and touches the database only when its block ends, in one `BEGIN IMMEDIATE` ...
`COMMIT`: whatever the block does, a console that sends a command meanwhile never waits for it, and a block
that raises leaves nothing behind. Threads queue for the block.
"""

from __future__ import annotations

import contextlib
import errno
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal, NamedTuple, cast

import zstandard

from rlgpt.store import artifacts, query, tables
from rlgpt.store.clock import ActiveClock
from rlgpt.store.database import connect
from rlgpt.store.errors import BadRow, BadSchema, DiskFull, StoreError, WriteFailed
from rlgpt.store.event_payloads import kind_of, payload_of
from rlgpt.store.events import Event
from rlgpt.store.folder import DATABASE, RESERVE, Place, SessionFolder, path_of, space
from rlgpt.store.history import History, fold, fold_all
from rlgpt.store.lease import WRITER, Lease
from rlgpt.store.plain import text
from rlgpt.store.revision import REVISION, found
from rlgpt.store.row_types import JsonObject, Row
from rlgpt.store.rows import Encoded, encode_values
from rlgpt.store.soundness import explained

RESERVE_BYTES = 1_000_000
"""Of the file RESERVE."""
WAL_LIMIT = 64_000_000
"""Bytes at which the log is emptied even if a reader must be waited for."""


class Queued(NamedTuple):
    """A command in the inbox, in the order of `rowid`."""

    rowid: int
    id: str
    at: float
    author: str
    kind: str
    payload: JsonObject
    revision: int | None


class Transaction:
    """Rows that will be written together, or not at all."""

    def __init__(self, stamp: Callable[[type[tables.Row], Mapping[str, object]], Encoded]) -> None:
        self._stamp = stamp
        self.rows: list[Encoded] = []

    def add(self, row: tables.Row) -> int:
        """Returns the row's seq. Raises BadRow."""
        return self._add(type(row), vars(row))

    def event(self, event: Event) -> int:
        return self._add(tables.Event, {"kind": kind_of(event), "payload": payload_of(event)})

    def log(self, level: str, event: str, /, **fields: Any) -> int:
        return self._add(tables.Log, {"level": level, "event": event, "fields": fields})

    def _add(self, model: type[tables.Row], attributes: Mapping[str, object]) -> int:
        encoded = self._stamp(model, attributes)
        self.rows.append(encoded)
        return int(encoded.values["seq"])


class Writer:
    """Opens a session for writing; raises LeaseTaken if another writer lives, BadSchema, BadPlace.

    `history` is the fold of all that is committed, never of anything else. `clock` is the active clock: it
    stands still while the history says waiting or paused, and before the first `started` or `resumed`.
    """

    def __init__(self, place: Place, *, patience: float = 5.0) -> None:
        self.folder = SessionFolder(path_of(place))
        self._lock = threading.RLock()
        self._open: Transaction | None = None
        self._known_texts: set[str] = set()
        self._texts: dict[str, bytes] = {}
        self._compressor = zstandard.ZstdCompressor(level=3)
        self._synchronous = ""
        self._sql: dict[str, str] = {}
        self._closed = False
        self._looked = -1.0
        self._room: Literal["ok", "no frames", "none"] = "ok"
        self._lease = Lease.acquire(self.folder.path, WRITER, patience)
        try:
            self._base = self._connect()
            self.history = self._fold()
        except BaseException:
            self._lease.release()
            raise
        self.incarnation = self.history.incarnation + 1
        self.session_id = str(self.history.session["session_id"])
        self._seq = self.history.seq
        self.clock = ActiveClock(self.history.active)
        self._keep_reserve()

    # ---- rows -----------------------------------------------------------------------------------
    @contextlib.contextmanager
    def transaction(self, durable: bool = False) -> Iterator[Transaction]:
        """`durable`: on the disk when the block ends (people's rows, changes of phase), else within seconds.

        Raises DiskFull or WriteFailed from its end; nothing of it is then stored or folded.
        """
        with self._lock:
            self._check_open()
            if self._open is not None:
                raise RuntimeError("a transaction is already open in this thread")
            seq = self._seq
            self._open = Transaction(self._stamp)
            try:
                yield self._open
                self._commit(self._open.rows, durable)
            except BaseException:
                self._seq = seq
                raise
            finally:
                self._open = None

    def add(self, row: tables.Row, durable: bool = False) -> int:
        """One row: in this thread's open transaction if there is one, else in its own."""
        with self._joined(durable) as tx:
            return tx.add(row)

    def event(self, event: Event, durable: bool = True) -> int:
        with self._joined(durable) as tx:
            return tx.event(event)

    def text(self, body: str) -> str:
        """The hash of a text that is stored at the latest with the next committed transaction."""
        body = text(body)
        name = artifacts.digest(body.encode())
        with self._lock:
            if name not in self._known_texts and name not in self._texts:
                self._texts[name] = self._compressor.compress(body.encode())
        return name

    def artifact(self, body: bytes) -> str:
        """Store bytes as a file that survives a power cut; returns its hash. Raises DiskFull."""
        try:
            return artifacts.put(self.folder.artifacts, body)
        except OSError as error:
            raise self._disk_error(error, "1 file") from error

    def discard(self, artifact: str) -> None:
        """Forget a file that no later step needs (all but the last rollout checkpoints)."""
        artifacts.discard(self.folder.artifacts, artifact)

    def commands_after(self, rowid: int) -> list[Queued]:
        """The inbox behind `rowid`; 0 for all of it. Which of them were taken is in `history.commands`."""
        with self._lock:
            self._check_open()
            rows = self._base.execute(
                "SELECT rowid, id, at, author, kind, payload, revision FROM command WHERE rowid > ? ORDER BY rowid",
                (rowid,),
            ).fetchall()
        return [Queued(r[0], r[1], r[2], r[3], r[4], json.loads(r[5]), r[6]) for r in rows]

    def room(self) -> Literal["ok", "no frames", "none"]:
        """What the storage law allows now, looked at once a second: below 1 GB free no more frames, below 200 MB
        the session should end cleanly."""
        now = time.monotonic()
        if now - self._looked >= 1.0:
            self._looked, self._room = now, space(self.folder.path)
        return self._room

    # ---- life -----------------------------------------------------------------------------------
    def close(self) -> None:
        """Empties the log into the database, so that the folder can be copied or read on any medium."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                with contextlib.suppress(sqlite3.Error):  # on a full disk the log stays beside, and is read with it
                    self._base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                self._base.close()
                (self.folder.path / RESERVE).unlink(missing_ok=True)
                self._lease.release()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- inside ---------------------------------------------------------------------------------
    def _check_open(self) -> None:
        if self._closed:
            raise WriteFailed(f"session {self.folder.id} is closed for writing")

    @contextlib.contextmanager
    def _joined(self, durable: bool) -> Iterator[Transaction]:
        """This thread's open transaction if there is one, else its own."""
        with self._lock:
            if self._open is not None:
                yield self._open
                return
            with self.transaction(durable) as tx:
                yield tx

    def _stamp(self, model: type[tables.Row], attributes: Mapping[str, object]) -> Encoded:
        stamp = {
            "seq": self._seq + 1,
            "session_id": self.session_id,
            "incarnation": self.incarnation,
            "at": time.time(),
            "active": self.clock.read(),
        }
        encoded = encode_values(model, {**attributes, **stamp})
        self._seq += 1
        return encoded

    def _commit(self, rows: Sequence[Encoded], durable: bool) -> None:
        if not rows:
            return
        try:
            self._set_synchronous("FULL" if durable else "NORMAL")
            self._base.execute("BEGIN IMMEDIATE")
            self._base.executemany("INSERT OR IGNORE INTO text (hash, body) VALUES (?, ?)", self._new_texts())
            for table, group in groupby(rows, key=attrgetter("table")):
                values = [_bound(encoded) for encoded in group]
                self._base.executemany(self._insert(table, rows), values)
            self._base.execute("COMMIT")
        except (sqlite3.Error, OverflowError) as error:
            with contextlib.suppress(sqlite3.Error):
                self._base.execute("ROLLBACK")
            raise self._disk_error(error, f"{len(rows)} rows") from error
        self._known_texts.update(self._texts)
        self._texts.clear()
        for encoded in rows:
            fold(self.history, encoded.table, cast(Row, encoded.values))
        self.clock.run(self.history.status == "running")
        self._trim_log()

    def _insert(self, table: str, rows: Sequence[Encoded]) -> str:
        if table not in self._sql:
            names = next(encoded.values for encoded in rows if encoded.table == table)
            columns = ", ".join(query.quoted(name) for name in names)
            marks = ", ".join("?" * len(names))
            self._sql[table] = f"INSERT INTO {query.quoted(table)} ({columns}) VALUES ({marks})"
        return self._sql[table]

    def _new_texts(self) -> list[tuple[str, bytes]]:
        stored_query = "SELECT 1 FROM text WHERE hash = ?"
        return [(h, b) for h, b in self._texts.items() if not self._base.execute(stored_query, (h,)).fetchone()]

    def _set_synchronous(self, level: str) -> None:
        if level != self._synchronous:
            self._base.execute(f"PRAGMA synchronous={level}")
            self._synchronous = level

    def _trim_log(self) -> None:
        log = self.folder.path / f"{DATABASE}-wal"
        if log.exists() and log.stat().st_size > WAL_LIMIT:
            self._base.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _connect(self) -> sqlite3.Connection:
        base = connect(self.folder.database, "rw", timeout=30.0)
        try:
            revision = found(base, self.folder.database)
            if revision < REVISION:
                from rlgpt.store.migrations import upgrade  # late: Alembic costs half a second

                upgrade(base, self.folder.database)
            base.execute("PRAGMA journal_mode=WAL")
        except sqlite3.Error as error:
            base.close()
            raise self._disk_error(error, "its database") from error
        except BaseException:
            base.close()
            raise
        return base

    def _fold(self) -> History:
        try:
            history = fold_all(query.changes(self._base, query.folded(query.sequenced(self._base)), after=0))
            if not history.session:
                raise BadSchema(f"{self.folder.database} holds no session")
        except StoreError:
            self._base.close()
            raise
        except Exception as error:
            self._base.close()
            if damage := explained(self.folder.database):
                raise damage from error
            raise
        return history

    def _keep_reserve(self) -> None:
        with contextlib.suppress(OSError):  # without it last words may not fit; nothing else changes
            (self.folder.path / RESERVE).write_bytes(b"\0" * RESERVE_BYTES)

    def _disk_error(self, error: Exception, what: str) -> StoreError:
        code = getattr(error, "sqlite_errorcode", 0) or 0
        number = getattr(error, "errno", 0)
        io_error = code & 0xFF == sqlite3.SQLITE_IOERR
        if code == sqlite3.SQLITE_FULL or number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or io_error:
            (self.folder.path / RESERVE).unlink(missing_ok=True)
            return DiskFull(
                f"the disk of {self.folder.path} is full ({error}): {what} are lost, all else is safe; "
                "make room (`rlgpt store prune`), then `rlgpt resume` the session"
            )
        if code == sqlite3.SQLITE_CONSTRAINT or isinstance(error, OverflowError):
            return BadRow(f"session {self.folder.id} refused {what}: {error}")
        return WriteFailed(f"session {self.folder.id} could not write {what}: {error}")


_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
"""Made once: `json.dumps` makes another encoder at every call that names these options."""


def _bound(encoded: Encoded) -> list[Any]:
    return [_JSON.encode(v) if isinstance(v, (dict, list)) else v for v in encoded.values.values()]

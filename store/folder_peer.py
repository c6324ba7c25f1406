"""A session's folder as a peer: where a copy comes from, or where one is kept.

What arrives is believed in nothing, as a bundle is: texts and files must be what their hashes say, rows must be
well-formed and fold. Until they are, nothing is committed.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rlgpt.store import artifacts, inbox, progress, query, soundness
from rlgpt.store.commands import parse_command
from rlgpt.store.database import connect
from rlgpt.store.errors import BadBundle, Damaged, DiskFull, StoreError, WriteFailed
from rlgpt.store.folder import DATABASE, ID, SessionFolder, prepare
from rlgpt.store.history import History, fold_all
from rlgpt.store.lease import WRITER, Lease, owner
from rlgpt.store.peers import COMMAND, LIMIT, NOTHING, PRUNABLE, Batch, Behind, Head, RemoteWorker, row_bytes
from rlgpt.store.revision import REVISION, REWRITTEN, found
from rlgpt.store.row_types import JsonObject
from rlgpt.store.snapshot import copy_database
from rlgpt.store.sqlite_errors import is_full
from rlgpt.store.transactions import first_rows


class FolderPeer:
    """The session in `path`, which need not be there yet. `rollouts_every`: seconds between two rollout checkpoints
    that go out; a session that is lost goes on from the last one."""

    def __init__(self, path: Path, *, rollouts_every: float = 0.0) -> None:
        self.folder = SessionFolder(path)
        self._rollouts_every = rollouts_every
        self._last_rollout = -rollouts_every
        self._reading: sqlite3.Connection | None = None
        self._history = History()
        """The fold of all that was appended here, while it is still the end."""

    @property
    def place(self) -> str:
        return str(self.folder.path)

    def close(self) -> None:
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    # ---- what is here ---------------------------------------------------------------------------
    def head(self) -> Head:
        if not self.folder.path.exists():
            return NOTHING
        with self._snapshot() as base:
            session = base.execute("SELECT session_id FROM session").fetchone()
            if session is None:
                return NOTHING
            revision = found(base, self.folder.database)
            rows = (
                base.execute(f"SELECT seq, incarnation FROM {query.quoted(name)} ORDER BY seq DESC LIMIT 1").fetchone()
                for name in query.sequenced(base)
            )
            seq, incarnation = max(row for row in rows if row)
            return Head(str(session[0]), seq, incarnation, revision)

    def changed(self) -> int:
        """Another number whenever somebody else committed since."""
        return int(self._base().execute("PRAGMA data_version").fetchone()[0])

    def names(self) -> set[str]:
        if not self.folder.path.exists():
            return set()
        with self._snapshot() as base:
            outside = base.execute("SELECT hash FROM text UNION ALL SELECT id FROM command").fetchall()
        return {row[0] for row in outside} | self._files()

    def mark(self, seq: int) -> str:
        with self._snapshot() as base:
            best: tuple[int, bytes] = (0, b"")
            for name, table in query.sequenced(base).items():
                if name in PRUNABLE:
                    continue
                sql = f"{table.selection().sql} WHERE seq <= ? ORDER BY seq DESC LIMIT 1"
                row = base.execute(sql, (seq,)).fetchone()
                if row and (number := row[table.columns.index("seq")]) > best[0]:
                    best = (number, row_bytes(name, table.columns, row))
        return blake2b(best[1], digest_size=16).hexdigest()

    def since(self, seq: int, names: set[str], limit: int = LIMIT) -> Batch:
        with self._snapshot() as base:
            tables = query.sequenced(base)
            rows, last = _rows_behind(base, tables, seq, limit)
            texts = [row[0] for row in base.execute("SELECT hash FROM text ORDER BY rowid") if row[0] not in names]
            of_one = "SELECT hash, body FROM text WHERE hash = ?"
            new_texts = [base.execute(of_one, (name,)).fetchone() for name in texts]
            commands = base.execute(f"SELECT {', '.join(COMMAND)} FROM command ORDER BY rowid").fetchall()
            files = self._files_needed(base, last) - names
            schema = found(base, self.folder.database)
        return Batch(
            seq,
            last,
            schema,
            {name: tables[name].columns for name in rows},
            rows,
            new_texts,
            {name: body for name in sorted(files) if (body := self._file(name)) is not None},
            [row for row in commands if row[0] not in names],
        )

    def _files_needed(self, base: sqlite3.Connection, upto: int) -> set[str]:
        """The files that belong to the session at this row: of the rollout checkpoints, the newest of each run."""
        sql = "SELECT run, artifact, kind, seq <= ? FROM checkpoint ORDER BY seq"
        checkpoints = base.execute(sql, (upto,)).fetchall()
        newest = {run: name for run, name, _, reached in checkpoints if reached}
        boundaries = {name for _, name, kind, reached in checkpoints if reached and kind == "boundary"}
        if self._rollouts_every:
            if not newest or time.monotonic() - self._last_rollout < self._rollouts_every:
                newest = {}
            else:
                self._last_rollout = time.monotonic()
        others = self._files() - {name for _, name, _, _ in checkpoints}
        return boundaries | set(newest.values()) | others

    def _files(self) -> set[str]:
        with contextlib.suppress(FileNotFoundError):
            return {path.name for path in self.folder.artifact_files() if not path.name.startswith(".")}
        return set()

    def _file(self, name: str) -> bytes | None:
        """None where it is not kept: a checkpoint that was superseded meanwhile, or left out of a bundle."""
        if not (self.folder.artifacts / name).exists():
            return None
        try:
            return artifacts.get(self.folder.artifacts, name)
        except (StoreError, FileNotFoundError):
            if not (self.folder.artifacts / name).exists():
                return None
            raise

    def worker(self) -> RemoteWorker | None:
        lock = owner(self.folder.path)
        return RemoteWorker(lock, progress.read(self.folder.path)) if lock else None

    def send(self, command: JsonObject) -> None:
        """Raises BadCommand, ReadOnly, DiskFull."""
        with self._snapshot() as base:
            if base.execute("SELECT 1 FROM command WHERE id = ?", (command["id"],)).fetchone():
                return
        parsed = parse_command(str(command["kind"]), command["payload"])
        inbox.send(self.folder, parsed, command["revision"], str(command["author"]), str(command["id"]))

    # ---- what comes -----------------------------------------------------------------------------
    def append(self, batch: Batch) -> None:
        """Raises Behind, LeaseTaken while a worker has the session here, BadBundle for what is not sound, DiskFull."""
        try:
            if self.folder.path.exists():
                with Lease.acquire(self.folder.path, WRITER, patience=5.0):
                    self._go_on(batch)
            else:
                self._begin(batch)
        except (*soundness.UNFOLDABLE, OverflowError, sqlite3.ProgrammingError) as error:  # what no row holds
            raise BadBundle(f"what came for {self.place} is no part of a session ({error})") from error
        except (sqlite3.Error, OSError) as error:
            raise _refusal(error, self.folder.path) from error

    def _begin(self, batch: Batch) -> None:
        from rlgpt.store import schema  # late: a source needs no SQLAlchemy

        if not ID.match(self.folder.id):
            raise BadBundle(f"{self.folder.id!r:.80} is not the id of a session")
        if batch.first != 0:
            raise Behind(f"there is nothing at {self.place} yet, and the rows begin behind row {batch.first}")
        staged = prepare(self.folder.id, self.folder.path.parent)
        try:
            with contextlib.closing(sqlite3.connect(staged.staging / DATABASE, isolation_level=None)) as base:
                schema.create(base, batch.schema)
                self._check_outside(batch)
                base.execute("BEGIN IMMEDIATE")
                self._insert(base, batch)
                base.execute("COMMIT")
            soundness.check_database(staged.staging / DATABASE, self.folder.id)
            for body in batch.artifacts.values():
                artifacts.put(staged.staging / "artifacts", body)
            staged.publish()
        finally:
            staged.drop()

    def _go_on(self, batch: Batch) -> None:
        head = self.head()
        fits = batch.schema == head.schema or REWRITTEN <= head.schema < batch.schema <= REVISION
        if batch.first != head.seq or not fits:
            raise Behind(
                f"{self.place} ends at row {head.seq} of schema {head.schema}, and what came goes on from row "
                f"{batch.first} of schema {batch.schema}"
            )
        self._check_outside(batch)
        if batch.schema < REVISION and batch.rows:
            self._rehearse(batch)
        with contextlib.closing(connect(self.folder.database, "rw", timeout=30.0)) as base:
            if head.schema < batch.schema:
                from rlgpt.store.migrations import upgrade  # late: Alembic costs half a second

                upgrade(base, self.folder.database, batch.schema)
            base.execute("PRAGMA synchronous=FULL")
            base.execute("BEGIN IMMEDIATE")
            try:
                self._insert(base, batch)
                if batch.schema == REVISION:
                    self._check_rows(base, batch)
                for body in batch.artifacts.values():
                    artifacts.put(self.folder.artifacts, body)
                base.execute("COMMIT")
            except BaseException:
                self._history = History()
                if base.in_transaction:  # SQLite itself may have rolled it back, as on a full disk
                    base.execute("ROLLBACK")
                raise
            superseded = self._superseded(base)
        for name in superseded:
            artifacts.discard(self.folder.artifacts, name)

    def _superseded(self, base: sqlite3.Connection) -> set[str]:
        """Rollout checkpoints that a newer one of the same run stands for, if that one is here."""
        checkpoints = base.execute("SELECT run, artifact, kind FROM checkpoint ORDER BY seq").fetchall()
        here = self._files()
        newest = {run: name for run, name, _ in checkpoints if name in here}
        boundaries = {name for _, name, kind in checkpoints if kind == "boundary"}
        return {name for _, name, kind in checkpoints if kind == "rollout"} & here - boundaries - set(newest.values())

    def _rehearse(self, batch: Batch) -> None:
        """The fold knows rows of this schema only, and an older database is brought up to it as a whole: so the rows
        are first appended to a copy. Nobody writes such a session any more."""
        with tempfile.TemporaryDirectory(prefix="rlgpt-") as scratch:
            copy = Path(scratch) / DATABASE
            copy_database(self.folder.database, copy)
            with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as base:
                base.execute("BEGIN")
                self._insert(base, batch)
                base.execute("COMMIT")
            soundness.check_database(copy, self.folder.id)

    def _check_outside(self, batch: Batch) -> None:
        for name, body in batch.texts:
            try:
                artifacts.unpacked_text(name, body)
            except Damaged as error:
                raise BadBundle(str(error)) from error
        for name, file in batch.artifacts.items():
            if artifacts.digest(file) != name:
                raise BadBundle(f"the file {name:.80} is not what its name says")

    def _insert(self, base: sqlite3.Connection, batch: Batch) -> None:
        tables = query.every(base)
        sequenced = query.sequenced(base)
        seqs = [seq for seq, _, _ in batch.in_order()]
        if seqs and not (batch.first < seqs[0] and seqs[-1] == batch.last and len(set(seqs)) == len(seqs)):
            raise BadBundle("its rows are not numbered as a session's are")
        base.executemany("INSERT INTO text (hash, body) VALUES (?, ?)", batch.texts)
        for name, rows in batch.rows.items():
            columns = batch.columns[name]
            if name not in sequenced or set(columns) != set(tables[name].columns):
                raise BadBundle(f"its table {name!r:.80} is not one of schema {batch.schema:.10}")
            place = columns.index("session_id")
            if any(row[place] != self.folder.id for row in rows):
                raise BadBundle(f"it holds rows of another session than {self.folder.id}")
            base.executemany(_into(name, columns), rows)
        base.executemany(_into("command", COMMAND), batch.commands)

    def _check_rows(self, base: sqlite3.Connection, batch: Batch) -> None:
        """The new rows alone: they are well-formed, and what was here folds on with them."""
        if faults := soundness.row_faults(base, batch.first):
            raise BadBundle(f"what came for session {self.folder.id} is damaged: {faults[0]}")
        if batch.first < 1 or "session" in batch.rows:
            raise BadBundle(f"session {self.folder.id} has begun, and cannot begin again")
        every = query.folded(query.sequenced(base))
        try:
            if self._history.seq != batch.first:
                self._history = fold_all(query.changes(base, every, 0, batch.first))
            fold_all(query.changes(base, every, batch.first), self._history)
        except soundness.UNFOLDABLE as error:
            why = f"{type(error).__name__}: {error}"
            raise BadBundle(f"what came for session {self.folder.id} contradicts what is here ({why})") from error

    # ---- the database ---------------------------------------------------------------------------
    def _base(self) -> sqlite3.Connection:
        if self._reading is None:
            self._reading = connect(self.folder.database)
        return self._reading

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """One moment of a session that may be written meanwhile. Raises Damaged."""
        try:
            base = self._base()
            base.execute("BEGIN")
            try:
                yield base
            finally:
                base.execute("COMMIT")
        except (sqlite3.Error, UnicodeDecodeError) as error:
            damage = soundness.explained(self.folder.database)
            raise damage or Damaged(f"{self.place} cannot be read: {error}") from error


def _rows_behind(
    base: sqlite3.Connection, tables: dict[str, query.Table], seq: int, limit: int
) -> tuple[dict[str, list[tuple[Any, ...]]], int]:
    """Raw rows behind `seq` by table, and the number of the last one."""
    rows = {
        name: base.execute(f"{table.selection().sql} WHERE seq > ? ORDER BY seq LIMIT ?", (seq, limit + 1)).fetchall()
        for name, table in tables.items()
    }
    cut = first_rows(rows, {name: table.columns for name, table in tables.items()}, limit)
    return (cut[0], cut[1] or seq) if cut else _rows_behind(base, tables, seq, 2 * limit)


def _into(table: str, columns: tuple[str, ...]) -> str:
    names, marks = ", ".join(map(query.quoted, columns)), ", ".join("?" * len(columns))
    return f"INSERT INTO {query.quoted(table)} ({names}) VALUES ({marks})"


def _refusal(error: Exception, path: Path) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) or 0
    if is_full(error):
        return DiskFull(f"the disk of {path} is full: what came was not kept, all before it is safe")
    if code & 0xFF in (sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH):
        return BadBundle(f"what came for {path} cannot be kept: {error}")
    return WriteFailed(f"{path} could not be written: {error}")

"""`rlgpt store repair`: the longest sound prefix of a damaged session as a new one; the damaged one stays as it is.

Rows come from the pages themselves (`pages.py`), since a flipped byte in the root of a table hides all of it from
SQLite. What is missing among them, what SQLite would have to show and cannot, a value no column holds, a text or file
that is not what its name says, and a row that does not fold: the first of these is where the prefix ends, at the end of
the transaction before it.
"""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

from sqlmodel import SQLModel

from rlgpt.store import artifacts, foreign, gaps, pages, query, row_values, schema
from rlgpt.store.database import check_file, connect
from rlgpt.store.errors import BadSchema, Damaged, LeaseTaken, StoreError
from rlgpt.store.events import Forked
from rlgpt.store.folder import DATABASE, Place, SessionFolder, path_of, prepare
from rlgpt.store.fork import forked_event, link_file
from rlgpt.store.history import History, fold
from rlgpt.store.lease import owner
from rlgpt.store.plain import EARLIEST, LATEST, is_plain
from rlgpt.store.revision import REVISION, REVISIONS, found
from rlgpt.store.row_types import Row
from rlgpt.store.rows import Encoded, encode
from rlgpt.store.settings import MOST_LETTERS, stored
from rlgpt.store.soundness import TYPES, check_database, json_kind
from rlgpt.store.transactions import whole_transactions

_TEXTS = {"code_version": ("source_hash",), "trial": ("source_hash",), "llm_call": ("request_hash", "reply_hash")}
"""Columns that name a text."""
_NEVER = 2**62
_UNREADABLE = (sqlite3.Error, StoreError, UnicodeDecodeError)
"""The last: SQLite quotes what is damaged in its messages."""


class Repaired(NamedTuple):
    id: str
    """Of the new session."""
    rows: int
    seq: int
    """Of the last row kept."""
    lost: int
    """Rows that were still found behind it."""
    reason: str
    """What ended the prefix, empty if everything was sound."""


class _Row(NamedTuple):
    seq: int
    table: str
    values: dict[str, Any]
    """By column, as stored."""


@dataclass(frozen=True)
class _Found:
    """What the pages hold."""

    rows: dict[int, _Row]
    texts: dict[str, bytes]
    revision: str
    """Of its schema."""
    sure_upto: int
    """No row up to this number is lost unseen."""

    @cached_property
    def last_frame(self) -> int:
        """Frames are pruned from some number on, and with them other rows from a small bundle: before the last frame
        a missing number is a lost row."""
        return max((row.seq for row in self.rows.values() if row.table == "frame"), default=0)


class _Expected(NamedTuple):
    """What SQLite says the tables hold, as far as it can walk through them."""

    seqs: set[int]
    texts: set[str]
    """Hashes of the texts."""
    all_texts: bool


def repair(place: Place) -> Repaired:
    """Raises Damaged if not even the first row is sound, BadSchema for a newer schema, LeaseTaken while a worker has
    the session, BadPlace."""
    folder = SessionFolder(path_of(place))
    check_file(folder.database)
    if (who := owner(folder.path)) is not None:
        by = f"process {who.pid}" if who.pid else "a process"
        raise LeaseTaken(f"session {folder.id} is run by {by} on {who.host}: stop it first")
    with tempfile.TemporaryDirectory(prefix="rlgpt-") as scratch:
        copy = _settled(folder, Path(scratch))
        _need_known_schema(copy, folder)
        salvaged = _salvage(copy.read_bytes())
        expected = _expected(copy)
    session = salvaged.rows.get(1)
    if session is None or session.table != "session":
        raise Damaged(f"session {folder.id} cannot be repaired: its first row is damaged")
    rows = [salvaged.rows[seq] for seq in sorted(salvaged.rows)]
    end, reason = _first_gap(salvaged, expected)
    damaged = _damaged_files(folder)
    history = History()
    sound: list[_Row] = []
    for row in rows:
        if row.seq >= end:
            break
        fault = _fault(row, session, history, salvaged, expected, damaged)
        if fault:
            end, reason = row.seq, fault
            break
        sound.append(row)
    if not sound:
        raise Damaged(f"session {folder.id} cannot be repaired: its first row is damaged ({reason})")
    whole = whole_transactions((row.table, row.values) for row in sound)
    repaired = _write(folder, sound[:whole], salvaged, damaged)
    return Repaired(repaired.id, whole, sound[whole - 1].seq, len(rows) - whole, reason)


# ---- what there is --------------------------------------------------------------------------------
def _settled(folder: SessionFolder, scratch: Path) -> Path:
    """A copy with what lies in its log, as far as the log is whole; the original is only read."""
    copy = scratch / DATABASE
    for tail in ("", "-wal"):
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(f"{folder.database}{tail}", f"{copy}{tail}")
    with contextlib.suppress(*_UNREADABLE), contextlib.closing(connect(copy, "rw")) as base:
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return copy


def _need_known_schema(copy: Path, folder: SessionFolder) -> None:
    """Raises BadSchema for a session of a newer rlgpt, whose rows would not be recognised. A newer number beside tables
    that have nothing new is a damaged number."""
    known = {name: set(table.columns) for name, table in _shapes().items()} | {"alembic_version": {"version_num"}}
    try:
        with contextlib.closing(connect(copy, "ro")) as base:
            if any(set(table.columns) - known.get(name, set()) for name, table in query.every(base).items()):
                found(base, folder.database)
    except BadSchema:
        raise
    except _UNREADABLE:  # damaged: its pages are read
        return


def _salvage(file: bytes) -> _Found:
    several: dict[int, list[tuple[bool, _Row]]] = {}
    revisions = set()
    texts: dict[str, bytes] = {}
    for read in pages.stored_rows(file):
        table = _table_of(read)
        if table is None:
            revisions |= {value for value in read.values if len(read.values) == 1 and value in REVISIONS}
            continue
        values = dict(zip(table.columns, read.values, strict=False))
        if table.name == "text":
            with contextlib.suppress(Exception):  # any damage of a compressed text
                body = read.values[1]
                assert isinstance(body, bytes)
                texts[artifacts.digest(artifacts.unpacked(body))] = body
        elif "seq" in values:
            row = _Row(read.rowid, table.name, values | {"seq": read.rowid})
            several.setdefault(read.rowid, []).append((read.orderly, row))
    rows = {}
    for seq, candidates in several.items():
        orderly = [row for fits, row in candidates if fits] if len(candidates) > 1 else [row for _, row in candidates]
        if len(orderly) == 1:
            rows[seq] = orderly[0]
    sequenced = [name for name, table in _shapes().items() if "seq" in table.columns]
    revision = str(revisions.pop()) if len(revisions) == 1 else REVISION
    return _Found(rows, texts, revision, gaps.sure_upto(file, _name_of, sequenced))


def _table_of(read: pages.Stored) -> query.Table | None:
    return next((table for table in _shapes().values() if _fits(table, read.values)), None)


def _name_of(read: pages.Stored) -> str | None:
    table = _table_of(read)
    return table.name if table else None


@cache
def _shapes() -> dict[str, query.Table]:
    with contextlib.closing(sqlite3.connect(":memory:")) as base:
        for statement in schema.statements():
            base.execute(statement)
        return query.every(base)


def _fits(table: query.Table, values: tuple[pages.Value, ...]) -> bool:
    """No two tables have columns of the same types. A row from before a column was added is shorter."""
    model = _columns(table.name)
    if len(values) > len(table.columns) or not all(model[c].nullable for c in table.columns[len(values) :]):
        return False
    for column, kind, value in zip(table.columns, table.kinds, values, strict=False):
        if value is None:
            if not model[column].nullable and column != "seq":
                return False
        elif column == "seq" or _KIND[type(value)] not in TYPES[kind]:
            return False
    return True


_KIND = {int: "integer", float: "real", str: "text", bytes: "blob"}


def _columns(table: str) -> Any:
    return SQLModel.metadata.tables[table].columns


def _expected(copy: Path) -> _Expected:
    seqs: set[int] = set()
    texts: set[str] = set()
    all_texts = False
    with contextlib.suppress(*_UNREADABLE), contextlib.closing(connect(copy)) as base:
        for table in _shapes().values():
            if "seq" not in table.columns:
                continue
            last = 0
            with contextlib.suppress(*_UNREADABLE):
                for (seq,) in base.execute(f"SELECT seq FROM {query.quoted(table.name)} ORDER BY seq"):
                    if not isinstance(seq, int) or seq <= last:
                        raise sqlite3.DatabaseError("out of order")
                    seqs.add(seq)
                    last = seq
        with contextlib.suppress(*_UNREADABLE):
            texts.update(str(row[0]) for row in base.execute("SELECT hash FROM text NOT INDEXED"))
            all_texts = True
    return _Expected(seqs, texts, all_texts)


# ---- where it ends --------------------------------------------------------------------------------
def _first_gap(salvaged: _Found, expected: _Expected) -> tuple[int, str]:
    """The first seq that is lost. Numbers are consecutive but where frames were pruned: there a missing one counts
    only if SQLite knows it, or a page that may have held it cannot be read."""
    missing = (seq for seq in range(1, max(salvaged.rows) + 1) if seq not in salvaged.rows)
    gap = next((seq for seq in missing if seq < salvaged.last_frame or seq > salvaged.sure_upto), _NEVER)
    lost = [seq for seq in expected.seqs if seq not in salvaged.rows]
    end = min([*lost, gap])
    return end, f"row {end} is damaged" if end < _NEVER else ""


def _damaged_files(folder: SessionFolder) -> set[str]:
    damaged = set()
    for path in folder.artifact_files():
        if not path.name.startswith("."):
            try:
                artifacts.get(folder.artifacts, path.name)
            except (StoreError, OSError):
                damaged.add(path.name)
    return damaged


def _fault(row: _Row, session: _Row, history: History, salvaged: _Found, expected: _Expected, damaged: set[str]) -> str:
    """Why this row cannot follow those before it; folds it if it can."""
    values = row.values
    if values["session_id"] != session.values["session_id"] or values["incarnation"] < history.incarnation:
        return f"row {row.seq} is of another session"
    decoded: dict[str, Any] = {}
    table = _shapes()[row.table]
    for column, kind in zip(table.columns, table.kinds, strict=True):
        value = values.get(column)
        if value is not None and kind == "BOOLEAN":
            if value not in (0, 1):
                return f"row {row.seq} has no proper {column}"
            value = bool(value)
        elif value is not None and kind == "JSON":
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                return f"row {row.seq} has no proper {column}"
            if isinstance(value, list) != (json_kind(row.table, column) == "array") or not is_plain(value):
                return f"row {row.seq} has no proper {column}"
        elif value is not None and kind == "FLOAT":
            value = float(value)
            if not math.isfinite(value) or (column == "at" and not EARLIEST <= value <= LATEST):
                return f"row {row.seq} has no proper {column}"
        decoded[column] = value
    if row.table == "session":
        try:
            stored(decoded["settings"])
        except BadSchema as error:
            return f"its settings cannot be: {error}"
    if salvaged.revision == REVISION and (fault := row_values.fault(row.table, decoded)):
        return f"row {row.seq} {fault}"
    for column in _TEXTS.get(row.table, ()):
        name = values.get(column)
        if name and name not in salvaged.texts and (name in expected.texts or not expected.all_texts):
            return f"a text that row {row.seq} names is lost"
    if row.table == "checkpoint" and values["kind"] == "boundary" and values["artifact"] in damaged:
        return f"the checkpoint of row {row.seq} is damaged"
    try:
        fold(history, row.table, cast(Row, decoded))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        return f"row {row.seq} contradicts those before it ({type(error).__name__})"
    return ""


# ---- the new session ------------------------------------------------------------------------------
def _write(folder: SessionFolder, rows: Sequence[_Row], salvaged: _Found, damaged: set[str]) -> SessionFolder:
    """Under an id of its own, as a fork at the last sound row; a session that had ended stays ended."""
    session = rows[0].values
    staged = prepare()
    try:
        with contextlib.closing(sqlite3.connect(staged.staging / DATABASE)) as base:
            schema.create(base, salvaged.revision)
            columns = {name: table.columns for name, table in query.every(base).items()}
            for row in rows:
                values = {column: row.values.get(column) for column in columns[row.table]}
                values["session_id"] = staged.id
                if row.table == "session":
                    values |= {
                        "name": f"{str(session['name'])[: MOST_LETTERS - 9]}-repaired",
                        "parent_id": session["session_id"],
                        "parent_seq": rows[-1].seq,
                    }
                schema.insert(base, Encoded(row.table, values))
            base.executemany("INSERT INTO text (hash, body) VALUES (?, ?)", salvaged.texts.items())
            last = rows[-1]
            if not (last.table == "event" and last.values["kind"] == "ended"):
                schema.insert(base, encode(forked_event(base, staged.id, Forked(folder.id, last.seq, []))))
            base.commit()
        check_database(staged.staging / DATABASE, staged.id)
        for path in folder.artifact_files():
            if path.name not in damaged and not path.name.startswith("."):
                link_file(path, staged.staging / "artifacts" / path.name)
        if foreign.is_foreign(folder.path):
            foreign.mark(staged.staging)
        return staged.publish()
    except BaseException:
        staged.drop()
        raise

"""Checks whether a database is a sound session: before a bundle is imported, and for `rlgpt store check`."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin

from rlgpt.store import artifacts, query, revision
from rlgpt.store.database import connect
from rlgpt.store.errors import BadBundle, BadSchema, Damaged, StoreError
from rlgpt.store.history import fold_all
from rlgpt.store.plain import is_plain

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
TYPES = {
    "INTEGER": ("integer",),
    "FLOAT": ("real", "integer"),
    "VARCHAR": ("text",),
    "JSON": ("text",),
    "BOOLEAN": ("integer",),
    "BLOB": ("blob",),
}

UNFOLDABLE = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError)
"""What the fold raises for rows that contradict each other."""
LATEST = 200_000_000_000
"""Seconds from 1970: the year 8307. Python tells the time of nothing much later."""


def check_database(path: Path, session_id: str | None = None) -> None:
    """Raises BadBundle with the first thing that is wrong."""
    try:
        with contextlib.closing(connect(path)) as base:
            problems = faults(base, path)
            if not problems and session_id is not None:
                ids = {row[0] for row in base.execute("SELECT session_id FROM session")}
                if ids != {session_id}:
                    problems = [f"it is the database of another session than {session_id}"]
    except (sqlite3.Error, StoreError, UnicodeDecodeError) as error:
        raise BadBundle(f"the database is damaged or none of ours: {error}") from error
    if problems:
        raise BadBundle(f"the database is damaged or none of ours: {problems[0]}")


def explained(database: Path) -> Damaged | None:
    """The damage of a session's database as an error to raise, None if it is sound."""
    try:
        with contextlib.closing(connect(database)) as base:
            base.execute("BEGIN")  # one moment of a session that is being written
            problems = faults(base, database)
    except BadSchema:
        return None
    except (sqlite3.Error, StoreError, UnicodeDecodeError) as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY:
            return None
        problems = [str(error)]
    return revision.damaged(database, problems[0]) if problems else None


def torn(database: Path) -> Damaged | None:
    """The damage that SQLite itself finds in a session's database, as an error to raise. Quick: it reads no values."""
    try:
        with contextlib.closing(connect(database)) as base:
            found = [row[0] for row in base.execute("PRAGMA quick_check(1)")]
    except (sqlite3.Error, UnicodeDecodeError) as error:  # what is found may name what is no text any more
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY:
            return None
        found = [str(error)]
    return revision.damaged(database, found[0]) if found != ["ok"] else None


def faults(base: sqlite3.Connection, path: Path) -> list[str]:
    """What is wrong with an open database, as sentences; [] if it is sound. May raise sqlite3.Error."""
    found = revision.read(base, path)
    if shape(base) != expected_shape(found):
        return ["its tables, indexes and triggers are not those of its schema"]
    damage = [row[0] for row in base.execute("PRAGMA quick_check(5)")]
    if damage != ["ok"]:
        return [f"SQLite finds damage: {line}" for line in damage]
    problems = row_faults(base) + _text_faults(base)
    if problems or found == revision.REVISION:
        return problems or _sequence_faults(base)
    from rlgpt.store.migrations import upgraded_copy  # late: Alembic costs half a second

    with contextlib.closing(upgraded_copy(base, path)) as copy:  # the fold knows the rows of this schema
        return _sequence_faults(copy)


def row_faults(base: sqlite3.Connection, after: int = 0) -> list[str]:
    """The columns whose values no writer writes, in all tables; in those of the sequence only behind a row."""
    base.create_function("is_proper_json", 2, _is_proper_json, deterministic=True)
    return [fault for table in query.every(base).values() for fault in _column_faults(base, table, after)]


def _text_faults(base: sqlite3.Connection) -> list[str]:
    for name, body in base.execute("SELECT hash, body FROM text"):
        try:
            artifacts.unpacked_text(name, body)
        except (Damaged, TypeError) as error:  # TypeError: no bytes, which the faults of its column tell
            return [str(error)]
    return []


def _column_faults(base: sqlite3.Connection, table: query.Table, after: int) -> list[str]:
    problems = []
    recent = f"seq > {after}" if "seq" in table.columns else "TRUE"
    for column, kind in zip(table.columns, table.kinds, strict=True):
        types = TYPES.get(kind)
        if types is None:  # alembic_version alone has a sized VARCHAR
            continue
        name = query.quoted(column)
        allowed = ", ".join(f"'{t}'" for t in (*types, "null"))
        wrong = f"typeof({name}) NOT IN ({allowed})"
        if kind == "JSON":
            wrong += f" OR NOT is_proper_json({name}, '{json_kind(table.name, column)}')"
        if kind == "FLOAT":
            wrong += f" OR abs({name}) = 9e999"
        if column == "at":
            wrong += f" OR abs({name}) > {LATEST}"
        if kind == "BOOLEAN":
            wrong += f" OR {name} NOT IN (0, 1)"
        rows = f"SELECT count(*) FROM {query.quoted(table.name)} WHERE {recent} AND ({wrong})"
        count = base.execute(rows).fetchone()[0]
        if count:
            problems.append(f"{count} rows of {table.name} have no proper {column}")
    return problems


def _is_proper_json(body: object, kind: str) -> bool:
    """For SQL. SQLite's own `json_valid` takes 9e999, which Python reads as infinity."""
    if not isinstance(body, str):
        return body is None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, list if kind == "array" else dict) and is_plain(value)


def json_kind(table: str, column: str) -> str:
    """`object` or `array`, as the model's type is."""
    from rlgpt.store import tables  # late: imports and checks only

    models: tuple[Any, ...] = (*tables.CONTENT, tables.Command)
    model = next(m for m in models if str(m.__tablename__) == table)
    kind = model.model_fields[column].annotation
    return "array" if any(get_origin(part) in (list, Sequence) for part in (kind, *get_args(kind))) else "object"


def _sequence_faults(base: sqlite3.Connection) -> list[str]:
    """One session row, at seq 1; no seq twice; and the rows fold."""
    tables = query.sequenced(base)
    union = " UNION ALL ".join(f"SELECT seq FROM {query.quoted(name)}" for name in tables)
    total, distinct, least = base.execute(f"SELECT count(*), count(DISTINCT seq), min(seq) FROM ({union})").fetchone()
    sessions = base.execute("SELECT count(*), min(seq), max(seq) FROM session").fetchone()
    if sessions != (1, 1, 1) or least != 1:
        return ["it does not begin with its one session row"]
    if total != distinct:
        return [f"{total - distinct} rows have the number of another row"]
    try:
        for name in tables:
            others = "SELECT count(*) FROM %s WHERE session_id IS NOT (SELECT session_id FROM session)"
            if count := base.execute(others % query.quoted(name)).fetchone()[0]:
                return [f"{count} rows of {name} are of another session"]
        fold_all(query.changes(base, query.folded(tables), after=0))
    except UNFOLDABLE as error:
        return [f"its rows contradict each other ({type(error).__name__}: {error})"]
    return []


def shape(base: sqlite3.Connection) -> frozenset[tuple[str, str, str, tuple[str, ...]]]:
    """Everything the schema defines: white space is made equal, and so is where an added column stands."""
    rows = base.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master").fetchall()
    return frozenset(
        (kind, name, table, _parts(kind, str(sql)))
        for kind, name, table, sql in rows
        if name != "alembic_version" and table != "alembic_version"
    )


def _parts(kind: str, sql: str) -> tuple[str, ...]:
    words = " ".join(sql.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split())
    if kind != "table" or not words.endswith(" )"):
        return (words,)
    head, _, columns = words.removesuffix(" )").partition(" ( ")
    return (head, *sorted(columns.split(" , ")))


@cache
def expected_shape(of: str) -> frozenset[tuple[str, str, str, tuple[str, ...]]]:
    """The shape of a revision. Raises BadSchema if there never was one."""
    from rlgpt.store import schema  # late: imports and checks only

    if of not in revision.REVISIONS:
        raise BadSchema(f"there never was a schema {of!r:.20}")
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as base:
        for statement in schema.statements(of):
            base.execute(statement)
        return shape(base)

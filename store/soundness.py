"""Checks whether a database is a sound session: before a bundle is imported, and for `rlgpt store check`."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

from rlgpt.store import artifacts, query, revision, row_values
from rlgpt.store.database import connect
from rlgpt.store.errors import BadBundle, BadPlace, BadSchema, Damaged, StoreError
from rlgpt.store.history import fold_all
from rlgpt.store.plain import EARLIEST, LATEST, reads_plain
from rlgpt.store.row_types import PARTS
from rlgpt.store.sqlite_errors import is_passing

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
    except (BadSchema, BadPlace):  # it is another's, or nothing can be said of it now: no damage
        return None
    except (sqlite3.Error, StoreError, UnicodeDecodeError) as error:
        if is_passing(error):
            return None
        problems = [str(error)]
    return revision.damaged(database, problems[0]) if problems else None


def torn(database: Path) -> Damaged | None:
    """The damage that SQLite itself finds in a session's database, as an error to raise. Quick: it reads no values."""
    try:
        with contextlib.closing(connect(database)) as base:
            found = [row[0] for row in base.execute("PRAGMA quick_check(1)")]
    except (sqlite3.Error, UnicodeDecodeError) as error:  # what is found may name what is no text any more
        if is_passing(error):  # a full disk has no room for the index that SQLite makes to read with
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
    older = found != revision.REVISION
    problems = row_faults(base, older=older) + _text_faults(base)
    if problems or not older:
        return problems or _sequence_faults(base)
    from rlgpt.store.migrations import upgraded_copy  # late: Alembic costs half a second

    with contextlib.closing(upgraded_copy(base, path)) as copy:  # the fold knows the rows of this schema
        return row_faults(copy) or _sequence_faults(copy)


def row_faults(base: sqlite3.Connection, after: int = 0, *, older: bool = False) -> list[str]:
    """The columns whose values no writer writes, in all tables; in those of the sequence only behind a row. `older`:
    the rows are of an earlier schema, so that only the SQL types of their columns are known."""
    base.create_function("is_proper_json", 3, partial(_is_proper_json, older), deterministic=True)
    base.create_function("exceeds", 2, _exceeds, deterministic=True)
    tables = query.every(base).values()
    problems = [f for table in tables for f in _faults_of(base, table, after, [*_wrong_columns(table, older)])]
    if problems or older:
        return problems
    problems = [f for table in tables for f in _faults_of(base, table, after, [*_wrong_parts(table)])]
    return problems + _settings_faults(base, after)


def _text_faults(base: sqlite3.Connection) -> list[str]:
    for name, body in base.execute("SELECT hash, body FROM text"):
        try:
            artifacts.unpacked_text(name, body)
        except (Damaged, TypeError) as error:  # TypeError: no bytes, which the faults of its column tell
            return [str(error)]
    return []


class _Wrong(NamedTuple):
    """Rows of a table that no writer writes."""

    where: str
    """SQL."""
    columns: tuple[str, ...]
    """What is shown of them."""
    what: str


def _wrong_columns(table: query.Table, older: bool) -> Iterator[_Wrong]:
    for column, kind in zip(table.columns, table.kinds, strict=True):
        types = TYPES.get(kind)
        if types is None:  # alembic_version alone has a sized VARCHAR
            continue
        name = query.quoted(column)
        allowed = ", ".join(f"'{t}'" for t in (*types, "null"))
        wrong = f"typeof({name}) NOT IN ({allowed})"
        if kind == "JSON":
            wrong += f" OR NOT is_proper_json({name}, '{table.name}', '{column}')"
        if kind == "FLOAT":
            wrong += f" OR abs({name}) = 9e999"
        if column == "at":
            wrong += f" OR {name} NOT BETWEEN {EARLIEST} AND {LATEST}"
        if kind == "BOOLEAN":
            wrong += f" OR {name} NOT IN (0, 1)"
        if not older and kind != "JSON" and (bounds := row_values.range_of(table.name, column)):
            measured = f"length({name})" if kind == "VARCHAR" else name
            wrong += f" OR {measured} NOT BETWEEN {bounds.least} AND {bounds.most}"
        yield _Wrong(wrong, (column,), f"no proper {column}")


def _wrong_parts(table: query.Table) -> Iterator[_Wrong]:
    for part, whole in PARTS.get(table.name, ()):
        wrong = f"exceeds({query.quoted(part)}, {query.quoted(whole)})"
        yield _Wrong(wrong, (part, whole), f"more {part} than {whole}")


def _faults_of(base: sqlite3.Connection, table: query.Table, after: int, wrongs: Sequence[_Wrong]) -> list[str]:
    """A sentence for each that is found, which counts its rows and shows the first. Reads the table once."""
    if not wrongs:
        return []
    number = "seq" if "seq" in table.columns else "rowid"
    rows = f"FROM {query.quoted(table.name)} WHERE {f'seq > {after}' if number == 'seq' else 'TRUE'}"
    counts = base.execute(f"SELECT {', '.join(f'sum(({w.where}) IS TRUE)' for w in wrongs)} {rows}").fetchone()
    problems = []
    for wrong, count in zip(wrongs, counts, strict=True):
        if not count:
            continue
        shown = ", ".join(map(query.quoted, wrong.columns))
        first, *values = base.execute(
            f"SELECT {number}, {shown} {rows} AND ({wrong.where}) ORDER BY {number} LIMIT 1"
        ).fetchone()
        of = " of ".join(f"{value!r:.80}" for value in values)
        problems.append(f"{count} rows of {table.name} have {wrong.what}: row {first!r:.20} has {of}")
    return problems


def _settings_faults(base: sqlite3.Connection, after: int) -> list[str]:
    if after:
        return []
    from rlgpt.store.settings import fault_of  # late: it takes longer to import than a small session to check

    for (tree,) in base.execute("SELECT settings FROM session"):
        if fault := fault_of(json.loads(tree)):
            return [f"the settings in its first row cannot be: {fault}"]
    return []


def _exceeds(part: Any, whole: Any) -> bool:
    """For SQL."""
    return row_values.exceeds(json.loads(part) if isinstance(part, str) else part, whole)


def _is_proper_json(older: bool, body: object, table: str, column: str) -> bool:
    """For SQL. SQLite's own `json_valid` takes 9e999, which Python reads as infinity."""
    if not isinstance(body, str):
        return body is None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return False
    kind = list if json_kind(table, column) == "array" else dict
    if not isinstance(value, kind) or not reads_plain(body, value):
        return False
    hint = row_values.hints(table).get(column)
    return older or hint is None or row_values.fits(value, hint)


@cache
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

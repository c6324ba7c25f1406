"""Makes a session's database: tables, indexes, triggers and the mark of its revision.

SQLAlchemy makes the tables, so this belongs to writing; readers use `revision.py` alone.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from functools import cache
from typing import Any

from sqlalchemy import Column, MetaData, Table
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateColumn, CreateIndex, CreateTable
from sqlmodel import SQLModel

from rlgpt.store import tables
from rlgpt.store.revision import REVISION
from rlgpt.store.rows import Encoded

KEYS = {"text": "hash", "command": "id"}
"""Tables outside the sequence, and what their rows go by."""
_DIALECT = sqlite.dialect()


@cache
def statements(revision: str = REVISION) -> tuple[str, ...]:
    """The whole schema of a revision as SQLite statements, in order."""
    session_tables = [_of_one_session(table, revision) for table in _tables()]
    created = [str(CreateTable(table).compile(dialect=_DIALECT)).strip() for table in session_tables]
    indexes = [str(CreateIndex(index).compile(dialect=_DIALECT)) for index in tables.INDEXES]
    return (*created, *indexes, *(t for table in session_tables for t in triggers(table.name)))


def additions(revision: str) -> list[str]:
    """What brings a database of the revision before to this one: the columns that came with it."""
    return [
        f'ALTER TABLE "{table.name}" ADD COLUMN {CreateColumn(column).compile(dialect=_DIALECT)}'
        for table in _tables()
        for column in table.columns
        if _since(column) == revision
    ]


def _tables() -> Iterator[Table]:
    models: tuple[type[SQLModel], ...] = (*tables.CONTENT, tables.Text, tables.Command)
    return (SQLModel.metadata.tables[str(model.__tablename__)] for model in models)


def _of_one_session(table: Table, revision: str) -> Table:
    """The table as a session's file has it. A file holds one session, so `seq` alone is the key there: SQLite
    then keeps the rows in the order of `seq` without an index (https://sqlite.org/lang_createtable.html#rowid)."""
    key = KEYS.get(table.name, "seq")
    columns = (c for c in table.columns if _since(c) <= revision)
    return Table(
        table.name,
        MetaData(),
        *(Column(c.name, c.type, primary_key=c.name == key, nullable=c.nullable, autoincrement=False) for c in columns),
    )


def _since(column: Column[Any]) -> str:
    """The revision that a column came with."""
    return str(column.info.get("since", "0001"))


def triggers(table: str) -> list[str]:
    """A row once written stays as it is: UPDATE, DELETE and replacing it by an INSERT are refused."""
    key = KEYS.get(table, "seq")
    words = f"SELECT RAISE(ABORT, '{table} rows are never changed')"
    return [
        f'CREATE TRIGGER "{table}_no_update" BEFORE UPDATE ON "{table}" BEGIN {words}; END',
        f'CREATE TRIGGER "{table}_no_delete" BEFORE DELETE ON "{table}" BEGIN {words}; END',
        f'CREATE TRIGGER "{table}_no_replace" BEFORE INSERT ON "{table}" '
        f'WHEN EXISTS (SELECT 1 FROM "{table}" WHERE "{key}" = NEW."{key}") BEGIN {words}; END',
    ]


def create(base: sqlite3.Connection, revision: str = REVISION) -> None:
    """Raises sqlite3.Error. The connection is left in WAL mode."""
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("BEGIN")
    for statement in statements(revision):
        base.execute(statement)
    base.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    base.execute("INSERT INTO alembic_version VALUES (?)", (revision,))
    base.commit()


def insert(base: sqlite3.Connection, row: Encoded) -> None:
    """One row outside a writer: for making and copying sessions."""
    names = ", ".join(f'"{name}"' for name in row.values)
    marks = ", ".join("?" * len(row.values))
    values: list[Any] = [json.dumps(v) if isinstance(v, (dict, list)) else v for v in row.values.values()]
    base.execute(f'INSERT INTO "{row.table}" ({names}) VALUES ({marks})', values)

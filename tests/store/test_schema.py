"""The database refuses what the design forbids, and migrations lead where tables.py stands."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Column, Float, LargeBinary, MetaData, create_engine, insert, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable
from sqlmodel import SQLModel

from rlgpt.store import migrations, query, revision, schema, tables
from rlgpt.store.errors import BadSchema
from rlgpt.store.folder import SessionFolder
from rlgpt.store.soundness import expected_shape, shape
from rlgpt.store.writer import Writer

EVERY = [model.__tablename__ for model in (*tables.CONTENT, tables.Text, tables.Command)]


@pytest.mark.parametrize("table", EVERY)
def test_no_row_is_ever_changed_removed_or_replaced(table: str) -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as base:
        schema.create(base)
        columns = query.every(base)[table].columns
        names, marks = ", ".join(map(query.quoted, columns)), ", ".join("?" * len(columns))
        base.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", [1] * len(columns))
        for statement in (
            f"UPDATE {table} SET {query.quoted(columns[-1])} = 2",
            f"DELETE FROM {table}",
            f"REPLACE INTO {table} ({names}) VALUES ({', '.join(['1'] + ['2'] * (len(columns) - 1))})",
        ):
            with pytest.raises(sqlite3.IntegrityError, match=f"{table} rows are never changed"):
                base.execute(statement)
        assert base.execute(f"SELECT * FROM {table}").fetchall()[0][-1] in (1, "1")


def test_migrations_from_nothing_lead_to_the_schema_of_the_tables() -> None:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as base:
        migrations.upgrade(base, Path(":memory:"))
        assert shape(base) == expected_shape(revision.REVISION)
        assert revision.found(base, Path("x")) == revision.REVISION


@pytest.mark.parametrize("model", tables.CONTENT)
def test_one_database_can_hold_several_sessions(model: type[SQLModel]) -> None:
    table = SQLModel.metadata.tables[str(model.__tablename__)]
    engine = create_engine("sqlite://")
    table.create(engine)
    row = {c.name: b"" if isinstance(c.type, LargeBinary) else 1 for c in table.columns}
    with engine.begin() as base:
        base.execute(insert(table), [row | {"session_id": name, "seq": 7} for name in ("a", "b")])
        assert base.execute(select(table.c.session_id, table.c.seq)).all() == [("a", 7), ("b", 7)]


def test_whole_numbers_have_64_bits_in_a_database_with_short_ones_too() -> None:
    dialect = postgresql.dialect()
    for model in (*tables.CONTENT, tables.Text, tables.Command):
        table = SQLModel.metadata.tables[str(model.__tablename__)]
        assert " INTEGER" not in str(CreateTable(table).compile(dialect=dialect))
    event = str(CreateTable(SQLModel.metadata.tables["event"]).compile(dialect=dialect))
    assert "seq BIGINT NOT NULL" in event and "PRIMARY KEY (session_id, seq)" in event


def test_a_session_file_is_read_by_seq_without_an_index(finished: SessionFolder) -> None:
    with contextlib.closing(sqlite3.connect(finished.database)) as base:
        plan = base.execute("EXPLAIN QUERY PLAN SELECT * FROM event WHERE seq > 5 ORDER BY seq").fetchall()
        assert [row[3] for row in plan] == ["SEARCH event USING INTEGER PRIMARY KEY (rowid>?)"]


def test_a_column_of_a_later_revision_is_added_where_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    table = SQLModel.metadata.tables["evaluation"].to_metadata(MetaData())
    table.append_column(Column("later", Float, info={"since": "0099"}))
    monkeypatch.setattr(schema, "_tables", lambda: iter([table]))
    with contextlib.closing(sqlite3.connect(":memory:")) as old, contextlib.closing(sqlite3.connect(":memory:")) as new:
        for base, of in ((old, "0098"), (new, "0099")):
            base.execute(schema.statements(of)[0])
        assert shape(old) != shape(new)
        for statement in schema.additions("0099"):
            old.execute(statement)
        assert shape(old) == shape(new) and schema.additions("0098") == []


def test_a_migration_that_fails_leaves_the_database_as_it_was() -> None:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as base:
        base.execute("CREATE TABLE trial (other)")
        before = shape(base)
        with pytest.raises(BadSchema, match="could not be brought to schema 0004, it is as it was"):
            migrations.upgrade(base, Path("some.db"))
        assert shape(base) == before and not base.in_transaction


def test_opening_an_older_session_to_write_migrates_it(session: SessionFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.closing(sqlite3.connect(session.database)) as base:
        base.execute("UPDATE alembic_version SET version_num = '0000'")
        base.commit()
    asked: list[Path] = []
    monkeypatch.setattr(migrations, "upgrade", lambda base, path: asked.append(path))
    with Writer(session):
        assert asked == [session.database]


def test_alembic_is_imported_only_when_the_revision_differs(session: SessionFolder) -> None:
    code = "import sys, pathlib, rlgpt.store.writer as w; w.Writer(pathlib.Path(sys.argv[1])); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code, session.path], capture_output=True, text=True)
    assert "sqlmodel" in done.stdout.split() and "alembic" not in done.stdout.split()

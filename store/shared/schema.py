"""The tables of a shared store, made from those of a session; only insert, but for the heads.

What a session's file holds once, this holds once a session: every key begins with `session_id`. Columns that came with
a later revision of the sessions' schema say so in a comment, since sessions of earlier ones are kept as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sqlalchemy import Column, MetaData, PrimaryKeyConstraint, Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateColumn, CreateTable
from sqlmodel import SQLModel

from rlgpt.store import tables

NAME = "rlgpt"
"""The schema, in PostgreSQL's sense, that holds all of it."""
VERSION = "0001"
"""Of the shared store itself."""
READER, OPERATOR, WORKER = "rlgpt_reader", "rlgpt_operator", "rlgpt_worker"
OUTSIDE = """
CREATE TABLE rlgpt.text (session_id text, hash text, body bytea NOT NULL, PRIMARY KEY (session_id, hash));
CREATE TABLE rlgpt.artifact (session_id text, hash text, body bytea NOT NULL, PRIMARY KEY (session_id, hash));
CREATE TABLE rlgpt.command (
    place bigint GENERATED ALWAYS AS IDENTITY, id text, session_id text, at double precision NOT NULL,
    author text NOT NULL, kind text NOT NULL, payload json NOT NULL, revision bigint, PRIMARY KEY (session_id, id));
COMMENT ON TABLE rlgpt.command IS 'the inbox that the worker had, as it was pushed';
CREATE TABLE rlgpt.inbox (
    n bigint GENERATED ALWAYS AS IDENTITY, id text, session_id text, at double precision NOT NULL,
    author text NOT NULL, kind text NOT NULL, payload json NOT NULL, revision bigint, PRIMARY KEY (session_id, id));
COMMENT ON TABLE rlgpt.inbox IS 'commands of operators elsewhere, which the keeper brings to the worker';
CREATE INDEX inbox_n ON rlgpt.inbox (session_id, n);
CREATE TABLE rlgpt.head (
    session_id text PRIMARY KEY, seq bigint NOT NULL, incarnation bigint NOT NULL, schema text NOT NULL,
    changes bigint NOT NULL DEFAULT 0, name text NOT NULL DEFAULT '', beat json, told_at timestamptz, summary json,
    tags json NOT NULL DEFAULT '[]');
COMMENT ON TABLE rlgpt.head IS 'the only rows that change; incarnation counts the claims';
CREATE TABLE rlgpt.version (number text PRIMARY KEY);
"""
GUARDS = """
CREATE FUNCTION rlgpt.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND TG_LEVEL = 'ROW' THEN
        IF OLD.session_id = current_setting('rlgpt.deleted', true) THEN RETURN OLD; END IF;
    END IF;
    RAISE EXCEPTION '% rows are never changed', TG_TABLE_NAME;
END $$;
CREATE FUNCTION rlgpt.sign() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.author := CASE WHEN NEW.author IN ('', session_user) THEN session_user
                       ELSE session_user || ' (' || NEW.author || ')' END;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION rlgpt.sign() IS 'who sends a command cannot be forged';
CREATE TRIGGER sign BEFORE INSERT ON rlgpt.inbox FOR EACH ROW EXECUTE FUNCTION rlgpt.sign();
"""
DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]


def statements() -> Iterator[str]:
    """All that `rlgpt store init` does in an empty database, in order."""
    yield f"CREATE SCHEMA {NAME}"
    contents = [SQLModel.metadata.tables[str(model.__tablename__)] for model in tables.CONTENT]
    for table in contents:
        yield str(CreateTable(_of_all_sessions(table)).compile(dialect=DIALECT))
        for column in table.columns:
            if since := column.info.get("since"):
                yield f"COMMENT ON COLUMN {NAME}.{table.name}.{column.name} IS '{since}'"
    yield OUTSIDE
    yield GUARDS
    for name in [*(table.name for table in contents), "text", "command", "inbox", "artifact"]:
        changes = "UPDATE" if name == "artifact" else "UPDATE OR DELETE"  # superseded checkpoints are forgotten
        yield (
            f"CREATE TRIGGER unchanged BEFORE {changes} ON {NAME}.{name} "
            f"FOR EACH ROW EXECUTE FUNCTION {NAME}.refuse_change()"
        )
        yield (
            f"CREATE TRIGGER whole BEFORE TRUNCATE ON {NAME}.{name} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {NAME}.refuse_change()"
        )
    yield from _grants([table.name for table in contents])
    yield f"INSERT INTO {NAME}.version VALUES ('{VERSION}')"


def additions(known: Mapping[str, Collection[str]]) -> Iterator[str]:
    """What a store made by an earlier rlgpt lacks: columns that came with later revisions of the sessions' schema."""
    for model in tables.CONTENT:
        table = SQLModel.metadata.tables[str(model.__tablename__)]
        for column in _of_all_sessions(table).columns:
            if column.name not in known[table.name]:
                since = table.columns[column.name].info["since"]
                compiled = CreateColumn(column).compile(dialect=DIALECT)
                yield f'ALTER TABLE {NAME}."{table.name}" ADD COLUMN {compiled}'
                yield f"""COMMENT ON COLUMN {NAME}."{table.name}"."{column.name}" IS '{since}'"""


def _of_all_sessions(table: Table) -> Table:
    columns = (Column(c.name, c.type, nullable=c.nullable, autoincrement=False) for c in table.columns)
    return Table(table.name, MetaData(), *columns, PrimaryKeyConstraint("session_id", "seq"), schema=NAME)


def _grants(contents: list[str]) -> Iterator[str]:
    """Who reads, who sends commands, who writes rows; nobody but the owner may delete a session."""
    for role in (READER, OPERATOR, WORKER):
        yield (
            "DO $$ BEGIN "
            f"IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN CREATE ROLE {role} NOLOGIN; END IF; "
            "END $$"
        )
    yield f"REVOKE ALL ON SCHEMA {NAME} FROM PUBLIC"
    yield f"GRANT USAGE ON SCHEMA {NAME} TO {READER}, {OPERATOR}, {WORKER}"
    yield f"GRANT SELECT ON ALL TABLES IN SCHEMA {NAME} TO {READER}, {OPERATOR}, {WORKER}"
    yield f"GRANT INSERT ON {NAME}.inbox TO {OPERATOR}, {WORKER}"
    written = ", ".join(f"{NAME}.{name}" for name in [*contents, "text", "command", "artifact", "head"])
    yield f"GRANT INSERT ON {written} TO {WORKER}"
    yield f"GRANT UPDATE ON {NAME}.head TO {WORKER}"
    yield f"GRANT DELETE ON {NAME}.artifact TO {WORKER}"

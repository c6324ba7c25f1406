"""Which revision of the schema a database has, and what that allows. Standard library only."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from rlgpt.store.errors import BadPlace, BadSchema, Damaged
from rlgpt.store.sqlite_errors import is_full, is_locked, is_passing, primary_code

REVISION = "0004"
"""The newest revision; they are numbered, so that their order is that of their names."""
REWRITTEN = "0002"
"""The newest revision that changed or moved rows that were there; those since only add columns."""
REVISIONS = tuple(f"{number:04}" for number in range(1, int(REVISION) + 1))
"""All there were."""


def damaged(database: Path, what: str) -> Damaged:
    """The damage of a session's database, as an error to raise that says what to do."""
    name = database.parent.name
    return Damaged(f"session {name} is damaged: {what}; `rlgpt store repair {name}` saves what is sound")


def found(base: sqlite3.Connection, path: Path) -> str:
    """The revision of a session's open database. Raises as `read`, Damaged with the session and what to do."""
    try:
        return read(base, path)
    except Damaged as error:
        raise damaged(path, str(error)) from error


def read(base: sqlite3.Connection, path: Path) -> str:
    """The revision of an open database. Raises BadSchema if it is no session of ours or a newer one, BadPlace if it
    cannot be read now, and Damaged with nothing but the damage."""
    try:
        row = base.execute("SELECT version_num FROM alembic_version").fetchone()
    except UnicodeDecodeError as error:  # in SQLite's own message
        raise Damaged("its schema cannot be read") from error
    except sqlite3.DatabaseError as error:
        if primary_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise Damaged(str(error)) from error
        if is_passing(error):
            why = f"its disk is full, or does not answer ({error})" if is_full(error) else str(error)
            why = "another program has locked it" if is_locked(error) else why
            raise BadPlace(f"{path} cannot be read now: {why}") from error
        raise BadSchema(f"{path} is not the database of a session ({error})") from error
    revision = str(row[0]) if row else ""
    if len(revision) != len(REVISION) or not (revision.isascii() and revision.isdigit()):
        raise Damaged("it has no number of a schema")
    if revision > REVISION:
        raise BadSchema(f"{path} has schema {revision}, newer than this rlgpt's {REVISION}: update rlgpt to open it")
    return revision

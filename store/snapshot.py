"""A copy of a session's database as of one moment, whole or without its bulk. Standard library only."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path

from rlgpt.store import query
from rlgpt.store.database import address, connect
from rlgpt.store.errors import DiskFull, StoreError

_TARGET_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)
"""The second at a quota or a limit of a file's size. An error of reading is the source's, and is told as it is."""


def copy_database(source: Path, target: Path) -> None:
    """One consistent, compact file without a log beside it; the source may be written meanwhile.

    Raises StoreError.
    """
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        with contextlib.closing(connect(source, timeout=30)) as base:
            base.execute("VACUUM INTO ?", (address(target, "rw"),))  # an address: a path may be no Unicode
        settle_journal(target)
    except (sqlite3.Error, OSError, UnicodeError) as error:  # sqlite3 cannot decode a message that quotes damaged bytes
        from rlgpt.store.soundness import explained  # late: it needs the whole schema

        target.unlink(missing_ok=True)
        if damage := explained(source):
            raise damage from error
        if isinstance(error, sqlite3.Error) and error.sqlite_errorcode in _TARGET_FULL:
            raise DiskFull(f"the disk of {target.parent} is full: {source} could not be copied") from error
        raise StoreError(f"{source} could not be copied to {target}: {error}") from error


def settle_journal(database: Path) -> None:
    """Leave WAL mode, so that the single file can be read from any medium; a writer turns it on again."""
    with contextlib.closing(sqlite3.connect(database)) as base:
        base.execute("PRAGMA journal_mode=DELETE")


def without_evidence_bulk(database: Path) -> None:
    """Remove from a copy what a claim does not need: frames, logs, recorded actions, prompts and replies."""
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as base:
        base.execute("BEGIN IMMEDIATE")
        with unguarded(base, ("frame", "log", "text")):
            base.execute("DELETE FROM frame")
            base.execute("DELETE FROM log")
            base.execute("DELETE FROM text WHERE hash IN (SELECT request_hash FROM llm_call)")
            base.execute("DELETE FROM text WHERE hash IN (SELECT reply_hash FROM llm_call)")
        base.execute("COMMIT")
        base.execute("VACUUM")


@contextlib.contextmanager
def unguarded(base: sqlite3.Connection, tables: Collection[str]) -> Iterator[None]:
    """Inside an open transaction, take the triggers off these tables and put the same ones back."""
    marks = ", ".join("?" * len(tables))
    guards = base.execute(
        f"SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name IN ({marks})", [*tables]
    ).fetchall()
    for name, _ in guards:
        base.execute(f"DROP TRIGGER {query.quoted(name)}")
    yield
    for _, sql in guards:
        base.execute(sql)

"""Opens a session's database: builds SQLite's URI and checks what kind of file it is.

Standard library only.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path
from typing import Literal

from rlgpt.store.errors import BadPlace, Damaged

opened: dict[Path, None] = {}
"""The databases that this process opened, in order: where an unexpected error may have come from."""


def address(database: Path, mode: Literal["ro", "rw"] = "ro") -> str:
    """SQLite's URI of the file, with `?`, `#`, `%` and the like in its path quoted.

    In a folder that cannot be written, SQLite must not look for a log beside the file, unless one with rows is there.
    """
    fixed = mode == "ro" and _is_fixed(database) and not _has_rows_beside(database)
    return f"{database.absolute().as_uri()}?{'immutable=1' if fixed else f'mode={mode}'}"


def _require_readable(base: sqlite3.Connection, database: Path) -> None:
    """Where SQLite cannot write it reads a log only with the log's index beside it (https://sqlite.org/wal.html)."""
    try:
        base.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        base.close()
        raise BadPlace(
            f"{database.parent} cannot be written, and the newest rows of the session lie beside its database without "
            "an index: copy the folder to one of yours"
        ) from error


def _is_fixed(database: Path) -> bool:
    return not os.access(database.parent, os.W_OK)


def _has_rows_beside(database: Path) -> bool:
    """In a write-ahead log, of a session that runs or was killed."""
    try:
        return database.with_name(f"{database.name}-wal").stat().st_size > 0
    except OSError:
        return False


def connect(database: Path, mode: Literal["ro", "rw"] = "ro", timeout: float = 10.0) -> sqlite3.Connection:
    """Outside any transaction, to be shared by threads. Raises BadPlace, Damaged."""
    check_file(database)
    opened[database] = None
    try:
        base = sqlite3.connect(
            address(database, mode), uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
        )
        base.execute("PRAGMA trusted_schema=OFF")
        base.execute("PRAGMA cell_size_check=ON")
        if mode == "ro" and _is_fixed(database) and _has_rows_beside(database):
            _require_readable(base, database)
    except sqlite3.Error as error:
        raise BadPlace(f"{database} cannot be opened: {error}") from error
    return base


def check_file(database: Path) -> None:
    """What is no plain file is never opened: a pipe would wait for ever. Raises BadPlace, Damaged."""
    try:
        state = database.lstat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BadPlace(f"there is no session in {database.parent}") from error
    except OSError as error:
        raise BadPlace(f"{database} cannot be looked at: {error.strerror or error}") from error
    if not stat.S_ISREG(state.st_mode):
        kind = next((word for test, word in _KINDS if test(state.st_mode)), "a device")
        raise Damaged(f"{database} is {kind}, not the database of a session")
    if not state.st_size:
        raise Damaged(f"{database} is empty, not the database of a session")


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)

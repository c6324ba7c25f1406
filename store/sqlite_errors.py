"""What the codes of SQLite (https://www.sqlite.org/rescode.html) and of the system say of a failure: of the file, or of
this moment."""

from __future__ import annotations

import errno
import sqlite3

_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Of an OSError; EFBIG: `ulimit -f`."""
_PASSING = (*_LOCKED, *_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM)


def primary_code(error: BaseException) -> int:
    """The low byte of the extended result code; 0 (SQLITE_OK) of an error that has none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_locked(error: BaseException) -> bool:
    return primary_code(error) in _LOCKED


def is_full(error: BaseException) -> bool:
    """Whether nothing more can be written: at a quota or a limit of a file's size SQLite says I/O error."""
    return primary_code(error) in _FULL or getattr(error, "errno", None) in _NO_ROOM


def is_passing(error: BaseException) -> bool:
    """Whether the same call on the same files may succeed later."""
    return primary_code(error) in _PASSING

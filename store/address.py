"""Where a team's store is: `RLGPT_STORE`, else `store` in rlgpt.toml. Standard library only."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from pathlib import Path

from rlgpt.store.errors import BadValue, MissingExtra, StoreError
from rlgpt.store.home import FILE, home, read_toml

VARIABLE = "RLGPT_STORE"
SCHEMES = ("postgresql", "postgres")
CLAIM = "shared.json"
"""In a session's folder: which store it is in, with which incarnation, and when that store was last reached."""
MARK = "mirror.json"
"""In the folder of a mirror: the place that it mirrors."""
NEAR = 5.0
"""Seconds that a store is behind a worker at most while all is well; its keeper says each second that it is there."""
_PASSWORD = re.compile(r"[^@/]*:[^@/]*@|[^?]*:[^?]*@|[^=]*:[^=]*@")
"""A user and a password before the host. The password may hold a #, a ? or a /: libpq takes the first two as letters of
it and ends the host at the third, and in each case it would be shown."""
EXTRA = "a store in PostgreSQL needs psycopg: install it with `pip install 'rlgpt[postgres]'`"


def named() -> str:
    """What every command means that is not told another store, "" where there is none. Raises StoreError."""
    if VARIABLE in os.environ:
        return checked(os.environ[VARIABLE])
    for path in (Path(FILE), home() / FILE):
        try:
            address = read_toml(path).get("store", "")
        except (FileNotFoundError, NotADirectoryError):  # the second is told of by who writes there
            continue
        except (OSError, ValueError) as error:
            raise StoreError(f"{path} cannot be read: {error}") from error
        if address:
            return checked(str(address))
    return ""


def is_shared(where: str) -> bool:
    return where.partition("://")[0] in SCHEMES and "://" in where


def checked(where: str) -> str:
    """Raises StoreError for an address that holds a password, which would stand in logs and in lists of processes, and
    BadValue for one of another kind, of which only the scheme is told: it may hold a password too."""
    scheme, slashes, rest = where.partition("://")
    if not slashes:
        if re.search(r"password\s*=", where):  # libpq's other way to write an address
            raise StoreError("that names no folder and holds a password: write postgresql://HOST/DATABASE without it")
        return where
    if scheme not in SCHEMES:
        raise BadValue(f"{scheme}:// is no place for sessions: name a folder, or postgresql://HOST/DATABASE")
    place, _, query = rest.partition("?")
    if _PASSWORD.match(rest):
        place = rest.rpartition("@")[2].partition("?")[0]
    elif "password" not in query:
        return where
    raise StoreError(
        f"the address of the store at {scheme}://{place.rpartition('@')[2]} holds a password: leave it out, and put it "
        "into ~/.pgpass, a service file or the variable PGPASSWORD"
    )


def need_extra() -> None:
    """Raises MissingExtra where no shared store can be spoken to."""
    if importlib.util.find_spec("psycopg") is None:
        raise MissingExtra(EXTRA)


def has_store() -> bool:
    """Whether a team's store is named, if perhaps wrongly: who asks it is told so."""
    try:
        return is_shared(named())
    except StoreError:
        return True


def source_of(folder: Path) -> str:
    """The place that a session's folder mirrors, "" for a session of its own."""
    try:
        return str(json.loads((folder / MARK).read_bytes())["of"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def reached_at(folder: Path) -> float:
    """When a session's keeper last reached the team's store, UTC seconds; 0.0 if never."""
    try:
        return float(json.loads((folder / CLAIM).read_bytes())["reached"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def behind(session_id: str) -> str:
    """What is said of a session whose last rows could not be pushed."""
    return f"the shared store is behind: `rlgpt store push {session_id}` brings it up to date"


def behind_since(folder: Path, now: float) -> float:
    """UTC seconds since when the team's store has nothing new of a session that runs here; 0.0 while it is near."""
    reached = reached_at(folder)
    return reached if reached and now - reached > NEAR else 0.0

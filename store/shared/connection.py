"""A connection to a shared store, and what goes wrong with one as a sentence."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from typing import Any

from rlgpt.store.address import EXTRA, checked
from rlgpt.store.errors import Away, MissingExtra, NotAllowed, StoreError, TakesNothing

try:
    import psycopg
    from psycopg.abc import Buffer
    from psycopg.adapt import Loader
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.pq import Format
    from psycopg.types.string import TextBinaryLoader
except ImportError as error:
    raise MissingExtra(f"{EXTRA} ({error})") from error

logging.getLogger("psycopg").addHandler(logging.NullHandler())
"""It warns of each connection that is lost, which is told here as an error; Python would write it to the terminal."""
Connection = Any
"""psycopg's, of which mypy knows nothing, because the package is optional."""
PATIENCE = 10
"""Seconds to wait for a connection."""
KEEPALIVE = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=3 -c tcp_keepalives_count=3 -c tcp_user_timeout=20000"
"""So that a stock server notices a vanished client, and frees what it held, within half a minute: by probes while it is
silent, and by the last one while an answer is under way, which Linux else sends again for a quarter of an hour."""


ROLES = (
    "its owner grants the role rlgpt_reader to look at sessions, rlgpt_operator to send them commands, rlgpt_worker to "
    "run or push them; the rest only the owner may do"
)


class _Truth(Loader):
    """As SQLite keeps it."""

    format = Format.BINARY

    def load(self, data: Buffer) -> int:
        return bytes(data)[0]


def connect(address: str) -> Connection:
    """In autocommit mode; values come as a session's own database has them. Raises Away, StoreError."""
    checked(address)
    try:
        # psycopg would put ours in the place of those of the address or of libpq's variable
        theirs = conninfo_to_dict(address).get("options") or os.environ.get("PGOPTIONS", "")
        base = psycopg.connect(
            address,
            autocommit=True,
            connect_timeout=PATIENCE,
            application_name="rlgpt",
            options=f"{theirs} -c search_path=rlgpt -c client_encoding=utf8 {KEEPALIVE}",
            keepalives=1,
            keepalives_idle=10,
            keepalives_interval=3,
            keepalives_count=3,
            tcp_user_timeout=20_000,
        )
    except psycopg.OperationalError as error:
        raise _failed_to_connect(error, address) from error
    except psycopg.Error as error:
        raise StoreError(f"{place_of(address)} is no address of a store: {_line(error)}") from error
    base.adapters.register_loader("json", TextBinaryLoader)
    base.adapters.register_loader("bool", _Truth)
    try:
        _need_way_in(base, address)
    except BaseException:
        base.close()
        raise
    return base


def _need_way_in(base: Connection, address: str) -> None:
    """To whom the schema is closed the server says that there are no tables, as where no store was made yet. Raises
    NotAllowed."""
    with store_errors(address):
        row = base.execute("SELECT has_schema_privilege(to_regnamespace('rlgpt'), 'USAGE')").fetchone()
    if row == (False,):
        raise NotAllowed(f"the store {place_of(address)} is closed to you: {ROLES}")


def _failed_to_connect(error: psycopg.OperationalError, address: str) -> StoreError:
    sentence = f"the store {place_of(address)} cannot be reached: {_line(error)}"
    refused = ("password authentication", "no password", "does not exist", "pg_hba.conf", "permission denied")
    return StoreError(sentence) if any(word in str(error) for word in refused) else Away(sentence)


@contextlib.contextmanager
def store_errors(address: str) -> Iterator[None]:
    """What the server refuses, as a sentence. Raises Away where it is gone."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        full = getattr(error, "sqlstate", "") in ("53100", "53200")
        words = "has no room left" if full else "went away"
        raise Away(f"the store {place_of(address)} {words}: {_line(error)}") from error
    except psycopg.errors.ReadOnlySqlTransaction as error:
        raise TakesNothing(f"the store {place_of(address)} takes nothing now: {_line(error)}") from error
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
        raise StoreError(
            f"{place_of(address)} is no store yet: its owner runs `rlgpt store init {place_of(address)}`"
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise NotAllowed(f"the store {place_of(address)} does not let you do that ({_line(error)}): {ROLES}") from error
    except psycopg.Error as error:
        raise StoreError(f"the store {place_of(address)} refused: {_line(error)}") from error


def place_of(address: str) -> str:
    """The address without its parameters, for sentences."""
    return address.partition("?")[0]


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__

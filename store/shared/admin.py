"""What the owner of a shared store does: make it, look after it, delete from it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from rlgpt.store.errors import StoreError
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.peers import digest, sync
from rlgpt.store.shared import schema
from rlgpt.store.shared.connection import Connection, connect, place_of, store_errors
from rlgpt.store.shared.peer import OUTSIDE, SharedPeer, layout

ALONE = "SELECT pg_advisory_xact_lock(hashtextextended('rlgpt.version', 0))"
"""Of several that make or upgrade a store at once the second waits until the first has, and finds it done."""


class Size(NamedTuple):
    session_id: str
    rows: int
    files: int
    """Bytes of its checkpoints and other files."""


def init(address: str) -> None:
    """Make an empty store in a database that the caller owns. Raises StoreError where there is one."""
    with connect(address) as base, store_errors(address), base.transaction():
        base.execute(ALONE)
        if version(address):
            raise StoreError(f"{place_of(address)} is a store already")
        if missing := _roles_to_make(base):
            raise StoreError(
                f"you may not make the roles {', '.join(missing)} on the server of {place_of(address)}: have them "
                "made by who may (CREATE ROLE), or be given the right to (ALTER ROLE ... CREATEROLE)"
            )
        for statement in schema.statements():
            base.execute(statement)


def _roles_to_make(base: Connection) -> list[str]:
    """Those that the server lacks, where the caller may make none: to own a database is not enough for it."""
    row = base.execute("SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
    if row and row[0]:
        return []
    known = {name for (name,) in base.execute("SELECT rolname FROM pg_roles")}
    return [role for role in (schema.READER, schema.OPERATOR, schema.WORKER) if role not in known]


def version(address: str) -> str:
    """Of the store there, "" where there is none."""
    with connect(address) as base, store_errors(address):
        found = base.execute("SELECT to_regclass('rlgpt.version')").fetchone()
        if not found or found[0] is None:
            return ""
        row = base.execute("SELECT number FROM version").fetchone()
        return str(row[0]) if row else ""


def upgrade(address: str) -> str:
    """Bring the store to this rlgpt's version, so that it takes its sessions; returns a sentence. Raises StoreError."""
    now = version(address)
    if not now:
        raise StoreError(f"{place_of(address)} is no store yet: `rlgpt store init {place_of(address)}` makes one")
    if now > schema.VERSION:
        raise StoreError(f"the store has version {now}, newer than this rlgpt's {schema.VERSION}: update rlgpt")
    with connect(address) as base, store_errors(address), base.transaction():
        base.execute(ALONE)
        added = list(schema.additions(layout(base)))
        for statement in added:
            base.execute(statement)
    if added:
        return f"the store has version {now} and {len(added) // 2} new columns"
    return f"the store has version {now}, the newest there is"


def check(address: str, session_id: str) -> list[str]:
    """Everything that is wrong with a session there, as sentences: it is copied as an import would be."""
    with connect(address) as base, tempfile.TemporaryDirectory(prefix="rlgpt-") as scratch:
        shared, copy = SharedPeer(base, address, session_id), FolderPeer(Path(scratch) / session_id)
        try:
            sync(shared, copy)
            same = digest(shared) == digest(copy)
        except StoreError as error:
            return [f"session {session_id}: {error}"]
    return [] if same else [f"session {session_id}: a copy of it differs"]


def sizes(address: str) -> list[Size]:
    """Of every session there, oldest first."""
    with connect(address) as base, store_errors(address):
        tables = layout(base) or ["head"]  # where there is no store there is no head: it is told so
        rows = " UNION ALL ".join(f'SELECT session_id FROM "{table}"' for table in tables)
        found = base.execute(
            f"SELECT h.session_id, coalesce(r.rows, 0), coalesce(f.bytes, 0)::bigint FROM head h "
            f"LEFT JOIN (SELECT session_id, count(*) AS rows FROM ({rows}) every GROUP BY 1) r USING (session_id) "
            "LEFT JOIN (SELECT session_id, sum(octet_length(body)) AS bytes FROM artifact GROUP BY 1) f "
            "USING (session_id) WHERE h.seq > 0 ORDER BY 1"
        )
        return [Size(*row) for row in found]


def total(address: str) -> int:
    """Bytes that the store takes on its server's disk."""
    with connect(address) as base, store_errors(address):
        row = base.execute(
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class "
            "WHERE relnamespace = to_regnamespace('rlgpt') AND relkind = 'r'"
        ).fetchone()
        return int(row[0]) if row else 0


def delete(address: str, session_id: str) -> None:
    """Remove a session for good; only the owner of the store may. Raises LeaseTaken while a worker has it."""
    with connect(address) as base:
        peer = SharedPeer(base, address, session_id)
        if not peer.head().seq:
            raise StoreError(f"there is no session {session_id} in {place_of(address)}")
        peer.borrow()
        with store_errors(address), base.transaction():
            base.execute("SELECT set_config('rlgpt.deleted', %s, true)", (session_id,))
            for table in [*layout(base), *OUTSIDE]:
                if table != "version":
                    base.execute(f'DELETE FROM "{table}" WHERE session_id = %s', (session_id,))

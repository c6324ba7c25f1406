"""A shared store as a place for sessions: which there are, and each of them as a peer."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from typing import Any

from rlgpt.store import catalog
from rlgpt.store.catalog import Summary
from rlgpt.store.folder import SessionFolder
from rlgpt.store.shared.connection import Connection, connect, place_of, store_errors
from rlgpt.store.shared.peer import LOCKED, SharedPeer
from rlgpt.store.shared.summaries import summary_of, text_of

NAMED = "seq > 0 AND session_id ~ '^[a-z0-9][a-z0-9-]*$'"
"""Whoever may write to the store may write any id there, and here an id is the name of a folder."""


class SharedStore:
    """Raises Away, StoreError, MissingExtra."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._connection = connect(address)
        self._summaries: dict[str, tuple[Any, Summary]] = {}
        """When a session was told of, by the server's clock, and what."""

    @property
    def _base(self) -> Connection:
        """Another one where the last was lost."""
        if self._connection.closed:
            self._connection = connect(self._address)
        return self._connection

    @property
    def place(self) -> str:
        return place_of(self._address)

    def sessions(self) -> dict[str, str]:
        with store_errors(self._address):
            sql = f"SELECT session_id, name FROM head WHERE {NAMED} ORDER BY session_id"
            return dict(self._base.execute(sql).fetchall())

    def summaries(self) -> list[Summary]:
        """What the keepers last told of each session, and whether one has it now. Newest first. What was told since the
        last call is read, and no settings twice: they never change."""
        sql = f"SELECT session_id, told_at, {LOCKED} FROM head WHERE {NAMED} AND summary IS NOT NULL"
        with store_errors(self._address):
            heads = self._base.execute(f"{sql} ORDER BY session_id DESC").fetchall()
            self._read([ident for ident, at, _ in heads if self._summaries.get(ident, (None,))[0] != at])
        return [self._now(ident, bool(alive)) for ident, _, alive in heads if ident in self._summaries]

    def _read(self, stale: list[str]) -> None:
        if not stale:
            return
        new = [ident for ident in stale if ident not in self._summaries]
        sql = "SELECT session_id, settings::text FROM session WHERE session_id = ANY(%s)"
        settings = {ident: json.loads(body) for ident, body in self._base.execute(sql, (new,))} if new else {}
        sql = "SELECT session_id, told_at, summary::text FROM head WHERE session_id = ANY(%s)"
        for ident, at, body in self._base.execute(sql, (stale,)):
            fixed = settings[ident] if ident in settings else self._summaries[ident][1].settings
            self._summaries[ident] = (at, summary_of(ident, json.loads(body), fixed, self.place))

    def _now(self, ident: str, alive: bool) -> Summary:
        at, summary = self._summaries[ident]
        if summary.alive != alive:
            summary = dataclasses.replace(summary, alive=alive)
            self._summaries[ident] = (at, summary)
        return summary

    def remote(self, session_id: str) -> SharedPeer:
        return SharedPeer(self._base, self._address, session_id)

    @contextlib.contextmanager
    def target(self, session_id: str) -> Iterator[SharedPeer]:
        peer = self.remote(session_id)
        peer.borrow()
        try:
            yield peer
        finally:
            peer.release()

    def tags(self, session_id: str) -> tuple[str, ...]:
        with store_errors(self._address):
            row = self._base.execute("SELECT tags::text FROM head WHERE session_id = %s", (session_id,)).fetchone()
        return tuple(json.loads(row[0])) if row else ()

    def describe(self, session: SessionFolder) -> None:
        summary = dataclasses.replace(catalog.summary(session), tags=catalog.tags(session))
        with store_errors(self._address):
            sql = "UPDATE head SET tags = %s, summary = %s, told_at = clock_timestamp() WHERE session_id = %s"
            self._base.execute(sql, (json.dumps(summary.tags), text_of(summary), session.id))

    def close(self) -> None:
        self._connection.close()

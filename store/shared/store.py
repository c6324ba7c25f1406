"""A shared store as a place for sessions: which there are, and each of them as a peer."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator

from rlgpt.store import catalog
from rlgpt.store.catalog import Summary
from rlgpt.store.folder import SessionFolder
from rlgpt.store.shared.connection import connect, place_of, said
from rlgpt.store.shared.peer import LOCKED, SharedPeer


class SharedStore:
    """Raises Away, StoreError, MissingExtra."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._base = connect(address)

    @property
    def place(self) -> str:
        return place_of(self._address)

    def sessions(self) -> dict[str, str]:
        with said(self._address):
            sql = "SELECT session_id, name FROM head WHERE seq > 0 ORDER BY session_id"
            return dict(self._base.execute(sql).fetchall())

    def summaries(self) -> list[Summary]:
        """What the keepers last told of each session, and whether one has it now. Newest first."""
        sql = f"SELECT summary::text, {LOCKED} FROM head WHERE seq > 0 AND summary IS NOT NULL ORDER BY session_id"
        with said(self._address):
            rows = self._base.execute(sql).fetchall()
        names = {field.name for field in dataclasses.fields(Summary)}
        told = [{k: v for k, v in json.loads(body).items() if k in names} for body, _ in rows]  # of any rlgpt
        summaries = [Summary(**{**tree, "tags": tuple(tree.get("tags", ()))}) for tree in told]
        alive = [alive for _, alive in rows]
        return [
            dataclasses.replace(summary, alive=lives, store=self.place)
            for summary, lives in reversed(list(zip(summaries, alive, strict=True)))
        ]

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
        with said(self._address):
            row = self._base.execute("SELECT tags::text FROM head WHERE session_id = %s", (session_id,)).fetchone()
        return tuple(json.loads(row[0])) if row else ()

    def describe(self, session: SessionFolder) -> None:
        told = dataclasses.replace(catalog.summary(session), tags=catalog.tags(session))
        with said(self._address):
            sql = "UPDATE head SET tags = %s, summary = %s WHERE session_id = %s"
            self._base.execute(sql, (json.dumps(told.tags), json.dumps(dataclasses.asdict(told)), session.id))

    def close(self) -> None:
        self._base.close()

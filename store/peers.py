"""One operation takes a session elsewhere: `sync` brings what a target has of it up to what a source has.

A peer is a place that holds a prefix of one session: a folder, a row store of a team, a folder on another node. A
session is a log that only grows, so a copy is a prefix: byte for byte, whole batches, never a merge. Standard library
only.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

from rlgpt.store.errors import StoreError
from rlgpt.store.lease import Owner
from rlgpt.store.progress import Heartbeat
from rlgpt.store.revision import REWRITTEN
from rlgpt.store.row_types import JsonObject

LIMIT = 5_000
"""Rows of a batch: a few megabytes."""
PRUNABLE = ("frame", "log")
"""Tables whose rows `store prune` or a small bundle may leave out."""


class Fenced(StoreError):
    """Another worker has the session there: nothing of this one is taken any more."""


class Behind(StoreError):
    """The batch does not begin where the target ends."""


class Diverged(StoreError):
    """The target is no prefix of the source, so neither can be brought up to the other."""


class Head(NamedTuple):
    """How far a peer is."""

    session_id: str
    seq: int
    """Of its last row; 0 where nothing is there yet."""
    incarnation: int
    schema: str
    """Revision of its rows."""


NOTHING = Head("", 0, 0, "")


class Batch(NamedTuple):
    """The rows with first < seq <= last as the database has them (JSON as text, truth values as 0 and 1), and what the
    target lacks besides."""

    first: int
    last: int
    schema: str
    columns: dict[str, tuple[str, ...]]
    """By table."""
    rows: dict[str, list[tuple[Any, ...]]]
    """By table, in the order of `seq`."""
    texts: list[tuple[str, bytes]]
    """(hash, compressed text)."""
    artifacts: dict[str, bytes]
    """Files by hash: of the rollout checkpoints only the newest of each run."""
    commands: list[tuple[Any, ...]]
    """COMMAND columns, in the order of the inbox."""

    def __bool__(self) -> bool:
        return bool(self.rows or self.texts or self.artifacts or self.commands)

    def in_order(self) -> Iterator[tuple[int, str, tuple[Any, ...]]]:
        """(seq, table, row)."""
        places = {table: names.index("seq") for table, names in self.columns.items()}
        every = ((row[places[table]], table, row) for table, rows in self.rows.items() for row in rows)
        yield from sorted(every, key=lambda found: found[0])


COMMAND = ("id", "session_id", "at", "author", "kind", "payload", "revision")


class Target(Protocol):
    def append(self, batch: Batch) -> None:
        """Whole, or not at all. Raises Fenced, Behind, StoreError."""


class Peer(Target, Protocol):
    @property
    def place(self) -> str:
        """Where it is, for a sentence."""

    def head(self) -> Head:
        """NOTHING where the session is not there yet."""

    def names(self) -> set[str]:
        """What it has outside the sequence: hashes of texts and files, ids of commands."""

    def mark(self, seq: int) -> str:
        """The digest of the last row up to `seq` that no pruning takes away; equal marks mean equal prefixes, because
        a row holds the moment at which it was written."""

    def since(self, seq: int, names: set[str], limit: int = LIMIT) -> Batch:
        """At most about `limit` rows behind `seq`, never half a transaction, and what is not in `names`."""


class RemoteWorker(NamedTuple):
    """A worker that lives elsewhere, with its last heartbeat."""

    owner: Owner
    heartbeat: Heartbeat


class Remote(Peer, Protocol):
    """A peer that the session's worker writes, and that takes commands for it."""

    def worker(self) -> RemoteWorker | None:
        """None while no worker lives there."""

    def send(self, command: JsonObject) -> None:
        """Queue a command (COMMAND columns, its payload as a tree) under the id and author it has; not twice."""


def sync(source: Peer, target: Peer, limit: int = LIMIT) -> int:
    """Bring the target up to the source; returns how many rows it took. Raises Diverged, Fenced, Behind, StoreError:
    what was appended before stays, and is a prefix."""
    return bring(source, target, _common(source, target), target.names(), limit).rows


class Brought(NamedTuple):
    seq: int
    """How far the target is now."""
    rows: int
    """That it took."""


def bring(source: Peer, target: Target, seq: int, names: set[str], limit: int = LIMIT) -> Brought:
    """As `sync`, for who writes the target alone and knows how far it is. `names`: what the target has outside the
    sequence, which grows with it."""
    rows = 0
    while batch := source.since(seq, names, limit):
        target.append(batch)
        seq = batch.last
        rows += sum(map(len, batch.rows.values()))
        names |= _names(batch)
    return Brought(seq, rows)


def _names(batch: Batch) -> set[str]:
    return {name for name, _ in batch.texts} | set(batch.artifacts) | {row[0] for row in batch.commands}


def _common(source: Peer, target: Peer) -> int:
    """The number of the row up to which both are equal: all that the target has."""
    has, given = target.head(), source.head()
    if not given.seq:
        raise StoreError(f"there is no session at {source.place}")
    if not has.seq:
        return 0
    copy = f"{target.place} is no copy of {source.place}"
    if has.session_id != given.session_id:
        raise Diverged(f"{copy}: it holds session {has.session_id}, not {given.session_id}")
    if has.schema != given.schema and not REWRITTEN <= has.schema < given.schema:
        raise Diverged(
            f"{copy} any more: its rows have schema {has.schema}, those of the session {given.schema}; "
            "delete the copy, then copy the session again"
        )
    if has.seq > given.seq:
        raise Diverged(f"{copy} but ahead of it, at row {has.seq} where the other ends at row {given.seq}")
    if source.mark(has.seq) != target.mark(has.seq):
        raise Diverged(f"{copy}: the two went on differently from the same beginning")
    return has.seq


def digest(peer: Peer, limit: int = LIMIT) -> str:
    """Of all that the session is: rows, texts, files and commands. Equal digests, equal sessions."""
    state = blake2b(digest_size=16)
    texts: dict[str, bytes] = {}
    commands: dict[str, str] = {}
    seq = 0
    while batch := peer.since(seq, {*texts, *commands}, limit):
        for _, table, row in batch.in_order():
            state.update(row_bytes(table, batch.columns[table], row))
        texts |= {name: blake2b(body).digest() for name, body in batch.texts}
        commands |= {row[0]: repr(row[:2] + row[4:]) for row in batch.commands}  # moment and author are of each inbox
        seq = batch.last
        if not batch.rows:  # only files are left, those that belong to the last row
            state.update(repr(sorted(batch.artifacts)).encode())
            break
    state.update(repr((peer.head().schema, sorted(texts.items()), sorted(commands.items()))).encode())
    return state.hexdigest()


def row_bytes(table: str, columns: tuple[str, ...], row: tuple[Any, ...]) -> bytes:
    """A row in one spelling, whatever the order of its columns: 1 and 1.0 differ, as do a text and bytes. A column that
    holds nothing is left out, as if its revision had not come yet."""
    values = sorted((name, value) for name, value in zip(columns, row, strict=True) if value is not None)
    return repr((table, [(name, type(value).__name__, value) for name, value in values])).encode()

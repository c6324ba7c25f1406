"""Appends events to a session from a process that is not its worker.

Only who holds the session's lease uses this, while no worker runs, so there is still one writer at a time. Standard
library only: a supervisor must stay small and must not fail to import.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rlgpt.store.database import connect
from rlgpt.store.event_payloads import kind_of, payload_of
from rlgpt.store.events import Command, Ended, Event, Resumed, Started
from rlgpt.store.plain import plain


def append_event(folder: Path, event: Event) -> int:
    """Append the event behind everything written so far; returns its seq. Raises sqlite3.Error."""
    kind, payload = kind_of(event), json.dumps(plain(payload_of(event)))
    base = connect(folder / "session.db", "rw")
    try:
        base.execute("PRAGMA synchronous=FULL")
        base.execute("BEGIN IMMEDIATE")
        last = _last_row(base)
        base.execute(
            "INSERT INTO event (seq, session_id, incarnation, at, active, kind, payload) VALUES (?,?,?,?,?,?,?)",
            (last[0] + 1, last[1], last[2], time.time(), last[3], kind, payload),
        )
        base.execute("COMMIT")
        return int(last[0]) + 1
    finally:
        base.close()


class Queued(NamedTuple):
    """A command of the inbox that nobody has decided."""

    id: str
    kind: str
    author: str
    revision: int | None
    payload: str
    """JSON."""


def undecided(folder: Path) -> list[Queued]:
    """Oldest first. Raises sqlite3.Error."""
    base = connect(folder / "session.db")
    try:
        found = base.execute(
            "SELECT id, kind, author, revision, payload FROM command WHERE id NOT IN ("
            "SELECT json_extract(payload, '$.id') FROM event WHERE kind = ? "
            "AND json_extract(payload, '$.state') IN ('applied', 'refused', 'expired')) ORDER BY rowid",
            (kind_of(Command),),
        )
        return [Queued(*row) for row in found]
    finally:
        base.close()


def append_stop(folder: Path, reason: str, applied: Sequence[str] = ()) -> None:
    """End the session as stopped. What nobody had decided must not wait for the next worker: it expires, but commands
    of a kind in `applied`, which are done by this. Raises sqlite3.Error."""
    for queued in undecided(folder):
        done = queued.kind in applied
        payload = json.loads(queued.payload)
        fate = Command(
            queued.id,
            queued.kind,
            queued.author,
            queued.revision,
            payload,
            "applied" if done else "expired",
            "" if done else "the session ended first",
        )
        append_event(folder, fate)
    append_event(folder, Ended("stopped", reason))


def progress_mark(folder: Path) -> int:
    """Seq of the newest row that stands for completed work: what a restarted worker need not do again."""
    base = connect(folder / "session.db")
    try:
        tables = ("plan", "code_version", "trial", "rl_config", "checkpoint", "evaluation", "verdict")
        return max(int(base.execute(f"SELECT coalesce(max(seq), 0) FROM {t}").fetchone()[0]) for t in tables)
    finally:
        base.close()


def ended_at(folder: Path) -> int:
    """Seq of the session's end as the worker that started last has written it, 0 if it has not. Raises
    sqlite3.Error."""
    base = connect(folder / "session.db")
    try:
        found = base.execute(
            "SELECT kind, seq FROM event WHERE kind IN (?, ?, ?) ORDER BY seq DESC LIMIT 1",
            (kind_of(Started), kind_of(Resumed), kind_of(Ended)),
        ).fetchone()
        return int(found[1]) if found is not None and found[0] == kind_of(Ended) else 0
    finally:
        base.close()


def _last_row(base: sqlite3.Connection) -> tuple[int, str, int, float]:
    names = [row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    best: tuple[int, str, int, float] = (0, "", 0, 0.0)
    for name in names:
        columns = {row[1] for row in base.execute(f'PRAGMA table_info("{name}")')}
        if not {"seq", "session_id", "incarnation", "active"} <= columns:
            continue
        row = base.execute(
            f'SELECT seq, session_id, incarnation, active FROM "{name}" ORDER BY seq DESC LIMIT 1'
        ).fetchone()
        if row and row[0] > best[0]:
            best = row
    return best

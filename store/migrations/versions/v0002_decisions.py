"""Decisions become rows, and a score has columns of its own.

Until 0001 every reader computed which version acted and which iteration was the result, by its own rules. This writes
what the rules of that time said as events, where a worker would have written them; rows behind them move up.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from typing import Any

from alembic import op

from rlgpt.store import query, schema
from rlgpt.store.migrations import rules_0001
from rlgpt.store.snapshot import unguarded

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for statement in schema.additions(revision):
        op.execute(statement)
    base = op.get_bind().connection.driver_connection
    assert isinstance(base, sqlite3.Connection)
    tables = query.sequenced(base)
    rows = query.changes(base, [tables[name].selection() for name in LOOKED_AT], after=0)
    if not rows:
        return
    with unguarded(base, list(tables)):
        session = rows[0][1]
        milestones = rules_0001.Session(session).scored
        if milestones:
            _scores(base, tables, milestones)
        inserts = rules_0001.decisions(session, rows, query.last_seq(base, tables))
        if inserts:
            _renumber(base, list(tables), [insert.before for insert in inserts])
            _insert(base, inserts, str(session["session_id"]))


LOOKED_AT = (
    "session", "iteration", "plan", "sub_action", "code_version", "trial", "evaluation", "verdict", "event",
)  # fmt: skip


def _scores(base: sqlite3.Connection, tables: dict[str, query.Table], milestones: tuple[str, ...]) -> None:
    for row in tables["evaluation"].selection().rows(base):
        score = rules_0001.score(row["milestones"], row["episodes"], milestones)
        low, high = rules_0001.wilson(score * row["episodes"], row["episodes"])
        told = (score, low, high, row["seq"])
        base.execute("UPDATE evaluation SET score = ?, score_low = ?, score_high = ? WHERE seq = ?", told)
    events = tables["event"].selection().rows(base, "WHERE kind = 'resumed'")
    hidden = [(e["payload"]["from_seq"], e["seq"]) for e in events if e["payload"].get("run") is not None]
    reached: Counter[str] = Counter()
    episodes = 0
    for row in tables["metric"].selection().rows(base, "ORDER BY seq"):
        if any(after < row["seq"] < before for after, before in hidden):
            continue
        reached.update(row["milestones"])
        episodes += row["episodes"]
        if episodes:
            score = rules_0001.score(reached, episodes, milestones)
            base.execute("UPDATE metric SET score = ? WHERE seq = ?", (score, row["seq"]))


def _renumber(base: sqlite3.Connection, tables: list[str], places: list[int]) -> None:
    """Every row moves up by the number of events that are to stand before it, and so does what names a row."""
    base.execute("CREATE TEMP TABLE place (before INTEGER NOT NULL)")
    base.executemany("INSERT INTO place VALUES (?)", [(place,) for place in places])
    moved = "(SELECT count(*) FROM place WHERE before <= {0})"
    for table in tables:
        quoted = query.quoted(table)
        base.execute(f"UPDATE {quoted} SET seq = -(seq + {moved.format('seq')})")  # two steps: no two rows meet
        base.execute(f"UPDATE {quoted} SET seq = -seq")
    base.execute(f"UPDATE frame SET owner = owner + {moved.format('owner')} WHERE source = 'trial'")
    base.execute(f"UPDATE session SET parent_seq = parent_seq + {moved.format('parent_seq + 1')}")
    for kind, name, behind in (("resumed", "from_seq", 0), ("forked", "seq", 1)):
        for seq, payload in base.execute("SELECT seq, payload FROM event WHERE kind = ?", (kind,)).fetchall():
            tree: dict[str, Any] = json.loads(payload)
            tree[name] += sum(place <= tree[name] + behind for place in places)
            base.execute("UPDATE event SET payload = ? WHERE seq = ?", (json.dumps(tree), seq))
    base.execute("DROP TABLE place")


def _insert(base: sqlite3.Connection, inserts: list[rules_0001.Insert], session_id: str) -> None:
    rows = [
        (insert.before + earlier, session_id, *insert.when, insert.kind, json.dumps(insert.payload))
        for earlier, insert in enumerate(inserts)
    ]
    columns = "seq, session_id, incarnation, at, active, kind, payload"
    base.executemany(f"INSERT INTO event ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

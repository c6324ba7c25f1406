"""A session of an earlier schema is shown from a copy, until its own worker brings it up to date."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from rlgpt.console.feed import Feed
from rlgpt.store import folder, migrations
from rlgpt.store.export import import_

SHOWN = Path(__file__).parents[1] / "sessions" / "shown"


def test_a_copy_of_an_older_session_follows_the_session_once_that_is_brought_up_to_date(home: Path) -> None:
    place = import_(SHOWN / "eat_plant-rlgpt-0.rlgpt").path
    feed = Feed(place)
    feed.open()
    assert feed.notice and not feed.poll()
    seq = feed.moment().history.seq
    with contextlib.closing(sqlite3.connect(place / folder.DATABASE, isolation_level=None)) as base:
        migrations.upgrade(base, place / folder.DATABASE)  # as a worker does that resumes it
        names = [row[1] for row in base.execute("PRAGMA table_info(event)")]
        row = dict(zip(names, base.execute("SELECT * FROM event ORDER BY seq DESC LIMIT 1").fetchone(), strict=True))
        row |= {"seq": seq + 1, "kind": "resumed", "payload": f'{{"from_seq": {seq}, "cause": "test"}}'}
        base.execute(f"INSERT INTO event VALUES ({','.join('?' * len(row))})", list(row.values()))
    assert feed.poll()
    assert feed.moment().history.seq == seq + 1 and feed.moment().history.status == "running" and not feed.notice
    feed.close()

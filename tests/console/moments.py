"""Moments of a story without a disk: what the pure views are tested on."""

from __future__ import annotations

from typing import Any

from story import Story

from rlgpt.console.view.happenings import logged
from rlgpt.console.view.metrics import MetricTable
from rlgpt.console.view.moment import Moment, Worker
from rlgpt.store.films import FilmPlace, unpacked
from rlgpt.store.history import fold_all


def moment(story: Story, seq: int | None = None, **more: Any) -> Moment:
    """The story up to row `seq` (all of it by default)."""
    rows = [(t, r) for t, r in story.rows if seq is None or r["seq"] <= seq]
    table = MetricTable()
    table.extend([r for t, r in rows if t == "metric"])
    history = fold_all(rows)
    live = seq is None or seq >= story.seq
    fields: dict[str, Any] = {
        "logs": [said for row in rows if (said := logged(row))],
        "calls": [r for t, r in rows if t == "llm_call"],
        "films": [FilmPlace(r["seq"], r["source"], r["owner"], r["episode"]) for t, r in rows if t == "frame"],
        "episodes": [r for t, r in rows if t == "episode"],
        "film": lambda seq: unpacked(r for t, r in rows if t == "frame" and r["seq"] == seq),
        "worker": Worker(history.status != "ended", history.status, beat=history.at, pid=4242, host="lab"),
        "text": story.texts.get,
        "end_seq": story.seq,
    }
    return Moment(history, live, history.at + 1, table, **(fields | more))

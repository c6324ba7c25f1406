"""What must be equal between two runs of the same session, and what may differ."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rlgpt.store.folder import Place
from rlgpt.store.reader import Reader

WALL_CLOCK = {"at", "active", "seconds", "rate", "session_id", "call"}
"""Columns that tell when or where, not what."""
PLACES = {"seq", "incarnation"}
"""Columns that also differ between an unbroken session and one that was resumed."""
MOMENTS = {
    "seq", "at", "active", "started_at", "incarnation", "phase_active", "hidden", "session_id", "counts",
    "calls", "worked", "where",
}  # fmt: skip
"""What a fold says of when and where. `calls` counts requests sent: one whose answer a kill swallowed is sent again."""
TABLES = (
    "task_plan", "iteration", "plan", "sub_action", "code_version", "trial", "rl_config", "training_run", "metric",
    "episode", "evaluation", "verdict", "llm_call", "frame", "checkpoint",
)  # fmt: skip


def every_row(place: Place) -> dict[str, list[dict[str, Any]]]:
    """All rows but the session's own, without wall-clock columns."""
    with Reader(place) as reader:
        return {
            table: [{k: v for k, v in row.items() if k not in WALL_CLOCK} for row in reader.rows(table)]
            for table in (*TABLES, "event")
        }


def outcome(place: Place) -> dict[str, list[dict[str, Any]]]:
    """What the session amounts to: rows that a resume superseded are left out, and so is where the rest stand."""
    with Reader(place) as reader:
        history = reader.history_at(None)
        tables = {table: reader.rows(table) for table in TABLES if table != "llm_call"}
        kept: dict[str, list[dict[str, Any]]] = {}
        for table, rows in tables.items():
            if table in ("metric", "checkpoint", "frame", "episode"):
                rows = [row for row in rows if not _superseded(history, table, row)]
            if table == "checkpoint":
                rows = [row for row in rows if row["kind"] == "boundary"]
            kept[table] = [{k: v for k, v in row.items() if k not in WALL_CLOCK | PLACES} for row in rows]
        kept["answered"] = [
            {k: row[k] for k in ("step", "role", "request_hash", "reply_hash")}
            for row in reader.rows("llm_call")
            if row["state"] == "answered"
        ]
        return kept


def folded(place: Place) -> dict[str, Any]:
    """The session as a tree of plain values, without when and where; no row of its own but settings and task."""
    with Reader(place) as reader:
        tree = asdict(reader.history_at(None))
    tree["session"] = {name: tree["session"][name] for name in ("task", "world", "settings", "versions", "task_info")}
    found = _without_moments(tree)
    assert isinstance(found, dict)
    return found


def _without_moments(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_moments(inside) for key, inside in value.items() if key not in MOMENTS}
    return [_without_moments(inside) for inside in value] if isinstance(value, list | tuple) else value


def _superseded(history: Any, table: str, row: dict[str, Any]) -> bool:
    number = row["owner"] if table in ("frame", "episode") else row["run"]
    if row.get("source", row.get("split", "train")) != "train":
        return False
    run = history.runs[number]
    return any(after < row["seq"] < before for after, before in run.hidden)

"""The one builder of session histories for tests: rows as a worker writes them, checked against the tables, and folded.

A row is named by its table and given by columns. A column that the table lacks, or a value that it cannot hold, fails
the test; columns that are left out get the table's own defaults. `Told` (tests/agents) and `Story` (tests/console) add
whole parts of a session to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlgpt.agents.choice import undecided
from rlgpt.store import event_payloads, events, tables
from rlgpt.store.history import History, fold
from rlgpt.store.row_types import Change
from rlgpt.store.rows import encode

_MODELS = {str(model.__tablename__): model for model in tables.CONTENT}
_ATTRIBUTES = {
    name: {column.name: attribute for attribute, column in model.__mapper__.columns.items()}
    for name, model in _MODELS.items()
}


@dataclass
class Rows:
    """Rows in the order of their numbers, with a clock, and what they fold to."""

    session_id: str = "s"
    started: float = 0.0
    clock: float = 0.0
    incarnation: int = 1
    seq: int = 0
    rows: list[Change] = field(default_factory=list)
    history: History = field(default_factory=History)

    def add(self, table: str, wait: float = 0.0, /, **columns: Any) -> dict[str, Any]:
        """One row, `wait` seconds after the one before. Raises KeyError, BadRow."""
        self.clock += wait
        self.seq += 1
        fields = {_ATTRIBUTES[table][name]: value for name, value in columns.items()}
        stamp = {
            "seq": self.seq, "session_id": self.session_id, "incarnation": self.incarnation,
            "at": self.started + self.clock, "active": self.clock,
        }  # fmt: skip
        row = encode(_MODELS[table](**fields), stamp).values
        self.rows.append((table, row))  # type: ignore[arg-type]
        fold(self.history, table, row)  # type: ignore[arg-type]
        return row

    def event(self, event: events.Event, wait: float = 0.0) -> dict[str, Any]:
        return self.add("event", wait, kind=event_payloads.kind_of(event), payload=event_payloads.payload_of(event))

    def decide(self) -> None:
        """The events of what the rules of `agents/choice.py` now say."""
        for decision in undecided(self.history):
            self.event(decision, 0.0)

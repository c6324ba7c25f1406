"""The inbox: sessions in which nothing goes on until the operator does something. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rlgpt.console.view.numbers import duration, many
from rlgpt.console.view.text import Entry, line, spread, wrap
from rlgpt.console.view.words import judged, wanted

if TYPE_CHECKING:
    from rlgpt.store.catalog import Summary


class Need(NamedTuple):
    summary: Summary
    what: str
    """What is asked of the operator, a sentence."""
    since: float
    """UTC seconds."""


def needs(found: Sequence[Summary]) -> list[Need]:
    """The longest waiting first: plans to approve, verdicts to give, pauses to end, workers that died."""
    out = [Need(s, told, s.at) for s in found if (told := _needed(s))]
    return sorted(out, key=lambda need: need.since)


def _needed(s: Summary) -> str:
    if s.fault or s.status in ("ended", "created"):
        return ""
    if s.status == "waiting" and (kind := wanted(s.waiting_for)):
        told = f"approve or reject plan {s.waiting_for.rpartition(' ')[2]}" if kind == "approval" else ""
        told = told or f"give your verdict on {judged(s.waiting_for)}"
        return told if s.alive else f"{told}; its worker is dead, start one first"
    if not s.alive:
        return "its worker is dead: start one again"
    return "paused: let it go on" if s.status == "paused" else ""


def sentence(number: int) -> str:
    """For a title line; empty when nobody waits."""
    if not number:
        return ""
    return f"{many(number, 'session')} {'waits' if number == 1 else 'wait'} for you"


def entries(found: Sequence[Summary], now: float, width: int) -> list[Entry]:
    out = [
        Entry(
            need.summary.id,
            (
                spread(
                    line(("● ", "warn"), (need.summary.name or need.summary.id, "bold")),
                    line((f"{duration(max(now - need.since, 0.0))} ago", "dim")),
                    width,
                ),
                *wrap(need.what, width, "", "  "),
            ),
            search=f"{need.summary.name} {need.what}",
            yank=need.summary.id,
        )
        for need in needs(found)
    ]
    return out or [Entry("note", (line(("No session waits for you.", "dim")),), selectable=False)]


def tree(found: Sequence[Summary]) -> list[dict[str, Any]]:
    """`inbox --json`."""
    return [
        {"id": n.summary.id, "name": n.summary.name, "task": n.summary.task, "needs": n.what, "since": n.since,
         "alive": n.summary.alive}
        for n in needs(found)
    ]  # fmt: skip

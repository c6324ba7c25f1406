"""The inbox: sessions that wait for the operator. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rlgpt.console.view.numbers import duration, many
from rlgpt.console.view.text import Entry, line, spread, wrap
from rlgpt.console.view.words import judged, needed_from_person

if TYPE_CHECKING:
    from rlgpt.store.catalog import Summary


class Need(NamedTuple):
    summary: Summary
    what: str
    """What is asked of the operator, a sentence."""
    since: float
    """UTC seconds."""


def needs(summaries: Sequence[Summary]) -> list[Need]:
    """The longest waiting first: plans to approve, verdicts to give, pauses to end, workers that died."""
    out = [
        Need(s, request, s.waiting_since if s.alive and s.waiting_for else s.at)
        for s in summaries
        if (request := _needed(s))
    ]
    return sorted(out, key=lambda need: need.since)


def _needed(s: Summary) -> str:
    if s.fault or s.status in ("ended", "created"):
        return ""
    if s.status == "waiting" and (kind := needed_from_person(s.waiting_for)):
        request = f"approve or reject plan {s.waiting_for.rpartition(' ')[2]}" if kind == "approval" else ""
        request = request or f"give your verdict on {judged(s.waiting_for)}"
        return request if s.alive else f"{request}; its worker is dead, start one first"
    if not s.alive:
        return "its worker is dead: start one again"
    return "paused: let it go on" if s.status == "paused" else ""


def sentence(number: int) -> str:
    """For a title line; empty when nobody waits."""
    if not number:
        return ""
    return f"{many(number, 'session')} {'waits' if number == 1 else 'wait'} for you"


def entries(summaries: Sequence[Summary], now: float, width: int) -> list[Entry]:
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
        for need in needs(summaries)
    ]
    return out or [Entry("note", (line(("No session waits for you.", "dim")),), selectable=False)]


def tree(summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """`inbox --json`."""
    return [
        {"id": n.summary.id, "name": n.summary.name, "task": n.summary.task, "needs": n.what, "since": n.since,
         "alive": n.summary.alive}
        for n in needs(summaries)
    ]  # fmt: skip

"""A call to a model that is under way: what it thinks and says so far, and how fast."""

from __future__ import annotations

from rlgpt.console.view.moment import Moment
from rlgpt.console.view.numbers import count, duration
from rlgpt.console.view.text import Entry, Line, Span, line, spread, wrap
from rlgpt.console.view.words import ROLES, asked_for
from rlgpt.store.live_calls import LiveCall

CHARACTERS_PER_TOKEN = 4.0
"""Of English and code, about: a stream does not say how many tokens a piece has."""
LINES = 12
"""Of what was thought, and of what is being said, from the end."""


def speed(call: LiveCall, now: float) -> str:
    """Tokens per second of the reply in words; empty before its first token."""
    seconds = now - call.first
    if not call.first or seconds <= 0:
        return ""
    return f"≈{call.characters / CHARACTERS_PER_TOKEN / seconds:.0f} tokens/s"


def lines(call: LiveCall, width: int) -> list[Line]:
    """The part of the reply that has arrived, with thoughts dimmed."""
    if not call.first:
        return [line(("  nothing has come yet", "dim"))]
    thought = wrap(call.thought, width, "dim", "  ")[-LINES:]
    return [*thought, *wrap(call.content, width, "", "  ")[-LINES:]]


def tail(call: LiveCall, now: float) -> Line:
    """The right end of a call's first line."""
    parts = [speed(call, now), f"{count(call.characters)} characters" if call.characters else ""]
    if call.try_number > 1:
        parts.append(f"try {call.try_number}")
    return line((" ".join(part for part in (*parts, duration(max(0.0, now - call.since))) if part), "dim"))


def entry(call: LiveCall, m: Moment, width: int) -> Entry:
    """The entry of a call that has no row yet."""
    what, item = asked_for(call.step)
    role = ROLES.get(call.role, call.role)
    early = ("  before its turn", "dim") if call.ahead else ""
    left = line(("… ", "accent"), (f"{role:<12} ", "bold"), what, (item, "bold"), early)
    return Entry(
        f"live:{call.call}",
        (spread(left, tail(call, m.now), width), *lines(call, width)),
        search=f"{role} {call.model} {call.step}",
        yank=call.content,
    )


def under_way(m: Moment) -> list[Span]:
    """For the title: how fast the model speaks."""
    saying = [shown for call in m.worker.calls if (shown := speed(call, m.now))]
    return [Span(f" {saying[0]}", "dim")] if saying else []

"""What a person who opens the console for the first time is told, on one small screen. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from rlgpt.console.keymap import short
from rlgpt.console.view.text import Line, Span, line, wrap

INTRODUCTION = (
    "rlgpt lets language-model agents decide which parts of a task are written as code and which are learnt with PPO. "
    "The lines at the top say what the session does now, what its goal is, and what it has spent."
)
PANES = (
    ("plan", "the parts of the task, each marked code or rl, and how far each is"),
    ("code", "what the fast agent wrote for a part, against the version before"),
    ("curves", "how PPO learns, over env steps"),
    ("verdicts", "what the critic concluded, beside what was measured"),
    ("world", "episodes to watch, frame by frame"),
)
KEYS = (
    ("app.help", "every key that works here, and what every word means"),
    ("app.palette", "every action by name"),
    ("session.zoom", "the focused pane alone, or all again"),
    ("session.override", "change the plan"),
    ("time.back", "back in time; {live} is now again"),
    ("session.detach", "leave; the session goes on"),
)


def lines(width: int, keys: Mapping[str, str]) -> list[Line]:
    """`keys`: the user's own."""
    out = [*wrap(INTRODUCTION, width), ()]
    for number, (name, text) in enumerate(PANES, 1):
        out.append(line((f" {number} ", "key"), (f"{name.capitalize():<10}", "bold"), text))
    out.append(())
    for ident, text in KEYS:
        pressed = short(ident, keys)
        shown = text.format(live=short("time.live", keys))
        out.append((Span(f" {pressed} ", "key"), Span(" " * max(3 - len(pressed), 0)), Span(shown)))
    return out

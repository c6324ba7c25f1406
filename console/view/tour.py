"""The text of the tour for a person who opens the console for the first time, on one small screen. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from rlgpt.console.keymap import short
from rlgpt.console.view.text import Line, fit, line, wrap

INTRODUCTION = (
    "rlgpt lets language-model agents decide which parts of a task are written as code and which are learnt with PPO. "
    "The lines at the top say what the session does now, what its goal is, and what it has spent."
)
PANES = (
    ("session.pane1", "Plan", "the parts of the task, each marked code, rl or option"),
    ("session.pane2", "Code", "the code of a part, against the version before"),
    ("session.pane3", "Curves", "how PPO learns, over env steps"),
    ("session.pane4", "Verdicts", "what the critic concluded, and what was measured"),
    ("session.pane5", "World", "episodes to watch, frame by frame"),
    ("session.pane9", "Funnel", "where most episodes are lost, and how they end there"),
    ("session.why", "Why", "whether PPO helps, and if not why"),
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
    out = wrap(INTRODUCTION, width)
    for ident, name, text in PANES:
        out.append(fit(line((f" {short(ident, keys):<3} ", "key"), (f"{name:<10}", "bold"), text), width))
    for ident, text in KEYS:
        sentence = text.format(live=short("time.live", keys))
        out.append(fit(line((f" {short(ident, keys):<3} ", "key"), sentence), width))
    return out

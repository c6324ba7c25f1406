"""The world pane: which stored frame is shown, and how it is drawn by its format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rlgpt.console.view.episodes import Place, episode_at
from rlgpt.console.view.frames import drawn, state
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry, Line, Span, fit, folded, line, wrap
from rlgpt.console.view.words import decision_words, nothing
from rlgpt.store.films import FilmPlace, Frame

SOURCES = {"trial": "trial", "train": "training", "dev": "dev evaluation", "test": "test evaluation"}
END = -1
"""The index of a film's last frame."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""An escape sequence that changes the colour or style of what follows."""


class Cursor(NamedTuple):
    """Which frame is shown."""

    film: int
    """seq of its film's place."""
    at: int


def current(m: Moment, chosen: Cursor | None) -> tuple[FilmPlace, Sequence[Frame], int] | None:
    """The chosen film if it exists at the cursor of the session, else the newest; its frames, and which of them is
    shown (END where there is none)."""
    if not m.films:
        return None
    place = next((f for f in reversed(m.films) if chosen and f.seq == chosen.film), m.films[-1])
    frames = m.film(place.seq)
    last = len(frames) - 1
    held = chosen is not None and chosen.film == place.seq and chosen.at != END
    return place, frames, min(chosen.at, last) if chosen and held else last


def moved(m: Moment, chosen: Cursor | None, by: int, inside: bool = False) -> Cursor | None:
    """The frame `by` on in its film; at its end in the next film, unless `inside`."""
    shown = current(m, chosen)
    if shown is None:
        return None
    place, frames, index = shown
    if 0 <= index + by < len(frames):
        return Cursor(place.seq, index + by)
    return Cursor(place.seq, index) if inside else other_film(m, chosen, 1 if by > 0 else -1)


def other_film(m: Moment, chosen: Cursor | None, by: int) -> Cursor | None:
    """The beginning of the film `by` on; where there is none, the frame that is shown."""
    shown = current(m, chosen)
    if shown is None:
        return None
    at = min(max(m.films.index(shown[0]) + by, 0), len(m.films) - 1)
    return chosen if m.films[at] == shown[0] else Cursor(m.films[at].seq, 0)


def first_of_film(m: Moment, chosen: Cursor | None) -> Cursor | None:
    shown = current(m, chosen)
    return Cursor(shown[0].seq, 0) if shown else None


def entries(m: Moment, chosen: Cursor | None, width: int, height: int) -> list[Entry]:
    shown = current(m, chosen)
    if shown is None:
        promise = "those of some trials, training episodes and evaluations are kept once they have ended."
        text = nothing("No frames", m.history.status == "ended", promise)
        return [Entry("note", tuple(wrap(text, width, "dim")), selectable=False)]
    place, frames, index = shown
    head = _head(m, place, frames, index, width)
    if not frames:
        text = "The frames of this episode are not kept, or are damaged."
        return [Entry("world", (*head, *wrap(text, width, "dim")), selectable=False)]
    head += _step(m, frames, index, width)
    body = _body(m.history.frame_module, frames[index], width, height - len(head))
    return [Entry("world", (*head, *body), selectable=False)]


def _head(m: Moment, film: FilmPlace, frames: Sequence[Frame], index: int, width: int) -> list[Line]:
    """The head line: the episode, how it ended, and the place of the frame in it."""
    _, source, owner, episode = film
    episode_shown = episode_at(m, Place(source, owner, episode))
    who = {"train": f"run {owner}", "trial": f"no. {owner}"}.get(source, f"no. {owner}")
    if episode_shown and source == "trial":
        who = f"of {episode_shown.lost} v{episode_shown.version}"
    text = f"{SOURCES.get(source, source)} {who}, {'seed' if source == 'trial' else 'episode'} {episode}"
    head = line((text, "bold"))
    if frames:
        at = f"  frame {index + 1} of {len(frames)}  "
        head = line((f"step {frames[index].step}", "bold"), (at, "dim"), *head)
    lines = [fit(head, width)]
    if episode_shown:
        where = f" at {episode_shown.lost}" if episode_shown.lost and source != "trial" else ""
        ended = line(
            ("✓ " if episode_shown.success else "✗ ", "ok" if episode_shown.success else "bad"),
            (f"{episode_shown.ended}{where}", "" if episode_shown.success else "warn"),
            (f"  {episode_shown.env_steps} env steps", "dim"),
        )
        lines.append(fit(ended, width))
    return lines


def _step(m: Moment, frames: Sequence[Frame], index: int, width: int) -> list[Line]:
    """What was done in the env steps since the frame before, by whom, and what it changed."""
    frame, before = frames[index], frames[index - 1] if index else None
    if frame.primitive is None:
        return []
    option, inner = decision_words(frame.decision), frame.inner or ""
    by = option if option != frame.primitive else ""
    done = line(
        (frame.primitive or "the beginning", "accent bold"), (f"  by {by}" if by and before else "", ""),
        (f" › {inner}" if inner and inner != by else "", ""),
    )  # fmt: skip
    if before is None:
        return [fit(done, width)]
    steps = frame.step - before.step
    if steps > 1:
        done += line((f"  (the last of {steps} env steps)", "dim"))
    earned = (frame.total or 0.0) - (before.total or 0.0)
    changes = [Span(f"reward {earned:+.3g}", "bold" if earned else "dim")]
    for name, change in changed(m.history.frame_module, before.body, frame.body):
        changes += line("  ", (f"{name.replace('_', ' ')} {change:+g}", "ok" if change > 0 else "bad"))
    return [fit(done, width), fit(changes, width)]


def changed(module: str, before: bytes, after: bytes) -> list[tuple[str, float]]:
    """The values of the agent that differ between two frames, where the world reports them."""
    then, now = state(module, before), state(module, after)
    return [(name, value - then.get(name, 0)) for name, value in now.items() if value != then.get(name, 0)]


def _body(module: str, frame: Frame, width: int, height: int) -> list[Line]:
    decision, body, kind = decision_words(frame.decision), frame.body, frame.format
    if module:
        drawing = drawn(module, body, width, height, decision)
        if drawing is not None:
            return drawing
    elif kind == "jpeg":
        from rlgpt.console.view.picture import draw

        picture = draw(body, width, max(height - 1, 2))
        if picture:
            return [*picture, line(("decision ", "dim"), (decision, "accent bold"))]
    elif kind == "text":
        return _rows(body.decode("utf-8", "replace"), width)
    return wrap(f"frames of the format {kind} cannot be drawn here ({len(body)} bytes)", width, "dim")


def _rows(text: str, width: int) -> list[Line]:
    """A text as its world drew it: the blanks of a map are places, so only a row that is wider than the pane goes on in
    the next. The colours of a terminal (`\\x1b[41m`, as many renderers write them) are left out: each would take the
    place of some cells."""
    rows = _COLOUR.sub("", text).rstrip().splitlines()
    return [part for row in rows for part in folded([Span(row)], width, "")]

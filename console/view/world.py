"""The world pane: which stored frame is shown, and how it is drawn by its format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlgpt.console.view.episodes import Place, episode_at
from rlgpt.console.view.frames import drawn, state
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry, Line, Span, fit, line, wrap
from rlgpt.store.row_types import FrameRow

Frame = tuple[int, str, int, int, int]
"""(seq, source, owner, episode, step)."""
SOURCES = {"trial": "trial", "train": "training", "dev": "dev evaluation", "test": "test evaluation"}


def current(m: Moment, chosen: int | None) -> Frame | None:
    """The chosen frame if it exists at the cursor, else the newest."""
    if not m.frames:
        return None
    return next((f for f in reversed(m.frames) if f[0] == chosen), m.frames[-1]) if chosen is not None else m.frames[-1]


def episode_of(frames: Sequence[Frame], frame: Frame) -> list[Frame]:
    """Frames of the same episode, by step."""
    return sorted((f for f in frames if f[1:4] == frame[1:4]), key=lambda f: (f[4], f[0]))


def moved(m: Moment, chosen: int | None, by: int, inside: bool = False) -> int | None:
    """seq of the frame `by` steps on in its episode; at its end in the next episode, unless `inside`."""
    frame = current(m, chosen)
    if frame is None:
        return None
    mine = episode_of(m.frames, frame)
    place = mine.index(frame) + by
    if 0 <= place < len(mine):
        return mine[place][0]
    return frame[0] if inside else other_episode(m, frame[0], 1 if by > 0 else -1)


def other_episode(m: Moment, chosen: int | None, by: int) -> int | None:
    frame = current(m, chosen)
    if frame is None:
        return None
    episodes = list(dict.fromkeys(f[1:4] for f in m.frames))
    place = min(max(episodes.index(frame[1:4]) + by, 0), len(episodes) - 1)
    return episode_of(m.frames, next(f for f in m.frames if f[1:4] == episodes[place]))[0][0]


def first_of_episode(m: Moment, chosen: int | None) -> int | None:
    frame = current(m, chosen)
    return episode_of(m.frames, frame)[0][0] if frame else None


def last_of(m: Moment, place: Place) -> int | None:
    """seq of the last frame of an episode; None where none is kept."""
    return next((f[0] for f in reversed(m.frames) if f[1:4] == place), None)


def entries(m: Moment, chosen: int | None, width: int, height: int) -> list[Entry]:
    frame = current(m, chosen)
    if frame is None:
        text = "No frames yet: those of some trials, training episodes and evaluations are kept once they have ended."
        return [Entry("note", tuple(wrap(text, width, "dim")), selectable=False)]
    row = m.frame(frame[0])
    head = _head(m, frame, width)
    if row is None:
        return [Entry("world", (*head, line(("this frame is not kept", "dim"))), selectable=False)]
    head += _step(m, frame, row, width)
    return [Entry("world", (*head, *_body(m.history.frame_module, row, width, height - len(head))), selectable=False)]


def _head(m: Moment, frame: Frame, width: int) -> list[Line]:
    """Which episode it is and how it ended, and where in it the frame stands."""
    _, source, owner, episode, step = frame
    mine = episode_of(m.frames, frame)
    told = episode_at(m, Place(source, owner, episode))
    who = {"train": f"run {owner}", "trial": f"no. {owner}"}.get(source, f"no. {owner}")
    if told and source == "trial":
        who = f"of {told.lost} v{told.version}"
    text = f"{SOURCES.get(source, source)} {who}, {'seed' if source == 'trial' else 'episode'} {episode}"
    head = line((f"step {step}", "bold"), (f"  frame {mine.index(frame) + 1} of {len(mine)}  ", "dim"), (text, "bold"))
    lines = [fit(head, width)]
    if told:
        where = f" at {told.lost}" if told.lost and source != "trial" else ""
        ended = line(
            ("✓ " if told.success else "✗ ", "ok" if told.success else "bad"),
            (f"{told.ended}{where}", "" if told.success else "warn"),
            (f"  {told.env_steps} env steps", "dim"),
        )
        lines.append(fit(ended, width))
    return lines


def _step(m: Moment, frame: Frame, row: Mapping[str, Any], width: int) -> list[Line]:
    """What was done in the env steps since the frame before, by whom, and what it changed."""
    if row.get("primitive") is None:
        return []
    mine = episode_of(m.frames, frame)
    at = mine.index(frame)
    before: Mapping[str, Any] | None = m.frame(mine[at - 1][0]) if at else None
    option, primitive, inner = _decided(str(row["decision"])), str(row["primitive"]), str(row["inner"] or "")
    by = option if option != primitive else ""
    done = line(
        (primitive or "the beginning", "accent bold"), (f"  by {by}" if by and at else "", ""),
        (f" › {inner}" if inner and inner != by else "", ""),
    )  # fmt: skip
    steps = frame[4] - mine[at - 1][4] if at else 0
    if steps > 1:
        done += line((f"  (the last of {steps} env steps)", "dim"))
    lines = [fit(done, width)]
    changes: list[Span] = []
    if before is not None:
        earned = float(row["return"] or 0.0) - float(before["return"] or 0.0)
        changes.append(Span(f"reward {earned:+.3g}", "bold" if earned else "dim"))
        for name, by_ in changed(m.history.frame_module, before, row):
            changes += line("  ", (f"{name.replace('_', ' ')} {by_:+g}", "ok" if by_ > 0 else "bad"))
    return [*lines, fit(changes, width)] if changes else lines


def changed(module: str, before: Mapping[str, Any], row: Mapping[str, Any]) -> list[tuple[str, float]]:
    """What the agent has more or less of than in the frame before, where the world tells."""
    then, now = state(module, bytes(before["body"])), state(module, bytes(row["body"]))
    return [(name, value - then.get(name, 0)) for name, value in now.items() if value != then.get(name, 0)]


def _decided(decision: str) -> str:
    """A script that is measured beside the plan has no names for its steps, only places."""
    place = decision.removeprefix("item_")
    return f"step {int(place) + 1} of the script" if place != decision and place.isdecimal() else decision


def _body(module: str, row: FrameRow, width: int, height: int) -> list[Line]:
    decision, body, kind = _decided(row["decision"]), row["body"], row["format"]
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
        return wrap(body.decode("utf-8", "replace"), width)
    return wrap(f"frames of the format {kind} cannot be drawn here ({len(body)} bytes)", width, "dim")

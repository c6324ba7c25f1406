"""The world pane: which stored frame is shown, and how it is drawn by its format."""

from __future__ import annotations

from collections.abc import Sequence

from rlgpt.console.view.frames import drawn
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry, Line, fit, line, wrap

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


def entries(m: Moment, chosen: int | None, width: int, height: int) -> list[Entry]:
    frame = current(m, chosen)
    if frame is None:
        return [
            Entry(
                "note",
                tuple(wrap("No frames yet: trials, training and evaluations store some.", width, "dim")),
                selectable=False,
            )
        ]
    row = m.frame(frame[0])
    head = _head(m, frame, width)
    if row is None:
        return [Entry("world", (*head, line(("this frame is not kept", "dim"))), selectable=False)]
    return [Entry("world", (*head, *_body(m.history.frame_module, row, width, height - len(head))), selectable=False)]


def _head(m: Moment, frame: Frame, width: int) -> list[Line]:
    _, source, owner, episode, step = frame
    mine = episode_of(m.frames, frame)
    who = f"v{owner}" if source == "trial" else f"no. {owner}" if source in ("dev", "test") else f"run {owner}"
    text = f"{SOURCES.get(source, source)} {who}, episode {episode}, step {step}"
    return [fit(line((text, "bold"), (f"  frame {mine.index(frame) + 1} of {len(mine)}", "dim")), width)]


def _decided(decision: str) -> str:
    """A script that is measured beside the plan has no names for its steps, only places."""
    place = decision.removeprefix("item_")
    return f"step {int(place) + 1} of the script" if place != decision and place.isdecimal() else decision


def _body(module: str, row: object, width: int, height: int) -> list[Line]:
    fields = dict(row) if isinstance(row, dict) else {}
    decision, body = _decided(str(fields.get("decision", ""))), bytes(fields.get("body", b""))
    kind = str(fields.get("format", ""))
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

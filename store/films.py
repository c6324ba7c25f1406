"""The film of an episode: one row of the table `frame` that holds all of its frames. Standard library only.

Frames of one episode differ little: packed together they take a fourth of what they take one by one, and a row of its
own for each would cost more than the frame itself. Sessions in which each has its own are read as well.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from rlgpt.store.plain import plain
from rlgpt.store.row_types import FrameRow

FORMAT = "film:"
"""What the `format` of a film's row begins with; the format of its frames follows."""
MOST_HEAD, MOST_BYTES = 100_000, 16_000_000
"""That are unpacked of a film: whoever shares a session cannot fill the memory of who looks at it."""


class FilmPlace(NamedTuple):
    """Where a film stands in the store, and of which episode it is."""

    seq: int
    """Of its row; of its last one where each frame has its own."""
    source: str
    owner: int
    episode: int


class Frame(NamedTuple):
    step: int
    """Env steps of the episode so far."""
    format: str
    decision: str
    """Name of the option that ran, or of the primitive that was chosen."""
    body: bytes
    primitive: str | None = None
    """What was done in the last env step; "" at the beginning, None where it was not recorded."""
    inner: str | None = None
    """The sub-action whose code ran, where the option runs one of several."""
    total: float | None = None
    """Undiscounted reward of the episode so far."""


def packed(frames: Sequence[Frame]) -> bytes:
    """The body of a film's row, one zlib stream: a line of JSON with what is told of each frame, then their bodies."""
    head = [[f.step, f.decision, f.primitive, f.inner, f.total, len(f.body)] for f in frames]
    line = json.dumps(plain(head), separators=(",", ":")).encode()
    return zlib.compress(b"\n".join((line, b"".join(f.body for f in frames))), 9)


def unpacked(rows: Iterable[FrameRow]) -> list[Frame]:
    """The frames of one film by step; [] if it is damaged."""
    frames: list[Frame] = []
    for row in rows:
        form, body = row["format"], bytes(row["body"])
        if form.startswith(FORMAT):
            frames += _unpacked(form.removeprefix(FORMAT), body)
        else:
            # Sessions before 0004 have none of them.
            since_0004 = row.get("primitive"), row.get("inner"), row.get("return")
            frames.append(Frame(row["step"], form, row["decision"], body, *since_0004))
    return sorted(frames, key=lambda frame: frame.step)


def _unpacked(form: str, body: bytes) -> list[Frame]:
    try:
        line, _, bodies = zlib.decompressobj().decompress(body, MOST_BYTES).partition(b"\n")
        head = json.loads(line[:MOST_HEAD])
        ends = accumulate((int(size) for *_, size in head), initial=0)
        return [
            Frame(int(step), form, str(decision), bodies[begin:end], str(did), str(inner), _number(total))
            for (step, decision, did, inner, total, _), (begin, end) in zip(head, pairwise(ends), strict=True)
        ]
    except (zlib.error, ValueError, TypeError, OverflowError, RecursionError):
        return []


def _number(total: float | None) -> float | None:
    return None if total is None else float(total)


def add(films: list[FilmPlace], place: FilmPlace, form: str) -> None:
    """Adds the place of a row of the table; of frames that have a row each, the last stands for their film."""
    if not form.startswith(FORMAT) and films and films[-1][1:] == place[1:]:
        films.pop()
    films.append(place)

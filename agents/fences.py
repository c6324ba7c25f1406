"""Finds the blocks that stand between two fences of Markdown."""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

_FENCE = re.compile(r"[ \t]*+(?P<marks>`{3,}+|~{3,}+)(?P<info>[^`]*+)")
"""In time linear in the line: nothing is given back, or a model that repeats `~` would be read for hours, because the
marks of a fence may stand in its info too."""


class Block(NamedTuple):
    language: str
    """As its fence says, in small letters."""
    text: str
    end: int
    """Where in the whole text its closing fence ends."""


def blocks(text: str) -> list[Block]:
    """In order; what is never closed is none."""
    lines = text.splitlines(keepends=True)
    marks = [_FENCE.fullmatch(line.rstrip("\r\n")) for line in lines]
    closing: dict[str, int] = {}
    closed_at: dict[int, int] = {}
    for number in reversed(range(len(lines))):
        if (found := marks[number]) is None:
            continue
        if found["marks"] in closing:
            closed_at[number] = closing[found["marks"]]
        if not found["info"].strip():
            closing[found["marks"]] = number
    ends = list(itertools.accumulate(map(len, lines)))
    found_blocks, after = [], 0
    for number in sorted(closed_at):
        if number >= after:
            opening, close = marks[number], closed_at[number]
            language = opening["info"].strip().lower() if opening else ""
            found_blocks.append(Block(language, "".join(lines[number + 1 : close]), ends[close]))
            after = close + 1
    return found_blocks

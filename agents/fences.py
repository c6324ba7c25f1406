"""Finds the blocks that stand between two fences of Markdown."""

from __future__ import annotations

import re
from typing import NamedTuple

_FENCE = re.compile(r"[ \t]*+(?P<marks>`{3,}+|~{3,}+)(?P<info>[^`]*+)")
"""In time linear in the line: nothing is given back, or a model that repeats `~` would be read for hours, because the
marks of a fence may stand in its info too."""


class Block(NamedTuple):
    language: str
    """As its fence says, in small letters."""
    text: str


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
    found_blocks, after = [], 0
    for number in sorted(closed_at):
        if number >= after:
            opening = marks[number]
            language = opening["info"].strip().lower() if opening else ""
            found_blocks.append(Block(language, "".join(lines[number + 1 : closed_at[number]])))
            after = closed_at[number] + 1
    return found_blocks

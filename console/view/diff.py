"""Two versions of a source as rows of a diff, marked word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from rlgpt.console.view.text import Line, Span, folded, pad

FOLD = "       ↪ "
"""Before what does not fit beside its line number."""
_WORD = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True)
class Row:
    """One row of the diff. `old` or `new` is None where that side has no such line."""

    kind: str
    """same | changed | removed | added"""
    old: int | None
    """Line number from 1."""
    new: int | None
    old_words: tuple[tuple[str, bool], ...] = ()
    """(text, whether it changed against the line it replaces); nothing is marked in a line that replaces none."""
    new_words: tuple[tuple[str, bool], ...] = ()


def rows(old: Sequence[str], new: Sequence[str]) -> list[Row]:
    """`old` and `new` are cleaned lines."""
    out: list[Row] = []
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            out += [
                Row("same", a + i + 1, c + i + 1, ((old[a + i], False),), ((new[c + i], False),)) for i in range(b - a)
            ]
        else:
            out += _replaced(old, new, a, b, c, d)
    return out


def _replaced(old: Sequence[str], new: Sequence[str], a: int, b: int, c: int, d: int) -> Iterator[Row]:
    pairs = min(b - a, d - c)
    for i in range(pairs):
        before, after = _words(old[a + i], new[c + i])
        yield Row("changed", a + i + 1, c + i + 1, before, after)
    for i in range(a + pairs, b):
        yield Row("removed", i + 1, None, ((old[i], False),), ())
    for i in range(c + pairs, d):
        yield Row("added", None, i + 1, (), ((new[i], False),))


def _words(old: str, new: str) -> tuple[tuple[tuple[str, bool], ...], tuple[tuple[str, bool], ...]]:
    before, after = _WORD.findall(old[:400]), _WORD.findall(new[:400])
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < 0.3:
        return ((old, False),), ((new, False),)
    left: list[tuple[str, bool]] = []
    right: list[tuple[str, bool]] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        changed = tag != "equal"
        if b > a:
            left.append(("".join(before[a:b]), changed))
        if d > c:
            right.append(("".join(after[c:d]), changed))
    left.append((old[400:], False))
    right.append((new[400:], False))
    return tuple(left), tuple(right)


def unified(diff: Sequence[Row], syntax: Sequence[Line], notes: dict[int, list[Line]] | None = None) -> list[Line]:
    """Lines of one column: removals above their replacement. `syntax` are the coloured lines of the new side,
    `notes` what belongs beside a new line (an error, a critique)."""
    out: list[Line] = []
    pending: list[Line] = []
    for row in diff:
        if row.kind in ("changed", "removed"):
            out.append(_side("-", row.old, row.old_words, "removed"))
        if row.kind in ("changed", "added"):
            pending.append(_added(row, syntax))
        if row.kind == "same":
            out += pending
            pending.clear()
            out.append(numbered(row.new, syntax[(row.new or 1) - 1]))
        if row.new is not None and notes and row.new in notes:
            out += pending
            pending.clear()
            out += notes[row.new]
    return out + pending


def split(
    diff: Sequence[Row], syntax: Sequence[Line], width: int, notes: dict[int, list[Line]] | None = None
) -> list[Line]:
    """Lines of two columns of equal width."""
    half = (width - 1) // 2
    out: list[Line] = []
    for row in diff:
        if row.kind == "same":
            shown = syntax[(row.new or 1) - 1]
            left, right = numbered(row.old, shown), numbered(row.new, shown)
        else:
            left = _side("-", row.old, row.old_words, "removed") if row.old else ()
            right = _added(row, syntax) if row.new else ()
        fill_left = "removed" if row.kind in ("changed", "removed") else ""
        fill_right = "added" if row.kind in ("changed", "added") else ""
        lefts, rights = folded(left, half, FOLD), folded(right, width - half - 1, FOLD)
        for one, other in zip_longest(lefts, rights, fillvalue=()):
            out.append((*pad(one, half, fill_left), Span("│", "axis"), *pad(other, width - half - 1, fill_right)))
        if row.new is not None and notes and row.new in notes:
            out += [piece for note in notes[row.new] for piece in folded(note, width, FOLD)]
    return out


def numbered(number: int | None, spans: Line) -> Line:
    return (Span(f"{number or '':>4}  ", "dim"), *spans)


def _added(row: Row, syntax: Sequence[Line]) -> Line:
    """A line of the new side: with its words marked if some changed, else coloured as source."""
    marked = _side("+", row.new, row.new_words, "added")
    if any(changed for _, changed in row.new_words):
        return marked
    return (*marked[:2], *(Span(text, f"{style} added") for text, style in syntax[(row.new or 1) - 1]))


def _side(sign: str, number: int | None, words: tuple[tuple[str, bool], ...], style: str) -> Line:
    return (
        Span(f"{number or '':>4} ", f"dim {style}"),
        Span(sign, f"{style} bold"),
        *(Span(text, f"{style}_word" if changed else style) for text, changed in words),
    )

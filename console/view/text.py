"""Lines of styled spans: what every view returns and one place turns into terminal cells.

A style is a space-separated list of tokens (`ok bold`); `console.palette` gives each its colour in a theme.
Text in a span may be untrusted: it is cleaned when it is painted. Widths here are terminal cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rlgpt.console.sanitise import COMBINING_LIMIT, clean
from rlgpt.console.view.cells import cell_width, cut_cells


class Span(NamedTuple):
    text: str
    style: str = ""


Line = tuple[Span, ...]


@dataclass(frozen=True)
class Entry:
    """One selectable thing of a list pane."""

    key: str
    """Stable while the thing exists: the cursor follows it."""
    lines: tuple[Line, ...]
    search: str = ""
    """What a filter looks into."""
    yank: str = ""
    """What `y` copies."""
    seq: int = 0
    """Where on the timeline it happened."""
    fields: dict[str, object] = field(default_factory=dict, compare=False)
    """What the pane's actions need to know."""
    selectable: bool = True


def has_words(text: str, wanted: str) -> bool:
    """Whether a filter leaves what says `text`: each of the `wanted` words is in it."""
    text = text.casefold()
    return all(word in text for word in wanted.casefold().split())


def line(*parts: str | Span | tuple[str, str]) -> Line:
    """Plain strings and (text, style) pairs as one line; empty parts vanish."""
    spans = (Span(part) if isinstance(part, str) else Span(*part) for part in parts)
    return tuple(span for span in spans if span.text)


def safe(spans: Iterable[Span]) -> Line:
    return tuple(Span(clean(span.text), span.style) for span in spans)


def width_of(spans: Sequence[Span]) -> int:
    return sum(cell_width(span.text) for span in spans)


def plain(spans: Iterable[Span]) -> str:
    return "".join(span.text for span in spans)


def fit(spans: Iterable[Span], width: int) -> Line:
    """Cut to `width` cells, with an ellipsis when something is lost."""
    most = (1 + COMBINING_LIMIT) * (width + 1)  # characters: marks take no cell
    spans = tuple(Span(text if len(text) <= most else text[:most], style) for text, style in safe(spans))
    if width_of(spans) <= width:
        return spans
    fitting: list[Span] = []
    left = width - 1
    for span in spans:
        size = cell_width(span.text)
        if size > left:
            fitting.append(Span(cut_cells(span.text, left), span.style))
            break
        fitting.append(span)
        left -= size
    fitting.append(Span("…", "dim") if width > 0 else Span(""))
    return tuple(fitting)


def pad(spans: Iterable[Span], width: int, style: str = "") -> Line:
    """Cut or fill to exactly `width` cells."""
    shown = fit(spans, width)
    left = width - width_of(shown)
    return (*shown, Span(" " * left, style)) if left > 0 else shown


def spread(left: Iterable[Span], right: Iterable[Span], width: int) -> Line:
    """`left` and `right` at the two ends; the left part gives way."""
    tail = fit(right, width)
    room = width - width_of(tail)
    if room < 4:
        return pad(left, width)
    head = pad(left, room - 1 if tail else room)
    return (*head, Span(" "), *tail) if tail else head


def wrap(text: str, width: int, style: str = "", indent: str = "", most: int = 0) -> list[Line]:
    """Words wrapped to `width` cells, each line after `indent`; at most `most` lines, the last with an ellipsis."""
    room = max(width - cell_width(indent), 8)
    lines: list[str] = []
    for paragraph in text.replace("\r\n", "\n").split("\n"):
        current = ""
        for word in clean(paragraph).split():
            while len(word) > room or cell_width(word) > room:
                head = cut_cells(word[:room], room)
                if current:
                    lines.append(current)
                    current = ""
                lines.append(head)
                word = word[len(head) :]
            if current and cell_width(current) + 1 + cell_width(word) > room:
                lines.append(current)
                current = word
            else:
                current = f"{current} {word}" if current else word
        lines.append(current)
    while lines and not lines[-1]:
        lines.pop()
    if most and len(lines) > most:
        last = lines[most - 1]
        lines = [*lines[: most - 1], cut_cells(last, room - 1) + "…"]
    return [(Span(indent), Span(shown, style)) if indent else (Span(shown, style),) for shown in lines]


def folded(spans: Iterable[Span], width: int, indent: str) -> list[Line]:
    """The whole line in pieces of at most `width` cells, the later ones after `indent`: nothing is cut off."""
    out: list[Line] = []
    current: list[Span] = []
    left = width
    for text, style in safe(spans):
        while text:
            piece = cut_cells(text[:left], left)
            if not piece:
                out.append(tuple(current))
                current, left = [Span(indent, "dim")], max(width - cell_width(indent), 4)
                continue
            current.append(Span(piece, style))
            left -= cell_width(piece)
            text = text[len(piece) :]
    return [*out, tuple(current)]


def columns(cells: Sequence[tuple[Iterable[Span], int]], gap: str = " ") -> Line:
    """Cells padded to their widths, side by side."""
    parts: list[Span] = []
    for index, (spans, width) in enumerate(cells):
        if index:
            parts.append(Span(gap))
        parts.extend(pad(spans, width))
    return tuple(parts)

"""Charts as a stand-alone SVG file, a task below the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from rlgpt.store.export.svg import HEIGHT, LEFT, WIDTH, Line, chart, printable

TITLE = 22
"""Above each chart, for its title."""
ROW = 15
"""Of the legend, which stands between title and chart."""
LETTER, GAP = 6.5, 28.0
"""Width of a letter at most, and of what is around a name in the legend."""
COLOURS = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#6e7781")
STYLE = (
    "svg text{font:11px sans-serif;fill:#57606a}svg .title{font-weight:bold}"
    ".grid{stroke:#d0d7de}.line,.swatch{fill:none;stroke-width:1.5}.band{fill-opacity:.15}circle{fill:#fff}"
    + "".join(f".c{n}{{stroke:{colour}}}.b{n}{{fill:{colour}}}" for n, colour in enumerate(COLOURS))
)


def svg(drawn: Mapping[str, Sequence[Line]], unit: str, what: str) -> str:
    parts, top = [], 0
    for task, lines in drawn.items():
        figure = chart(task, lines, unit, share=True)
        inside = figure[figure.find("<svg") : figure.find("</svg>")].split(">", 1)[1]
        shown = f"{what}, with 95% intervals" if any(line.band for line in lines) else what
        title = f'<text x="{LEFT}" y="14" class="title">{escape(printable(task))}: {shown}</text>'
        legend, rows = _legend(lines)
        head = TITLE + rows * ROW
        parts.append(
            f'<g transform="translate(0 {top})">{title}{legend}<g transform="translate(0 {head})">{inside}</g></g>'
        )
        top += head + HEIGHT
    head_tag = f'<svg viewBox="0 0 {WIDTH} {max(top, 1)}" xmlns="http://www.w3.org/2000/svg"><style>{STYLE}</style>'
    return f"{head_tag}{''.join(parts)}</svg>\n"


def _legend(lines: Sequence[Line]) -> tuple[str, int]:
    """The names in their colours, from left to right, and how many rows they take."""
    parts, row, x = [], 0, float(LEFT)
    for i, line in enumerate(lines):
        wide = GAP + LETTER * len(line.name)
        if x + wide > WIDTH and x > LEFT:
            row, x = row + 1, float(LEFT)
        y = TITLE + 6 + ROW * row
        parts.append(f'<path class="swatch c{i % 6}" d="M{x:.0f} {y - 4}h14"/>')
        parts.append(f'<text x="{x + 18:.0f}" y="{y}">{escape(printable(line.name))}</text>')
        x += wide
    return "".join(parts), row + 1 if lines else 0

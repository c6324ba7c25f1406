"""Charts as a stand-alone SVG file, a task below the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from rlgpt.store.export.svg import HEIGHT, LEFT, WIDTH, Line, chart

TITLE = 22
"""Above each chart, for its title."""
STYLE = (
    "svg text{font:11px sans-serif;fill:#57606a}svg .title{font-weight:bold}"
    ".grid{stroke:#d0d7de}.line{fill:none;stroke-width:1.5}circle{fill:#fff}"
    ".c0{stroke:#0969da}.c1{stroke:#bc4c00}.c2{stroke:#1a7f37}.c3{stroke:#8250df}.c4{stroke:#bf3989}.c5{stroke:#6e7781}"
)


def svg(drawn: Mapping[str, Sequence[Line]], unit: str, what: str) -> str:
    parts = []
    for number, (task, lines) in enumerate(drawn.items()):
        figure = chart(task, lines, unit, share=True)
        inside = figure[figure.find("<svg") : figure.find("</svg>")].split(">", 1)[1]
        title = f'<text x="{LEFT}" y="14" class="title">{escape(task)}: {what}</text>'
        place = f'transform="translate(0 {number * (HEIGHT + TITLE)})"'
        shifted = f'<g transform="translate(0 {TITLE})">{_legend(lines)}{inside}</g>'
        parts.append(f"<g {place}>{title}{shifted}</g>")
    high = max(len(drawn), 1) * (HEIGHT + TITLE)
    head = f'<svg viewBox="0 0 {WIDTH} {high}" xmlns="http://www.w3.org/2000/svg"><style>{STYLE}</style>'
    return f"{head}{''.join(parts)}</svg>\n"


def _legend(lines: Sequence[Line]) -> str:
    rows = (
        f'<text x="80" y="{26 + 14 * i}"><tspan class="c{i % 6}">&#9644;</tspan> {escape(line.name)}</text>'
        for i, line in enumerate(lines)
    )
    return "".join(rows)

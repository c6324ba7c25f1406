"""A line chart as SVG text: pure, no fonts or scripts of its own. Colours are the page's `--line-N` variables."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

Point = tuple[float, float]
WIDTH, HEIGHT = 640, 220
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 12, 34
ROOM = 18
"""Right of the middle of the last label."""
COLOURS = 6
DASHES = (("", "━"), ("6 3", "╍"), ("2 3", "┈"), ("9 3 2 3", "┉"))
"""(stroke-dasharray, what stands for it in the legend)."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Line(NamedTuple):
    name: str
    points: Sequence[Point]
    dots: Sequence[Point] = ()
    """Beside the line, in its colour."""
    band: Sequence[tuple[float, float, float]] = ()
    """(x, low, high) around the line, in its colour: filled."""


def chart(
    title: str, lines: Sequence[Line], unit: str, marks: Sequence[tuple[float, str]] = (), share: bool = False
) -> str:
    """One chart with axes, a legend and vertical marks (x, name); says so when there is nothing to draw. A share is
    drawn from 0 to 1."""
    title = printable(title)
    drawn = [line for line in lines if line.points]
    caption = f"<figcaption>{escape(title)}</figcaption>"
    if not drawn:
        return f"<figure>{caption}<p class=none>no values</p></figure>"
    xs = [x for line in drawn for x, *_ in (*line.points, *line.dots, *line.band)]
    ys = [y for line in drawn for _, *several in (*line.points, *line.dots, *line.band) for y in several]
    ys += [0.0, 1.0] if share else []
    x_ticks, y_ticks = ticks(min(xs), max(xs)), ticks(min(ys), max(ys))
    box = _Box(min(*xs, x_ticks[0]), max(*xs, x_ticks[-1]), min(*ys, y_ticks[0]), max(*ys, y_ticks[-1]))
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title, quote=True)}">']
    for y in y_ticks:
        parts.append(f'<path class="grid" d="M{LEFT} {box.y(y):.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{box.y(y) + 4:.1f}" text-anchor="end">{number(y)}</text>')
    for x in x_ticks:
        place = min(box.x(x), WIDTH - ROOM)
        parts.append(f'<text x="{place:.1f}" y="{HEIGHT - 18}" text-anchor="middle">{number(x)}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 4}" text-anchor="middle">{escape(unit)}</text>')
    for x, name in marks:
        if box.left <= x <= box.right:
            path = f"M{box.x(x):.1f} {TOP}V{HEIGHT - BOTTOM}"
            parts.append(f'<path class="mark" d="{path}"><title>{escape(printable(name))}</title></path>')
    for place, line in enumerate(drawn):
        if line.band:
            around = [(x, low) for x, low, _ in line.band] + [(x, high) for x, _, high in reversed(line.band)]
            corners = " ".join(f"{box.x(x):.1f},{box.y(y):.1f}" for x, y in around)
            parts.append(f'<polygon class="band b{place % COLOURS}" points="{corners}"/>')
    for place, line in enumerate(drawn):
        path = "M" + "L".join(f"{box.x(x):.1f} {box.y(y):.1f}" for x, y in line.points)
        parts.append(f'<path class="line c{place % COLOURS}"{_dashes(place)} d="{path}"/>')
        parts += [
            f'<circle class="c{place % COLOURS}" cx="{box.x(x):.1f}" cy="{box.y(y):.1f}" r="2.5"/>'
            for x, y in line.dots or (line.points if len(line.points) < 30 else ())
        ]
    legend = "".join(
        f"<li class=c{n % COLOURS}>{DASHES[n // COLOURS % len(DASHES)][1]} {escape(printable(line.name))}</li>"
        for n, line in enumerate(drawn)
    )
    return f"<figure>{caption}{''.join(parts)}</svg><ul class=legend>{legend}</ul></figure>"


def _dashes(place: int) -> str:
    """Lines of one colour differ by their dashes."""
    dashes = DASHES[place // COLOURS % len(DASHES)][0]
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def printable(text: str) -> str:
    """Without control and direction characters, but for line feeds and tabs."""
    return _CONTROL.sub("", text)


class _Box(NamedTuple):
    left: float
    right: float
    low: float
    high: float

    def x(self, value: float) -> float:
        return LEFT + (value - self.left) / ((self.right - self.left) or 1.0) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self.low) / ((self.high - self.low) or 1.0) * (HEIGHT - TOP - BOTTOM)


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers from at most `low` to at least `high`, 1, 2 or 5 times a power of ten apart."""
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-9):
        room = abs(low) / 2 or 1.0
        low, high = low - room, high + room
    rough = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{n * step:.12g}") for n in range(first, last + 1)]


def number(value: float) -> str:
    """Short, for an axis: 1.5M, 20k, 0.25."""
    for size, tail in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{tail}"
    return f"{value:g}"

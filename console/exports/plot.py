"""One line chart as inline SVG: no script, no font, no network. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from rlgpt.console.view.numbers import count, decimal

Points = Sequence[tuple[float, float]]
WIDTH, HEIGHT = 520, 230
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 34
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2")
TICKS = 4


def chart(title: str, series: Mapping[str, Points], *, low: float | None = None, high: float | None = None) -> str:
    """A figure with its legend; x is env steps. `low` and `high` fix the y range. Empty series are left out."""
    shown = {name: points for name, points in series.items() if points}
    if not shown:
        return f"<figure><figcaption>{escape(title)}: nothing measured</figcaption></figure>"
    xs = [x for points in shown.values() for x, _ in points]
    ys = [y for points in shown.values() for _, y in points]
    x_range = _range(min(xs), max(xs))
    y_range = _range(min(ys) if low is None else low, max(ys) if high is None else high)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">', _axes(x_range, y_range)]
    for index, points in enumerate(shown.values()):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join(f"{_x(x, x_range):.1f},{_y(y, y_range):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        if len(points) <= 30:
            parts += [_dot(_x(x, x_range), _y(y, y_range), colour) for x, y in points]
    keys = "".join(
        f'<span style="color:{COLOURS[i % len(COLOURS)]}">&#9644; {escape(name)}</span> '
        for i, name in enumerate(shown)
    )
    return f"<figure><figcaption>{escape(title)}</figcaption>{''.join(parts)}</svg><p>{keys}</p></figure>"


def _dot(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>'


def _axes(xs: tuple[float, float], ys: tuple[float, float]) -> str:
    parts = []
    for tick in range(TICKS + 1):
        y = ys[0] + (ys[1] - ys[0]) * tick / TICKS
        at = _y(y, ys)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{decimal(y)}</text>')
        x = xs[0] + (xs[1] - xs[0]) * tick / TICKS
        parts.append(f'<text x="{_x(x, xs):.1f}" y="{HEIGHT - 14}" text-anchor="middle">{count(x)}</text>')
    return "".join(parts)


def _range(low: float, high: float) -> tuple[float, float]:
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _x(x: float, span: tuple[float, float]) -> float:
    return LEFT + (x - span[0]) / (span[1] - span[0]) * (WIDTH - LEFT - RIGHT)


def _y(y: float, span: tuple[float, float]) -> float:
    return TOP + (span[1] - y) / (span[1] - span[0]) * (HEIGHT - TOP - BOTTOM)

"""A chart as lines of spans: title with legend, y gutter, braille curves, axis with marks, x labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rlgpt.console.charts.axes import padded, place, tick_labels, ticks
from rlgpt.console.charts.braille import Canvas, columns_of
from rlgpt.console.view.numbers import count, decimal
from rlgpt.console.view.text import Line, Span, columns, line, pad, spread, width_of

Floats = NDArray[np.float64]
GUTTER = 6
"""Cells left of the canvas: a label of five and the axis."""
TALL = 12
"""Lines from which a chart has room for a legend of several lines."""
GLYPHS = ("●", "▲", "■", "◆", "○", "△", "□", "◇")
"""Of curves without a colour; as many as there are curve styles."""
APART = 12
"""Cells between two glyphs on a line."""


@dataclass(frozen=True)
class Curve:
    name: str
    x: Floats
    """Ascending."""
    y: Floats
    style: str
    points: bool = False
    """Single measurements instead of a joined line."""
    low: Floats | None = None
    high: Floats | None = None
    """Interval around each point."""
    note: str = ""
    """Behind the last value in the legend (`n=50`)."""
    segments: tuple[int, ...] = ()
    """Indices at which the line breaks (a new training run starts there)."""


@dataclass(frozen=True)
class Marks:
    """All of one kind, on the x-axis."""

    x: Floats
    glyph: str
    style: str


@dataclass(frozen=True)
class Plot:
    title: str
    curves: Sequence[Curve] = field(default_factory=tuple)
    marks: Sequence[Marks] = field(default_factory=tuple)
    """Later ones cover earlier ones."""
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    log: bool = False
    crosshair: float | None = None
    """x at which values are read off; None reads the last."""
    empty: str = "no points yet"
    note: str = ""


def draw(plot: Plot, width: int, height: int, marked: bool = False) -> list[Line]:
    """`height` lines of exactly `width` cells. With fewer than 4 lines or 16 cells only the title fits.

    `marked`: curves are told apart by glyphs on them, for terminals without colours.
    """
    if height < 4 or width < 16:
        return [pad(_head(plot, width, 1, marked)[0], width), *((Span(" " * width),) for _ in range(height - 1))][
            :height
        ]
    if plot.log:
        plot = replace(plot, curves=[_logarithmic(c) for c in plot.curves], y_range=None)
    out = _head(plot, width, max(1, height // 3) if height >= TALL else 1, marked)
    baseline = height >= 7
    canvas_width, canvas_height = width - GUTTER, height - len(out) - (2 if baseline else 1)
    x0, x1 = plot.x_range or _extent([c.x for c in plot.curves]) or (0.0, 1.0)
    if x1 <= x0:
        x1 = x0 + 1.0
    visible = _extent([_within(c, x0, x1) for c in plot.curves])
    if visible is None:
        return out + _nothing(plot, width, height - len(out))
    y0, y1 = plot.y_range or padded(*visible)
    bounds = (x0, x1, y0, y1)
    canvas = Canvas(canvas_width, canvas_height)
    for layer, curve in enumerate(plot.curves):
        _rasterise(canvas, curve, layer, bounds)
    labels = _row_labels(y0, y1, canvas_height, plot.log)
    cross = None
    if plot.crosshair is not None and x0 <= plot.crosshair <= x1:
        cross = place([plot.crosshair], x0, x1, canvas_width)[0]
    glyphs = _glyphs(plot, bounds, canvas_width, canvas_height) if marked else {}
    for index, runs in enumerate(canvas.rows()):
        label = labels.get(index, "")
        edge = "┤" if label else "│"
        spans = [Span(f"{label:>{GUTTER - 1}}", "dim"), Span(edge, "axis")]
        spans += [Span(text, plot.curves[layer].style if layer >= 0 else "") for text, layer in runs]
        spans = _overlaid(spans, glyphs.get(index, {}))
        out.append(_crossed(spans, cross) if cross is not None else tuple(spans))
    if baseline:
        out.append(_axis(plot, x0, x1, canvas_width))
    out.append(_x_labels(x0, x1, width))
    return out


def value_at(curve: Curve, x: float | None) -> float | None:
    """The curve's newest finite value at or before `x` (its last when None)."""
    end = len(curve.x) if x is None else int(np.searchsorted(curve.x, x, side="right"))
    tail = curve.y[:end]
    good = np.flatnonzero(np.isfinite(tail[-4096:]))
    return float(tail[-4096:][good[-1]]) if len(good) else None


def values(plot: Plot, width: int, most: int, marked: bool = False) -> list[Line]:
    """A row for each curve: its value at the crosshair (its last without one), lowest and highest in sight."""
    x0, x1 = plot.x_range or _extent([c.x for c in plot.curves]) or (0.0, 1.0)
    at = "last" if plot.crosshair is None else f"at {count(plot.crosshair)}"
    wide = max(width - 3 * 10 - 3, 8)
    rows = [columns([(line((f"{len(plot.curves)} series", "dim")), wide + 2), *((line((f"{t:>9}", "dim")), 9)
                     for t in (at, "lowest", "highest"))])]  # fmt: skip
    for curve, glyph in zip(plot.curves, _legend_glyphs(plot, marked), strict=True):
        extent = _extent([_within(curve, x0, x1)])
        numbers = (value_at(curve, plot.crosshair), *(extent or (None, None)))
        name = line((f"{glyph} ", curve.style), curve.name or plot.title)
        styles = ("bold", "dim", "dim")
        cells = [(line((f"{decimal(n):>9}", style)), 9) for n, style in zip(numbers, styles, strict=True)]
        rows.append(columns([(name, wide + 2), *cells]))
    return rows[:most]


def _head(plot: Plot, width: int, most: int, marked: bool) -> list[Line]:
    """The title with the legend behind it; where that is too long, the rest of it in up to `most` - 1 more lines."""
    title = [Span(plot.title, "title")]
    if plot.log:
        title.append(Span(" log", "dim"))
    if plot.crosshair is not None:
        title.append(Span(f" @{count(plot.crosshair)}", "accent"))
    if plot.note:
        title.append(Span(f" {plot.note}", "dim"))
    rows: list[list[Span]] = [[]]
    for curve, glyph in zip(plot.curves, _legend_glyphs(plot, marked), strict=True):
        value = value_at(curve, plot.crosshair)
        if value is None:
            continue
        shown = decimal(10**value if plot.log and curve.style.endswith("log") else value)
        part = [
            Span(f" {glyph}", curve.style),
            Span(f"{curve.name} " if curve.name else "", "dim"),
            Span(shown, "bold"),
            Span(f" {curve.note}" if curve.note else "", "dim"),
        ]
        room = width - (width_of(title) + 1 if len(rows) == 1 else 0)
        if rows[-1] and width_of(rows[-1]) + width_of(part) > room:
            if len(rows) == most:  # cut, with an ellipsis; on one line only where the title keeps its room
                mark = [Span(" …", "dim")] if width_of(rows[-1]) + 2 <= room else []
                rows[-1] += part if most > 1 else mark
                break
            rows.append([])
        rows[-1] += part
    return [spread(title, rows[0], width), *(pad(row, width) for row in rows[1:])]


def _legend_glyphs(plot: Plot, marked: bool) -> list[str]:
    if marked:
        return [GLYPHS[index % len(GLYPHS)] for index in range(len(plot.curves))]
    return ["•" if curve.points else "─" for curve in plot.curves]


def _glyphs(
    plot: Plot, bounds: tuple[float, float, float, float], width: int, height: int
) -> dict[int, dict[int, Span]]:
    """Row -> column -> the glyph of the curve that passes there: on each point, or now and then along a line."""
    x0, x1, y0, y1 = bounds
    spans: dict[int, dict[int, Span]] = {}
    for index, (curve, glyph) in enumerate(zip(plot.curves, _legend_glyphs(plot, True), strict=True)):
        if curve.points:
            places = [float(x) for x in curve.x[-400:] if x0 <= x <= x1]
        else:
            first = (index * 3 + 1) % APART
            places = [x0 + (x1 - x0) * column / max(width - 1, 1) for column in range(first, width, APART)]
            places = [x for x in places if len(curve.x) and curve.x[0] <= x <= curve.x[-1]]
        for x in places:
            y = value_at(curve, x)
            if y is None or not y0 <= y <= y1:
                continue
            row = height - 1 - min(int((y - y0) / max(y1 - y0, 1e-12) * height), height - 1)
            spans.setdefault(row, {})[round((x - x0) / (x1 - x0) * (width - 1))] = Span(glyph, curve.style)
    return spans


def _nothing(plot: Plot, width: int, height: int) -> list[Line]:
    lines: list[Line] = [(Span(" " * width),) for _ in range(height)]
    lines[max(0, height // 2 - 1)] = (Span(plot.empty.center(width)[:width], "dim"),)
    return lines


def _rasterise(canvas: Canvas, curve: Curve, layer: int, bounds: tuple[float, float, float, float]) -> None:
    x0, x1, y0, y1 = bounds
    wide, tall = canvas.width, canvas.height
    if not curve.points:
        cuts = [0, *curve.segments, len(curve.x)]
        for start, stop in pairwise(cuts):
            if stop > start:
                canvas.curve(columns_of(curve.x[start:stop], curve.y[start:stop], bounds, wide, tall), layer)
        return
    inside = np.isfinite(curve.y) & (curve.x >= x0) & (curve.x <= x1)
    column = np.rint((curve.x - x0) / (x1 - x0) * (2 * wide - 2)).astype(np.int64)
    scale = (4 * tall - 1) / max(y1 - y0, 1e-12)
    if curve.low is not None and curve.high is not None:
        for index in np.flatnonzero(inside)[-400:]:
            low, high = np.clip((np.array([curve.low[index], curve.high[index]]) - y0) * scale, 0, 4 * tall - 1)
            canvas.whisker(int(column[index]), float(low), float(high), layer)
    canvas.points(column[inside], np.clip((curve.y[inside] - y0) * scale, 0, 4 * tall - 1), layer)


def _row_labels(y0: float, y1: float, height: int, log: bool) -> dict[int, str]:
    values = ticks(y0, y1, max(2, height // 3))
    rows = place(values, y0, y1, height)
    labels = tick_labels([10**value for value in values] if log else values, GUTTER - 1)
    return {height - 1 - row: label for row, label in zip(rows, labels, strict=True)}


def _axis(plot: Plot, x0: float, x1: float, width: int) -> Line:
    cells: list[Span] = [Span("─", "axis")] * width
    for marks in plot.marks:
        inside = marks.x[(marks.x >= x0) & (marks.x <= x1)]
        hit = np.zeros(width, dtype=bool)
        hit[np.rint((inside - x0) / (x1 - x0) * (width - 1)).astype(np.int64)] = True
        for column in np.flatnonzero(hit).tolist():
            cells[column] = Span(marks.glyph, marks.style)
    merged: list[Span] = [Span(" " * (GUTTER - 1)), Span("└", "axis")]
    for cell in cells:
        if merged[-1].style == cell.style:
            merged[-1] = Span(merged[-1].text + cell.text, cell.style)
        else:
            merged.append(cell)
    return tuple(merged)


def _x_labels(x0: float, x1: float, width: int) -> Line:
    cells = [" "] * width
    room = width - GUTTER
    values = ticks(x0, x1, max(2, room // 14))
    for value, column in zip(values, place(values, x0, x1, room), strict=True):
        label = count(value)
        start = min(max(GUTTER + column - len(label) // 2, 0), width - len(label))
        if all(c == " " for c in cells[max(start - 1, 0) : start + len(label) + 1]):
            cells[start : start + len(label)] = label
    unit = "env steps"
    if all(c == " " for c in cells[-len(unit) - 1 :]):
        cells[-len(unit) :] = unit
    return line(("".join(cells), "dim"))


def _overlaid(spans: Sequence[Span], glyphs: dict[int, Span]) -> list[Span]:
    """A row with some of its cells replaced."""
    out: list[Span] = []
    position = -GUTTER
    for span in spans:
        rest, start = span.text, position
        for column in sorted(c for c in glyphs if position <= c < position + len(span.text)):
            out += [Span(rest[: column - start], span.style), glyphs[column]]
            rest, start = rest[column - start + 1 :], column + 1
        out.append(Span(rest, span.style))
        position += len(span.text)
    return [span for span in out if span.text]


def _crossed(spans: Sequence[Span], column: int) -> Line:
    """The crosshair's cell of a row, drawn where no dot is."""
    out: list[Span] = []
    position = -GUTTER
    for span in spans:
        size = len(span.text)
        if position <= column < position + size and span.text[column - position] == " ":
            at = column - position
            out += [Span(span.text[:at], span.style), Span("┊", "accent"), Span(span.text[at + 1 :], span.style)]
        else:
            out.append(span)
        position += size
    return tuple(s for s in out if s.text)


def _within(curve: Curve, x0: float, x1: float) -> Floats:
    first, last = np.searchsorted(curve.x, [x0, x1])
    return curve.y[max(int(first) - 1, 0) : int(last) + 1]


def _logarithmic(curve: Curve) -> Curve:
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.where(curve.y > 0, np.log10(curve.y), np.nan)
    return replace(curve, y=y, low=None, high=None, style=curve.style + " log")


def _extent(arrays: Sequence[Floats]) -> tuple[float, float] | None:
    lows, highs = [], []
    for values in arrays:
        good = values[np.isfinite(values)]
        if len(good):
            lows.append(float(good.min()))
            highs.append(float(good.max()))
    if not lows or not math.isfinite(min(lows)):
        return None
    return (min(lows), max(highs))

"""Curves of a run, thinned to what a chart can show, in bounded time for any length of run.

The first question about a column reads it once into a flat array; later ones read only new rows. A chart
then gets the lowest and highest value of every stretch, so no peak is lost. Standard library only.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rlgpt.store.errors import StoreError
from rlgpt.store.query import quoted

Point = tuple[float, float]
NAN = float("nan")


@dataclass
class _Run:
    seq: array[int] = field(default_factory=lambda: array("q"))
    steps: array[float] = field(default_factory=lambda: array("d"))
    values: dict[str, array[float]] = field(default_factory=dict)
    """By column; NaN where the row has none. Each is as long as `seq`, or shorter until it is asked for."""


class Columns:
    """Caches metric columns of one open session."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base = base
        self._runs: dict[int, _Run] = {}
        self._names = [row[1] for row in base.execute("PRAGMA table_info(metric)")]

    def points(
        self,
        runs: Sequence[int],
        column: str,
        upto_seq: int | None,
        most: int,
        window: tuple[float, float] | None,
        hidden: Mapping[int, Sequence[tuple[int, int]]],
    ) -> list[Point]:
        offset = 0.0
        found: list[Point] = []
        for run in runs:
            kept = self._column(run, column)
            end = len(kept.seq) if upto_seq is None else bisect_right(kept.seq, upto_seq)
            ranges = _visible(kept, end, hidden.get(run, ()))
            xs = [x + offset for start, stop in ranges for x in kept.steps[start:stop]]
            ys = [y for start, stop in ranges for y in kept.values[column][start:stop]]
            if xs:
                offset = xs[-1]
            if window:
                first, last = bisect_left(xs, window[0]), bisect_right(xs, window[1])
                xs, ys = xs[first:last], ys[first:last]
            found += [(x, y) for x, y in zip(xs, ys, strict=True) if y == y]
        return thin(found, most)

    def _column(self, run: int, column: str) -> _Run:
        """The run's arrays with `column` up to the last row committed."""
        value = self._expression(column)
        kept = self._runs.setdefault(run, _Run())
        values = kept.values.setdefault(column, array("d"))
        known = kept.seq[-1] if kept.seq else 0
        if len(values) < len(kept.seq):
            after = kept.seq[len(values) - 1] if values else 0
            sql = f"SELECT {value} FROM metric WHERE run = ? AND seq > ? AND seq <= ? ORDER BY seq"
            values.extend(NAN if v is None else v for (v,) in self._base.execute(sql, (run, after, known)))
        sql = f"SELECT seq, env_steps, {value} FROM metric WHERE run = ? AND seq > ? ORDER BY seq"
        for seq, steps, found in self._base.execute(sql, (run, known)):
            kept.seq.append(seq)
            kept.steps.append(steps)
            values.append(NAN if found is None else found)
        return kept

    def _expression(self, column: str) -> str:
        name, dot, key = column.partition(".")
        if name not in self._names:
            raise StoreError(f"there is no metric {column!r}")
        if not dot:
            return f"CAST({quoted(name)} AS REAL)"
        literal = '$."' + key.replace('"', "").replace("'", "''") + '"'
        return f"CAST(json_extract({quoted(name)}, '{literal}') AS REAL)"


def _visible(kept: _Run, end: int, hidden: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Index ranges [start, stop) of the rows that no resume superseded: those not in any (after, before)."""
    edges = sorted((bisect_right(kept.seq, a), bisect_left(kept.seq, b)) for a, b in hidden)
    ranges, start = [], 0
    for first, last in edges:
        if first > start:
            ranges.append((start, min(first, end)))
        start = max(start, last)
    ranges.append((start, end))
    return [(a, b) for a, b in ranges if a < b]


def thin(points: Sequence[Point], most: int) -> list[Point]:
    """At most `most` (>= 4) of the points, in order: first, last, and the lowest and highest of
    every stretch between them."""
    if len(points) <= most:
        return list(points)
    stretches = max(1, (most - 2) // 2)
    inner = len(points) - 2
    kept = [points[0]]
    for number in range(stretches):
        part = points[1 + number * inner // stretches : 1 + (number + 1) * inner // stretches]
        if part:
            low, high = min(part, key=_value), max(part, key=_value)
            kept += [low] if low == high else sorted((low, high))
    return [*kept, points[-1]]


def _value(point: Point) -> float:
    return point[1]

"""Curves of a run, thinned to what a chart can show, in bounded time for any length of run.

The first question about a column reads it once into flat arrays; later ones read only the rows that are new.
A chart then gets the lowest and highest value of every stretch, so no peak is lost. Standard library only.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rlgpt.store.errors import StoreError
from rlgpt.store.query import quoted

Point = tuple[float, float]
"""(env steps, value)."""


@dataclass
class _Track:
    """One column of one run, rows without a value left out."""

    seq: array[int] = field(default_factory=lambda: array("q"))
    steps: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def append(self, seq: int, steps: float, value: float) -> None:
        self.seq.append(seq)
        self.steps.append(steps)
        self.values.append(value)

    def part(self, upto: int | None, hidden: Sequence[tuple[int, int]]) -> tuple[array[float], array[float]]:
        """(steps, values) with seq <= upto and in none of the (after, before) ranges."""
        end = len(self.seq) if upto is None else bisect_right(self.seq, upto)
        steps, values, start = array("d"), array("d"), 0
        edges = sorted((bisect_right(self.seq, after), bisect_left(self.seq, before)) for after, before in hidden)
        for first, last in [*edges, (end, end)]:
            if start < min(first, end):
                steps += self.steps[start : min(first, end)]
                values += self.values[start : min(first, end)]
            start = max(start, last)
        return steps, values


class Columns:
    """The metric columns of one open session that somebody asked for."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base = base
        self._names = [row[1] for row in base.execute("PRAGMA table_info(metric)")]
        self._tracks: dict[str, dict[int, _Track]] = {}
        self._known: dict[str, int] = {}
        """Column -> seq up to which it was read."""

    def load(self, columns: Iterable[str]) -> None:
        """Read what is new of these columns, those that stand equal in one pass. Raises StoreError."""
        together: dict[int, list[str]] = {}
        for column in columns:
            together.setdefault(self._known.get(column, 0), []).append(column)
        for known, names in together.items():
            self._read(known, list(dict.fromkeys(names)))

    def points(
        self,
        runs: Sequence[int],
        column: str,
        upto_seq: int | None,
        most: int,
        window: tuple[float, float] | None,
        hidden: Mapping[int, Sequence[tuple[int, int]]],
    ) -> list[Point]:
        self.load([column])
        tracks = self._tracks[column]
        parts: list[tuple[float, array[float], array[float]]] = []
        offset = 0.0
        for run in runs:
            steps, values = tracks[run].part(upto_seq, hidden.get(run, ())) if run in tracks else (array("d"),) * 2
            start = offset
            offset += steps[-1] if steps else 0.0
            if window:
                first, last = bisect_left(steps, window[0] - start), bisect_right(steps, window[1] - start)
                steps, values = steps[first:last], values[first:last]
            parts.append((start, steps, values))
        total = sum(len(steps) for _, steps, _ in parts)
        found: list[Point] = []
        for start, steps, values in parts:
            share = most if total <= most else max(4, most * len(steps) // total)
            found += [(start + steps[i], values[i]) for i in kept(values, share)]
        indices = kept([y for _, y in found], most)
        return [found[i] for i in indices]

    def _read(self, known: int, columns: Sequence[str]) -> None:
        selected = ", ".join(self._expression(column) for column in columns)
        rows = self._base.execute(f"SELECT seq, run, env_steps, {selected} FROM metric WHERE seq > ?", (known,))
        tracks = [self._tracks.setdefault(column, {}) for column in columns]
        last = known
        for last, run, steps, *values in rows:
            for track, value in zip(tracks, values, strict=True):
                if value is not None:
                    if run not in track:
                        track[run] = _Track()
                    track[run].append(last, steps, value)
        for column in columns:
            self._known[column] = last

    def _expression(self, column: str) -> str:
        name, dot, key = column.partition(".")
        if name not in self._names:
            raise StoreError(f"there is no metric {column!r}")
        if not dot:
            return f"CAST({quoted(name)} AS REAL)"
        path = '$."' + key.replace('"', "").replace("'", "''") + '"'
        return f"CAST(json_extract({quoted(name)}, '{path}') AS REAL)"


def kept(values: Sequence[float], most: int) -> list[int]:
    """Indices of at most `most` (>= 4) of the values, in order: the first, the last, and the lowest and highest
    of every stretch between them."""
    if len(values) <= most:
        return list(range(len(values)))
    stretches, inner = max(1, (most - 2) // 2), len(values) - 2
    indices = [0]
    for number in range(stretches):
        start, stop = 1 + number * inner // stretches, 1 + (number + 1) * inner // stretches
        part = values[start:stop]
        if part:
            low, high = part.index(min(part)), part.index(max(part))
            indices += [start + i for i in sorted({low, high})]
    return [*indices, len(values) - 1]

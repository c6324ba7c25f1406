"""Dots to braille: the rasteriser of the charts.

A canvas of `width` x `height` cells has 2 * width columns and 4 * height rows of dots. Curves are drawn from
one [low, high] interval a dot column, so a redraw costs the same for a thousand points as for a million.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], dtype=np.int32)
"""Bit of each dot of a cell, [row, column]."""
EMPTY = 0x2800


class Canvas:
    """Dots in layers: each layer (a curve) has an index, and a cell takes the colour of its topmost layer."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.codes = np.zeros((height, width), dtype=np.int32)
        self.layers = np.full((height, width), -1, dtype=np.int32)
        self.rows_of_dots = np.arange(4 * height)[:, None]

    def draw(self, dots: NDArray[np.bool_], layer: int) -> None:
        """`dots`: (4 * height, 2 * width), row 0 at the top."""
        cells = dots.reshape(self.height, 4, self.width, 2)
        codes = np.einsum("rbcd,bd->rc", cells.astype(np.int32), _BITS)
        self.codes |= codes
        self.layers[codes > 0] = layer

    def curve(self, columns: NDArray[np.float64], layer: int) -> None:
        """`columns`: (2, 2 * width) lowest and highest dot row (0 = bottom) of each dot column, NaN = no dot.

        Neighbouring columns are joined, so that a jump is a line and not two specks.
        """
        low, high = columns
        have = np.flatnonzero(np.isfinite(low))
        if not len(have):
            return
        span = np.arange(have[0], have[-1] + 1)
        low = np.interp(span, have, low[have])
        high = np.interp(span, have, high[have])
        joined_low, joined_high = low.copy(), high.copy()
        joined_low[1:] = np.minimum(joined_low[1:], np.where(low[1:] > high[:-1], high[:-1] + 1, low[1:]))
        joined_high[1:] = np.maximum(joined_high[1:], np.where(high[1:] < low[:-1], low[:-1] - 1, high[1:]))
        self._fill(span, joined_low, joined_high, layer)

    def points(self, columns: NDArray[np.int64], rows: NDArray[np.float64], layer: int) -> None:
        """Single dots thickened to 2 x 2, for measurements that stand alone."""
        dots = np.zeros((4 * self.height, 2 * self.width), dtype=bool)
        top = 4 * self.height - 1
        for right in (0, 1):
            for up in (0, 1):
                x = np.clip(columns + right, 0, 2 * self.width - 1)
                y = np.clip(top - np.rint(rows).astype(np.int64) - up, 0, top)
                dots[y, x] = True
        self.draw(dots, layer)

    def whisker(self, column: int, low: float, high: float, layer: int) -> None:
        """A vertical interval."""
        self._fill(np.array([column]), np.array([low]), np.array([high]), layer)

    def _fill(self, span: NDArray[np.int64], low: NDArray[np.float64], high: NDArray[np.float64], layer: int) -> None:
        dots = np.zeros((4 * self.height, 2 * self.width), dtype=bool)
        top = 4 * self.height - 1
        first, last = top - np.rint(high), top - np.rint(low)
        dots[:, span] = (self.rows_of_dots >= first) & (self.rows_of_dots <= last)
        self.draw(dots, layer)

    def rows(self) -> list[list[tuple[str, int]]]:
        """Each row of cells as runs of (text, layer); layer -1 is empty."""
        characters = (self.codes + EMPTY).astype(np.uint32)
        out: list[list[tuple[str, int]]] = []
        for codes, layers in zip(characters, self.layers, strict=True):
            edges = np.flatnonzero(np.diff(layers)) + 1
            bounds = [0, *edges.tolist(), self.width]
            runs = []
            for start, stop in pairwise(bounds):
                layer = int(layers[start])
                text = " " * (stop - start) if layer < 0 else "".join(map(chr, codes[start:stop].tolist()))
                runs.append((text, layer))
            out.append(runs)
        return out


def columns_of(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    bounds: tuple[float, float, float, float],
    width: int,
    height: int,
) -> NDArray[np.float64]:
    """Min / max roll-up of a curve: (2, 2 * width) dot rows. `x` ascending; bounds are (x0, x1, y0, y1)."""
    x0, x1, y0, y1 = bounds
    out = np.full((2, 2 * width), np.nan)
    first, last = np.searchsorted(x, [x0, x1], side="left")
    first, last = max(int(first) - 1, 0), min(int(last) + 1, len(x))
    x, y = x[first:last], y[first:last]
    good = np.isfinite(y)
    x, y = x[good], y[good]
    if not len(x):
        return out
    column = np.clip(np.rint((x - x0) / max(x1 - x0, 1e-12) * (2 * width - 1)), 0, 2 * width - 1).astype(np.int64)
    row = np.clip((y - y0) / max(y1 - y0, 1e-12), 0.0, 1.0) * (4 * height - 1)
    starts = np.flatnonzero(np.r_[True, np.diff(column) > 0])
    out[0, column[starts]] = np.minimum.reduceat(row, starts)
    out[1, column[starts]] = np.maximum.reduceat(row, starts)
    return out

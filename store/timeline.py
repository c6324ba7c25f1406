"""The fold at any cursor, fast: a few folded states are kept along the way, and the nearest is folded on.

Kept in memory only and made while they are passed, so they can never disagree with the rows.
"""

from __future__ import annotations

import contextlib
import gc
from bisect import bisect_right
from collections.abc import Callable, Iterator

from rlgpt.store.history import History, fold_all
from rlgpt.store.row_types import Change

SPACING = 500
"""Rows between two kept states: the most that one seek folds. It doubles when too many are kept."""
MOST_KEPT = 160
PIECE = 40_000
"""Rows read at once."""

Read = Callable[[int, int | None, int | None], list[Change]]
"""(after, up to, limit) -> rows."""


class Timeline:
    def __init__(self, read: Read) -> None:
        self._read = read
        self._histories: list[History] = [History()]
        self._spacing = SPACING

    def at(self, seq: int | None = None) -> History:
        """The fold of all rows up to `seq`, or of all there are; the caller's own."""
        last = 2**62 if seq is None else seq
        place = bisect_right(self._histories, last, key=lambda kept: kept.seq) - 1
        state = self._histories[place].copy()
        with no_collection():
            while state.seq < last:
                most = min(PIECE, last - state.seq)  # no two rows have one seq
                rows = self._read(state.seq, seq, most)
                self._fold(rows, state)
                if len(rows) < most:
                    break
        return state

    def _fold(self, rows: list[Change], state: History) -> None:
        start = 0
        while start < len(rows):
            part = rows[start : start + self._spacing]
            fold_all(part, state)
            start += len(part)
            if len(part) == self._spacing and state.seq > self._histories[-1].seq:
                self._histories.append(state.copy())
                if len(self._histories) > MOST_KEPT:
                    self._histories, self._spacing = self._histories[::2], 2 * self._spacing


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Tens of thousands of new rows wake the garbage collector again and again: it took half of a first fold."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()

"""The fold at any cursor, fast: a few folded states are kept along the way, and the nearest is folded on.

Kept in memory only and made while they are passed, so they can never disagree with the rows.
"""

from __future__ import annotations

import contextlib
import gc
from bisect import bisect_right
from collections.abc import Callable, Iterator

from rlgpt.store.history import History, fold_all
from rlgpt.store.query import Change

SPACING = 2000
"""Rows between two kept states: the most that one seek folds."""
PIECE = 20 * SPACING
"""Rows read at once."""

Read = Callable[[int, int | None, int | None], list[Change]]
"""(after, up to, limit) -> rows."""


class Timeline:
    def __init__(self, read: Read) -> None:
        self._read = read
        self._kept: list[History] = [History()]

    def at(self, seq: int | None = None) -> History:
        """The fold of all rows up to `seq`, or of all there are; the caller's own."""
        last = 2**62 if seq is None else seq
        place = bisect_right(self._kept, last, key=lambda kept: kept.seq) - 1
        state = self._kept[place].copy()
        with _no_collection():
            while state.seq < last:
                most = min(PIECE, last - state.seq)  # no two rows have one seq
                rows = self._read(state.seq, seq, most)
                self._fold(rows, state)
                if len(rows) < most:
                    break
        return state

    def _fold(self, rows: list[Change], state: History) -> None:
        for start in range(0, len(rows), SPACING):
            part = rows[start : start + SPACING]
            fold_all(part, state)
            if len(part) == SPACING and state.seq > self._kept[-1].seq:
                self._kept.append(state.copy())


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Tens of thousands of new rows wake the garbage collector again and again: it took half of a first fold."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()

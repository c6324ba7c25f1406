"""The fold at any cursor, fast: a few folded states are kept along the way, and the nearest is folded on.

Kept in memory only and made while they are passed, so they can never disagree with the rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from rlgpt.store.history import History, fold_all
from rlgpt.store.query import Change

SPACING = 2000
"""Rows between two kept states: the most that one seek folds."""

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
        while rows := self._read(state.seq, seq, SPACING):
            fold_all(rows, state)
            if len(rows) < SPACING:
                break
            if state.seq > self._kept[-1].seq:
                self._kept.append(state.copy())
        return state

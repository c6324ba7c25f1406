"""Metric rows as columns that grow: what curves are drawn from, live and in replay alike.

A row's mappings become columns named `usage:SLOT`, `steps:SLOT`, `end:REASON`, `ended:SLOT:REASON`, `reward:TERM` and
`milestone:NAME`.
Missing values are NaN. Rows come in `seq` order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgpt.store.row_types import METRICS, MetricRow

Floats = NDArray[np.float64]

SCALARS = ("seq", *METRICS)
MAPPINGS = {"option_usage": "usage", "option_steps": "steps", "rewards": "reward", "milestones": "milestone"}


class MetricTable:
    """Append-only. `len(table)` rows; `column(name)` is a view of that length."""

    def __init__(self) -> None:
        self._columns: dict[str, Floats] = {}
        self._length = 0
        self._capacity = 0

    def __len__(self) -> int:
        return self._length

    @property
    def names(self) -> list[str]:
        return list(self._columns)

    def column(self, name: str) -> Floats:
        """Values so far; all NaN for a name never seen."""
        column = self._columns.get(name)
        return column[: self._length] if column is not None else np.full(self._length, np.nan)

    def upto(self, seq: int) -> int:
        """Number of rows with seq <= `seq`."""
        return int(np.searchsorted(self.column("seq"), seq, side="right"))

    def extend(self, rows: Sequence[MetricRow]) -> None:
        """Append whole rows."""
        start = self._length
        self._reserve(start + len(rows))
        for name in SCALARS:
            self._own(name)[start : start + len(rows)] = [_number(row.get(name)) for row in rows]
        self.fill_mappings(start, rows)
        self._length = start + len(rows)

    def extend_scalars(self, values: Sequence[Sequence[Any]]) -> None:
        """Append rows given as tuples in the order of SCALARS; their mappings may be filled later."""
        if not values:
            return
        start, block = self._length, np.array(values, dtype=np.float64)
        self._reserve(start + len(block))
        for index, name in enumerate(SCALARS):
            self._own(name)[start : start + len(block)] = block[:, index]
        self._length = start + len(block)

    def fill_mappings(self, start: int, rows: Iterable[MetricRow]) -> None:
        """Set the mapping columns of the rows from index `start` on."""
        for index, row in enumerate(rows, start):
            columns: Mapping[str, Any] = row
            for source, prefix in MAPPINGS.items():
                for name, value in (columns.get(source) or {}).items():
                    self._own(f"{prefix}:{name}")[index] = _number(value)
            reasons: dict[str, float] = {}
            for slot, counts in row["end_reasons"].items():
                for reason, value in counts.items():
                    self._own(f"ended:{slot}:{reason}")[index] = value
                    reasons[reason] = reasons.get(reason, 0.0) + value
            for reason, value in reasons.items():
                self._own(f"end:{reason}")[index] = value

    def _own(self, name: str) -> Floats:
        if name not in self._columns:
            self._columns[name] = np.full(self._capacity, np.nan)
        return self._columns[name]

    def _reserve(self, length: int) -> None:
        if length <= self._capacity:
            return
        self._capacity = max(1024, length, int(self._capacity * 1.6))
        for name, column in self._columns.items():
            grown = np.full(self._capacity, np.nan)
            grown[: self._length] = column[: self._length]
            self._columns[name] = grown


def _number(value: Any) -> float:
    return np.nan if value is None else float(value)

"""The x-axis of every chart: env steps of the session, trials, probes and training together, evaluation free."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rlgpt.console.view.metrics import MetricTable
from rlgpt.store.history import History

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """`rows` are the indices of the metric rows that count (no superseded ones) up to the cursor."""

    rows: NDArray[np.intp]
    x: Floats
    """Env steps of the session at each of these rows, ascending."""
    run_starts: dict[int, float]
    """Run -> env steps of the session when it began."""
    breaks: tuple[int, ...]
    """Positions in `rows` at which a new run begins."""
    _at_seq: Floats
    _at_x: Floats

    def at(self, seq: int) -> float:
        """Env steps of the session when the row `seq` was written."""
        index = int(np.searchsorted(self._at_seq, seq, side="right")) - 1
        return float(self._at_x[index]) if index >= 0 else 0.0

    def at_all(self, seqs: Floats) -> Floats:
        index = np.searchsorted(self._at_seq, seqs, side="right") - 1
        return np.where(index >= 0, self._at_x[np.maximum(index, 0)], 0.0) if len(self._at_x) else np.zeros(len(seqs))

    @property
    def end(self) -> float:
        return float(self._at_x[-1]) if len(self._at_x) else 0.0


def axis_of(history: History, metrics: MetricTable) -> Axis:
    last = metrics.upto(history.seq)
    seq, run = metrics.column("seq")[:last], metrics.column("run")[:last]
    steps = metrics.column("env_steps")[:last]
    shown = np.ones(last, dtype=bool)
    for state in history.runs.values():
        for after, before in state.hidden:
            shown &= ~((run == state.run) & (seq > after) & (seq < before))
    starts = _run_starts(history)
    rows = np.flatnonzero(shown)
    x = steps[rows].copy()
    breaks: list[int] = []
    if len(rows):
        runs = run[rows]
        edges = [0, *(np.flatnonzero(np.diff(runs)) + 1).tolist(), len(runs)]
        for first, stop in pairwise(edges):
            x[first:stop] += starts.get(int(runs[first]), 0.0)
        breaks = edges[1:-1]
    marks = [(0, 0.0), *((s, value) for s, value in _trial_marks(history))]
    mark_seq = np.array([m[0] for m in marks], dtype=float)
    mark_x = np.array([m[1] for m in marks], dtype=float)
    at_seq, at_x = np.concatenate([mark_seq, seq[rows]]), np.concatenate([mark_x, x])
    order = np.argsort(at_seq, kind="stable")
    return Axis(
        rows, x, starts, tuple(breaks), at_seq[order], np.maximum.accumulate(at_x[order]) if len(order) else at_x
    )


def _spent(history: History) -> list[tuple[int, int, int]]:
    """(seq, env steps, run or 0) of everything that spends env steps, in order. Of a version all its trials: one that
    is tried again, for another predicate or after new code of a step before it, has spent those of both."""
    parts = [(trial.seq, trial.env_steps, 0) for a in history.attempts for _, trial in a.trials]
    parts += [(seq, env_steps, 0) for seq, env_steps in history.probe_steps]
    parts += [(r.seq, r.env_steps, r.run) for r in history.runs.values()]
    return sorted(parts)


def _run_starts(history: History) -> dict[int, float]:
    total, starts = 0, {}
    for _, steps, run in _spent(history):
        if run:
            starts[run] = float(total)
        total += steps
    return starts


def _trial_marks(history: History) -> list[tuple[int, float]]:
    total, marks = 0, []
    for seq, steps, run in _spent(history):
        if run:
            marks.append((seq, float(total)))
        total += steps
        if not run:
            marks.append((seq, float(total)))
    return marks

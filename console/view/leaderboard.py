"""The sessions of a task, best first: those that differ only in their seed stand in one row. Pure.

Only held-out test episodes count. A row is ranked by the mean over its seeds; the best seed is shown beside it, with
the episodes and the interval of that one policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rlgpt.console.view.arms import arm_of, differing, told, with_defaults
from rlgpt.console.view.numbers import count, many, measured, money
from rlgpt.console.view.sessions import model_words
from rlgpt.console.view.text import Entry, Line, columns, line, width_of, wrap

if TYPE_CHECKING:
    from rlgpt.store.catalog import Summary


@dataclass(frozen=True)
class Row:
    label: str
    """Model, and the settings in which the rows differ."""
    sessions: tuple[Summary, ...]
    """Tested ones, the best first."""
    mean: float
    """Of the test results of its seeds, in [0, 1]; several sessions of one seed count as their mean."""
    interval: tuple[float, float] | None
    """95%, over seeds; None for one."""

    @property
    def best(self) -> Summary:
        return self.sessions[0]

    @property
    def seeds(self) -> list[int]:
        return sorted({int(s.settings.get("seed", 0)) for s in self.sessions})

    @property
    def env_steps(self) -> float:
        """Mean over its sessions."""
        return sum(s.env_steps for s in self.sessions) / len(self.sessions)

    @property
    def cost(self) -> float:
        """Of all of them, as far as prices are known."""
        return sum(s.cost for s in self.sessions)

    @property
    def unknown_price(self) -> bool:
        return any(s.unknown_price for s in self.sessions)


def rows(summaries: Sequence[Summary], task: str) -> list[Row]:
    """Best mean first. Sessions without test episodes have no place yet."""
    tested = [s for s in summaries if s.task == task and s.test_episodes]
    trees = {s.id: with_defaults(s.settings) for s in tested}
    keys = [key for key in differing([*trees.values()]) if key != "llm.model" and key != "llm.kind"]
    groups: dict[tuple[str, str, str], list[Summary]] = {}
    for s in tested:
        groups.setdefault((s.world, s.model, arm_of(trees[s.id], keys) if keys else ""), []).append(s)
    out = []
    for (_, model, _), members in groups.items():
        best_first = sorted(members, key=lambda s: -s.test.value)
        by_seed: dict[int, list[float]] = {}
        for s in best_first:  # forks and copies share a seed
            by_seed.setdefault(int(s.settings.get("seed", 0)), []).append(s.test.value)
        values = [fmean(results) for results in by_seed.values()]
        settings = told(trees[best_first[0].id], keys)
        label = model_words(model) + (f", {settings}" if settings else "")
        out.append(Row(label, tuple(best_first), fmean(values), _interval(values)))
    return sorted(out, key=lambda row: -row.mean)


def untested(summaries: Sequence[Summary], task: str) -> int:
    return sum(s.task == task and not s.test_episodes and not s.fault for s in summaries)


def _interval(values: Sequence[float]) -> tuple[float, float] | None:
    if len(values) < 2:
        return None
    import numpy as np

    from rlgpt.console import statistics

    interval = statistics.bootstrap(np.array(values)[:, None], statistics.mean)
    return interval.low, interval.high


def mean_words(row: Row) -> str:
    """As `measured` says a result, but over seeds."""
    scored = row.best.test.score is not None
    factor, digits = (100.0, 1) if scored else (1.0, 2)
    head, tail = ("score ", "%") if scored else ("", "")
    score = f"{head}{factor * row.mean:.{digits}f}{tail}"
    sessions = f" ({len(row.sessions)} sessions)" if len(row.sessions) > len(row.seeds) else ""
    if row.interval is None:
        return f"{score}, one seed{sessions}"
    low, high = (factor * value for value in row.interval)
    return f"{score} [{low:.{digits}f}, {high:.{digits}f}] over {many(len(row.seeds), 'seed')}{sessions}"


def cost_words(row: Row) -> str:
    return money(row.cost, row.unknown_price)


def cells(rank: int, row: Row) -> tuple[str, ...]:
    """In the order of TITLES."""
    seeds = ", ".join(map(str, row.seeds))
    return (str(rank), row.label, mean_words(row), measured(row.best.test), row.best.name, seeds,
            count(row.env_steps), cost_words(row))  # fmt: skip


TITLES = (
    "", "model and settings", "test, mean over seeds", "best seed", "session", "seed numbers", "env steps", "cost"
)  # fmt: skip
_WIDTHS = {
    "": 2, "test, mean over seeds": 40, "best seed": 30, "session": 22, "seed numbers": 12, "env steps": 9, "cost": 9,
}  # fmt: skip
_RANK = ("", "model and settings", "test, mean over seeds", "env steps", "cost", "best seed", "seed numbers", "session")
"""Columns in the order in which they are given a place."""


def _fitting_columns(width: int) -> list[tuple[int, int]]:
    """(column, width) of those that fit; the label takes what is left, at least 18 cells."""
    spare = width - 18
    columns_shown = {1}
    for name in _RANK:
        wide = _WIDTHS.get(name)
        if wide is not None and wide + 1 <= spare:
            columns_shown.add(TITLES.index(name))
            spare -= wide + 1
    return [(i, 18 + max(spare, 0) - 1 if i == 1 else _WIDTHS[TITLES[i]]) for i in sorted(columns_shown)]


def header(width: int) -> Line:
    return columns([(line((TITLES[i], "dim")), wide) for i, wide in _fitting_columns(width)])


def entries(summaries: Sequence[Summary], task: str, width: int) -> list[Entry]:
    """A row each; Enter opens its best session."""
    out = []
    shown = _fitting_columns(width)
    for rank, row in enumerate(rows(summaries, task), 1):
        texts = cells(rank, row)
        styles = {1: "bold", 2: "ok" if rank == 1 else ""}
        row_text = columns([(line((texts[i], styles.get(i, ""))), wide) for i, wide in shown])
        cut = width_of(line(row.label)) > dict(shown)[1]
        whole = wrap(row.label, width, "dim", "   ") if cut else []  # what a column cuts looks alike in several rows
        every = "\t".join(texts)
        lines = (row_text, *whole)
        out.append(Entry(f"row:{row.label}", lines, search=every, yank=every, fields={"session": row.best.id}))
    if not out:
        text = f"No session of {task} has played its held-out test episodes yet; they come at a session's end."
        return [Entry("note", tuple(wrap(text, width, "dim")), selectable=False)]
    if left := untested(summaries, task):
        text = f"{many(left, 'session')} of this task without test episodes: not ranked."
        out.append(Entry("untested", tuple(wrap(text, width, "dim")), selectable=False))
    return out


def tree(summaries: Sequence[Summary], task: str) -> dict[str, Any]:
    """`leaderboard --json`."""
    return {
        "task": task,
        "rows": [
            {
                "rank": rank,
                "label": row.label,
                "model": row.best.model,
                "seeds": row.seeds,
                "sessions": [s.id for s in row.sessions],
                "mean": row.mean,
                "ci95": list(row.interval) if row.interval else None,
                "best": {
                    "id": row.best.id,
                    "value": row.best.test.value,
                    "scored": row.best.test.score is not None,
                    "episodes": row.best.test.episodes,
                    "ci95": list(row.best.test.interval),
                },
                "env_steps": row.env_steps,
                "cost": {"usd": None if row.unknown_price else row.cost, "known_usd": row.cost},
            }
            for rank, row in enumerate(rows(summaries, task), 1)
        ],
        "untested": untested(summaries, task),
    }

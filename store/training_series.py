"""A training run as ten points, from which agents and people see whether learning goes on. Standard library only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import fsum
from statistics import fmean
from typing import Any

from rlgpt.store.row_types import JsonObject, MetricRow

POINTS = 10
MEANS = {"kl": "kl", "entropy": "entropy", "explained_variance": "explained_variance"}
"""Columns of a metric row that are averaged over the updates of a point."""
COLUMNS = (
    "seq", "env_steps", "episodes", "successes", "return_mean", *MEANS, "option_usage", "end_reasons", "rewards",
)  # fmt: skip
FEWEST = 0.005
"""Share of the decisions below which an option is not listed."""


def training_series(rows: Sequence[MetricRow], points: int = POINTS) -> JsonObject:
    """From the metric rows of one run, in order. Every list has an entry a point, oldest first; None: no episode ended.

    {env_steps, success, return, reward: {term: per episode}, kl, entropy, explained_variance, option_share: {name:
    share of decisions}, ends: {name: {why: share of its calls}} (of the last point)}
    """
    parts = [part for part in _split(rows, points) if part]
    if not parts:
        return {}
    episodes = [sum(row["episodes"] for row in part) for part in parts]
    usage = [_sum(row["option_usage"] for row in part) for part in parts]
    rewards = [_sum(row["rewards"] for row in part) for part in parts]
    terms = sorted({term for point in rewards for term in point})
    shares = [{name: count / max(1, sum(point.values())) for name, count in point.items()} for point in usage]
    named = sorted({name for point in shares for name, share in point.items() if share >= FEWEST})
    return {
        "env_steps": [part[-1]["env_steps"] for part in parts],
        "success": [_ratio(sum(r["successes"] for r in part), n) for part, n in zip(parts, episodes, strict=True)],
        "return": [_return(part, n) for part, n in zip(parts, episodes, strict=True)],
        "reward": {t: [_ratio(p.get(t, 0.0), n) for p, n in zip(rewards, episodes, strict=True)] for t in terms},
        **{name: [_mean(part, column) for part in parts] for name, column in MEANS.items()},
        "option_share": {name: [round(point.get(name, 0.0), 3) for point in shares] for name in named},
        "ends": _ends(parts[-1]),
    }


def _split(rows: Sequence[MetricRow], points: int) -> list[Sequence[MetricRow]]:
    edges = [len(rows) * point // points for point in range(points + 1)]
    return [rows[low:high] for low, high in pairwise(edges)]


def _sum(counts: Any) -> Counter[str]:
    total: Counter[str] = Counter()
    for count in counts:
        for name, value in count.items():
            total[name] += value
    return total


def _return(part: Sequence[MetricRow], episodes: int) -> float | None:
    total = fsum(row["return_mean"] * row["episodes"] for row in part if row["return_mean"] is not None)
    return _ratio(total, episodes)


def _mean(part: Sequence[Mapping[str, Any]], column: str) -> float | None:
    values = [row[column] for row in part if row[column] is not None]
    return _short(fmean(values)) if values else None


def _ends(part: Sequence[MetricRow]) -> dict[str, dict[str, float]]:
    names = sorted({name for row in part for name in row["end_reasons"]})
    told = {}
    for name in names:
        counts = _sum(row["end_reasons"].get(name, {}) for row in part)
        total = sum(counts.values())
        told[name] = {why: round(count / total, 2) for why, count in counts.most_common() if count}
    return told


def _ratio(value: float, count: int) -> float | None:
    return _short(value / count) if count else None


def _short(value: float) -> float:
    """Three significant digits."""
    return float(f"{value:.3g}")

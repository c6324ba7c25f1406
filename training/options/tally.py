"""Sums over episodes in the form of metric and evaluation rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rlgpt.training.options.lane import EpisodeResult


class Tally:
    """Episodes since the last `take`, decisions and rewards included."""

    def __init__(self) -> None:
        self.episodes = self.successes = self.dead_loops = self.env_steps = self.decisions = 0
        self.returns = 0.0
        self.milestones: Counter[str] = Counter()
        self.usage: Counter[str] = Counter()
        self.ends: dict[str, Counter[str]] = {}
        self.rewards: Counter[str] = Counter()

    def add(self, result: EpisodeResult) -> None:
        self.episodes += 1
        self.successes += result.success
        self.dead_loops += result.dead_loop
        self.env_steps += result.env_steps
        self.decisions += result.decisions
        self.returns += result.return_
        self.milestones.update(result.milestones)
        self.usage.update(result.usage)
        for name, ends in result.ends.items():
            self.ends.setdefault(name, Counter()).update(ends)
        for name, value in result.rewards.items():
            self.rewards[name] += value  # type: ignore[assignment]

    def fields(self) -> dict[str, Any]:
        """Columns shared by metric and evaluation rows; means are None without episodes."""
        count = self.episodes
        return {
            "episodes": count,
            "successes": self.successes,
            "return_mean": self.returns / count if count else None,
            "length_mean": self.env_steps / count if count else None,
            "dead_loops": self.dead_loops,
            "milestones": dict(sorted(self.milestones.items())),
            "option_usage": dict(sorted(self.usage.items())),
            "end_reasons": {name: dict(sorted(ends.items())) for name, ends in sorted(self.ends.items())},
            "rewards": dict(self.rewards),
        }


def tally(results: Sequence[EpisodeResult]) -> Tally:
    total = Tally()
    for result in results:
        total.add(result)
    return total

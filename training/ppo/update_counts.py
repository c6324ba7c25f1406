"""What a run counts between two metric rows: decisions, episodes, and the reward of each term."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rlgpt.training.options.lane import EpisodeResult
from rlgpt.training.options.rewards import RewardStream
from rlgpt.training.options.tally import Tally


class UpdateCounts:
    def __init__(self) -> None:
        self.paid: Counter[str] = Counter()
        """Reward per term of all finished episodes of the run."""
        self.reported: dict[str, float] = {}
        """Reward per term that metric rows hold already, unfinished episodes included."""
        self._clear()

    def _clear(self) -> None:
        self._episodes = Tally()
        self._usage: Counter[str] = Counter()
        self._steps: Counter[str] = Counter()
        self._ends: dict[str, Counter[str]] = {}

    def add_decision(self, option: str | None, env_steps: int, end: str) -> None:
        """`option`: the slot's name, None for a primitive."""
        name = option or "primitive"
        if option is not None:
            self._ends.setdefault(option, Counter())[end] += 1
        self._usage[name] += 1
        self._steps[name] += env_steps

    def add_reward(self, result: EpisodeResult) -> None:
        self.paid.update(result.rewards)

    def add_episode(self, result: EpisodeResult) -> None:
        self._episodes.add(result)

    def with_open(self, streams: Iterable[RewardStream]) -> Counter[str]:
        """What was paid, with `streams`, those of the unfinished episodes."""
        paid = Counter(self.paid)
        for stream in streams:
            for name, value in zip(stream.names, stream.totals, strict=True):
                paid[name] += value  # type: ignore[assignment]
        return paid

    def take(self, names: Sequence[str], streams: Iterable[RewardStream]) -> dict[str, Any]:
        """Columns of the metric row since the last call. `names`: of the terms."""
        paid = self.with_open(streams)
        fields = self._episodes.fields() | {
            "option_usage": dict(sorted(self._usage.items())),
            "option_steps": dict(sorted(self._steps.items())),
            "end_reasons": {name: dict(sorted(ends.items())) for name, ends in sorted(self._ends.items())},
            "rewards": {name: paid[name] - self.reported.get(name, 0.0) for name in names},
        }
        self.reported = dict(paid)
        self._clear()
        return fields

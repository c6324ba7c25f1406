"""What the episodes of an evaluation amount to, and those of several evaluations together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum

from rlgpt.store.intervals import wilson
from rlgpt.store.row_types import Counts, Ends, JsonObject, Sums


@dataclass(frozen=True)
class Measured:
    """What some episodes amount to: episodes that succeeded, and the score where the result of the task is one."""

    successes: int
    episodes: int
    score: float | None = None
    """In [0, 1]."""

    @property
    def value(self) -> float:
        """The result, in [0, 1]: the score of a task that has one, else the share of episodes that succeeded."""
        if self.score is not None:
            return 1.0 if 1 < self.score < 1 + 1e-9 else self.score  # that of all milestones may be rounded to more
        return self.successes / self.episodes if self.episodes else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """95%, Wilson's. It is wide enough for a score: that of many milestones varies less from sample to sample than
        a share of the episodes does."""
        return wilson(self.successes if self.score is None else self.value * self.episodes, self.episodes)

    @property
    def low(self) -> float:
        return self.interval[0]

    @property
    def high(self) -> float:
        return self.interval[1]


@dataclass
class EvaluationState:
    """Of an evaluation's row what the loop and the console look at in the fold."""

    number: int
    iteration: int
    revision: int
    split: str
    variant: str
    episodes: int
    successes: int
    return_mean: float
    length_mean: float
    dead_loops: int
    run: int | None
    policy: str
    funnel: Counts
    milestones: Counts
    option_usage: Counts
    end_reasons: Ends
    rewards: Sums
    seq: int
    score: float | None = None
    """The task's score in [0, 1], where the result of the task is one."""
    option_steps: Counts | None = None
    """Env steps per slot name; None where they were not recorded."""
    option_done: Counts | None = None
    """Slot name -> calls after which the done_when of its sub-action held; None where it was not recorded."""
    failures: JsonObject = field(default_factory=dict)
    """How its episodes ended and how some lost ones went (`failures.py`); empty where it was not recorded."""

    @property
    def measured(self) -> Measured:
        return Measured(self.successes, self.episodes, self.score)


def pool(parts: Sequence[EvaluationState]) -> Measured:
    """The episodes of several evaluations together. Their score is the mean by episodes."""
    episodes = sum(e.episodes for e in parts)
    scores = [e.score * e.episodes for e in parts if e.score is not None]
    return Measured(sum(e.successes for e in parts), episodes, fsum(scores) / episodes if scores else None)


def first_of(parts: Sequence[EvaluationState], episodes: int) -> Measured:
    """Of evaluations that played the same seeds in parts, those that make up the first so many episodes."""
    played, first = 0, []
    for part in parts:
        played += part.episodes
        if played <= episodes:
            first.append(part)
    return pool(first)


def won_by(parts: Sequence[EvaluationState], episodes: int) -> set[int] | None:
    """Of the first so many episodes, the indices of those that succeeded; None where they were not recorded."""
    indices: set[int] = set()
    for part in parts:
        won = part.failures.get("won")
        if not isinstance(won, list) or len(won) != part.successes or not all(isinstance(i, int) for i in won):
            return None
        indices.update(i for i in won if i < episodes)
    return indices

"""What the worker decides by the rules of the method, as it writes it down: the payloads of three kinds of event.

The rules are in `agents/choice.py`. Everybody else shows these decisions and their reasons and decides nothing again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class VersionChosen:
    """Which code version of a sub-action is in use under a plan revision."""

    kind: ClassVar[str] = "version_chosen"
    revision: int
    item: str
    version: int | None
    """The version that acts; None: no code of this sub-action acts."""
    accepted: bool
    """Its trials accepted it. Code that was not accepted may act where it works at least sometimes."""
    why: str


@dataclass(frozen=True)
class IterationResult:
    """What an iteration came to when it was closed."""

    kind: ClassVar[str] = "iteration_result"
    sub_task: int
    iteration: int
    variant: str
    """full (the policy sampled, or the sequence of code) | greedy (the policy's most probable actions) | plan (the
    code alone): what acts of this iteration, named by the variant of its development episodes."""
    score: float
    """Of those episodes, in [0, 1]: the share that succeeded, or the task's score where it has one."""
    low: float
    high: float
    """95% interval of `score`."""
    why: str


@dataclass(frozen=True)
class Incumbent:
    """The best iteration of a sub-task so far."""

    kind: ClassVar[str] = "incumbent"
    sub_task: int
    iteration: int
    why: str


Decision = VersionChosen | IterationResult | Incumbent
DECISIONS = (VersionChosen.kind, IterationResult.kind, Incumbent.kind)


def payload(decision: Decision) -> dict[str, Any]:
    """The event's payload."""
    return asdict(decision)

"""Signs, visible in training and in test alike, that the plan is in trouble: an interrupt, code that gave up, a fault,
or nothing new for a while. Where the configuration says so the policy decides from such a sign on, else the plan runs
(docs/method.md, "Learning near the plan").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

QUIET = 6
"""Decisions without anything new that are a sign."""
LASTS = 10
"""Decisions that are the policy's after a sign."""
CALM_ENDS = ("", "cap", "episode")
"""How a decision ends without a sign; "" is a primitive's."""


@dataclass(slots=True)
class TroubleWatch:
    left: int = 0
    """Decisions that are still the policy's."""
    quiet: int = 0
    novelty: int = 0

    def start(self, novelty: int) -> None:
        self.left, self.quiet, self.novelty = 0, 0, novelty

    def decided(self, end: str, novelty: int) -> None:
        """After a decision that ended as `end`."""
        self.quiet = 0 if novelty != self.novelty else self.quiet + 1
        self.novelty = novelty
        if end not in CALM_ENDS or self.quiet >= QUIET:
            self.left, self.quiet = LASTS, 0
        else:
            self.left = max(0, self.left - 1)

    def save(self) -> list[int]:
        return [self.left, self.quiet, self.novelty]

    def restore(self, state: list[Any]) -> None:
        self.left, self.quiet, self.novelty = map(int, state)

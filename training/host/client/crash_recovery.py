"""What a tick goes on without after a death of the process: ended calls and questions that are not asked again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from rlgpt.training.host import wire
from rlgpt.training.host.api import End


class Running(NamedTuple):
    """What the process was evaluating when it died."""

    lane: int
    source_hash: str
    asked_of: int
    """The wire's flag of the question, 0 for a call."""
    action: int
    """As in an answer."""


class Ended(NamedTuple):
    """A call that died with its process."""

    end: End
    message: str
    action: int


@dataclass
class Losses:
    """What a tick goes on without."""

    skip: dict[int, int] = field(default_factory=dict)
    """Lane of this tick -> the wire's flags that are not asked again."""
    opening: dict[int, int] = field(default_factory=dict)
    """Lane -> action, where this tick opens another call: the old one need not be rebuilt."""
    ended: dict[int, Ended] = field(default_factory=dict)
    notes: dict[int, str] = field(default_factory=dict)
    blamed: set[Running] = field(default_factory=set)
    """What deaths of this tick were blamed on: each once, as it is not run again. What seems to die again is not why
    the process dies."""
    unexplained: int = 0
    """Deaths in a row that no source explains."""
    given_up: bool = False
    """Every call was ended, because no source explained the deaths."""

    def closes(self, lane: int, action: int) -> bool:
        """Whether this tick opens another call in the lane, so that a death in `action` is that of the old one while it
        was closed. The new one can be opened without it. An item of the plan may be the new call's, if that follows the
        plan."""
        opened = self.opening.get(lane, action)
        return not action & wire.PLAN_BIT if opened == wire.FOLLOW_PLAN else opened != action

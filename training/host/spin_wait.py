"""A byte in the shared page that says "there is a message": looked at for a moment before going to sleep.

Waking a sleeping process costs more than a host's whole answer. So the reader of a pipe first looks at a byte
that the writer changes after each message. The pipe alone says what was written: a spin_wait that lies, or is never
rung, costs the reader one look.
"""

from __future__ import annotations

import os
from typing import Any

REQUESTED, REPLIED = 64, 128
"""Where in the page they lie: each in a cache line of its own, away from the token."""
_LONGEST_REST = 4_096


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class SpinWait:
    """`page` is the shared page, `at` the byte that the other side changes, `looks` how often it is looked at
    (25 to 60 ns each) before the reader sleeps; with one processor never, as nobody could ring.

    Each time in vain doubles the number of messages for which the reader then sleeps at once, up to 4,096, and each
    success takes an eighth from it: looking in vain costs what about five successes save, so it must nearly always
    help. A side that is slow, or that has no processor free, is soon not waited for.
    """

    __slots__ = ("_at", "_looks", "_page", "_resting", "_vain")

    def __init__(self, page: Any, at: int, looks: int) -> None:
        self._page = page
        self._at = at
        self._looks = looks if cores() > 1 else 0
        self._vain = 0
        self._resting = 0

    def wait_for(self, sequence: int) -> bool:
        """Looks until the spin_wait shows message `sequence`; False if it does not in time."""
        if self._resting:
            self._resting -= 1
            return False
        page, at, wanted = self._page, self._at, sequence & 0xFF
        for _ in range(self._looks):
            if page[at] == wanted:
                self._vain -= (self._vain + 7) >> 3
                return True
        self._vain = min(2 * self._vain + 1, _LONGEST_REST)
        self._resting = self._vain
        return False

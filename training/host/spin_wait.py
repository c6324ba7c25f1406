"""A reader of a pipe looks for a moment at a byte of the shared page, which the writer changes after each message,
before it blocks on the pipe: waking a blocked process costs more than a host's whole answer.

Messages are read from the pipe alone, so a byte that is wrong, or never changed, only costs the time of looking.
"""

from __future__ import annotations

import os
from typing import Any

REQUESTED, REPLIED = 64, 128
"""Positions of the two bytes in the page: each in a cache line of its own, away from the token."""
_MAX_SKIPPED = 4_096


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class SpinWait:
    """Looks at a byte of the shared page for a moment before the reader blocks on its pipe.

    `page` is the shared page, `position` the byte that the other side changes, `looks` how often it is read (25 to 60
    ns each) before the reader blocks; with one processor it is not read, because the other side could not run
    meanwhile.

    Each failure doubles the number of messages for which the reader then blocks at once, up to 4,096, and each success
    takes an eighth from it: a failure costs what about five successes save. So a side that is slow, or that has no
    processor free, is soon not waited for.
    """

    __slots__ = ("_failed_looks", "_max_looks", "_page", "_position", "_waits_to_skip")

    def __init__(self, page: Any, position: int, looks: int) -> None:
        self._page = page
        self._position = position
        self._max_looks = looks if cores() > 1 else 0
        self._failed_looks = 0
        self._waits_to_skip = 0

    def wait_for(self, sequence: int) -> bool:
        """Look until the byte shows message `sequence`; False if it does not in time."""
        if self._waits_to_skip:
            self._waits_to_skip -= 1
            return False
        page, position, expected = self._page, self._position, sequence & 0xFF
        for _ in range(self._max_looks):
            if page[position] == expected:
                self._failed_looks -= (self._failed_looks + 7) >> 3
                return True
        self._failed_looks = min(2 * self._failed_looks + 1, _MAX_SKIPPED)
        self._waits_to_skip = self._failed_looks
        return False

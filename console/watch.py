"""Measures how long a worker has made no progress. The age of its last row says nothing: a phase may take long."""

from __future__ import annotations

import time

from rlgpt.store.progress import Heartbeat


class Watch:
    """Seconds since progress last moved, by this process' monotonic clock once it was seen to move."""

    def __init__(self) -> None:
        self._last: Heartbeat = {}
        self._since = 0.0

    def silent(self, beat: Heartbeat, now: float) -> float | None:
        if not beat:
            return None
        tick = time.monotonic()
        if beat != self._last:
            first = not self._last
            self._last = beat.copy()
            age = max(now - beat["at"], 0.0) if first else 0.0
            self._since = tick - age
        return tick - self._since

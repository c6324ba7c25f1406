"""Measures how long a worker has made no progress. The age of its last row says nothing: a phase may take long."""

from __future__ import annotations

import time

from rlgpt.store.progress import Heartbeat


class Watch:
    """Seconds since progress last moved, by this process' monotonic clock once it was seen to move."""

    def __init__(self) -> None:
        self._last_beat: Heartbeat = {}
        self._beat_time = 0.0

    def silent(self, beat: Heartbeat, now: float) -> float | None:
        if not beat:
            return None
        tick = time.monotonic()
        if beat != self._last_beat:
            first = not self._last_beat
            self._last_beat = beat.copy()
            age = max(now - beat["at"], 0.0) if first else 0.0
            self._beat_time = tick - age
        return tick - self._beat_time

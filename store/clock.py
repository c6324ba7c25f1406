"""Counts seconds of work, which budgets, ETA and replay use instead of the time of day."""

from __future__ import annotations

import time
from collections.abc import Callable


class ActiveClock:
    """Monotonic, standing still while not running; a suspended machine does not count."""

    def __init__(self, start: float = 0.0, tick: Callable[[], float] = time.monotonic) -> None:
        self._tick = tick
        self._before = start
        self._since: float | None = None

    def run(self, running: bool) -> None:
        now = self._tick()
        if self._since is not None:
            self._before += now - self._since
        self._since = now if running else None

    def read(self) -> float:
        """Active seconds of the session so far, over all its incarnations."""
        return self._before + (self._tick() - self._since if self._since is not None else 0.0)

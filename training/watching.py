"""The observer of trials and evaluations: commands are taken, progress moves, a few moments are kept."""

from __future__ import annotations

from rlgpt.training.live import Live
from rlgpt.training.observer import Moment, Observer, Signal

FRAMES = 400
"""Moments kept of one trial or evaluation."""


class StepObserver(Observer):
    """What is kept depends on env steps alone, so that the same session keeps the same."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._ticks = 0
        self.moments: list[Moment] = []

    def poll(self) -> Signal:
        self._ticks += 1
        if self._ticks % 16 == 0:
            self._live.progress.steps(16)
        self._live.poll()
        return "go"

    def wants_frame(self) -> bool:
        return len(self.moments) < FRAMES

    def on_frame(self, moment: Moment) -> None:
        self.moments.append(moment)

"""The observer of trials and evaluations: commands are taken, progress moves, a few moments are kept."""

from __future__ import annotations

from rlgpt.training.options.observer import FrameSnapshot, Observer, Signal
from rlgpt.training.session.runtime import SessionRuntime

FRAMES = 400
"""Moments kept of one trial or evaluation."""


class StepObserver(Observer):
    """What is kept depends on env steps alone, so that the same session keeps the same."""

    def __init__(self, runtime: SessionRuntime) -> None:
        self._runtime = runtime
        self._ticks = 0
        self.moments: list[FrameSnapshot] = []

    def poll(self) -> Signal:
        self._ticks += 1
        if self._ticks % 16 == 0:
            self._runtime.progress.steps(16)
        self._runtime.poll()
        return "go"

    def wants_frame(self) -> bool:
        return len(self.moments) < FRAMES

    def on_frame(self, moment: FrameSnapshot) -> None:
        self.moments.append(moment)

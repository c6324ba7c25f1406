"""The observer of trials and evaluations: commands are taken, progress moves, some episodes are filmed."""

from __future__ import annotations

from rlgpt.training.options.observer import Observer, Signal
from rlgpt.training.session.runtime import SessionRuntime


class StepObserver(Observer):
    def __init__(self, runtime: SessionRuntime, films: bool = True) -> None:
        self._runtime, self.films = runtime, films
        self._ticks = 0

    def poll(self) -> Signal:
        self._ticks += 1
        if self._ticks % 16 == 0:
            self._runtime.progress.steps(16)
        self._runtime.poll()
        return "go"

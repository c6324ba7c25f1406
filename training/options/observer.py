"""How training, evaluation and trials report to their caller and hear from it."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rlgpt.training.options.film import FrameSnapshot
    from rlgpt.training.options.lane import EpisodeResult

Signal = Literal["go", "stop", "supersede", "pause"]
NEVER = sys.maxsize
PAUSE_POLL = 0.1
"""Seconds between two looks while paused."""


@dataclass(frozen=True)
class Start:
    """What was decided before a training began, as the training_run row wants it."""

    slots: list[dict[str, Any]]
    """[{slot, name, source_hash, arguments, prior, similar}]; prior is None for slots kept from the warm start."""
    warm: bool
    """Whether the parameters came from the given policy: observation and network are equal."""
    device: str
    explanation: str
    kernel: str
    """How updates are computed."""


class Observer:
    """Hears nothing and never interrupts; subclass what you need. Called from the thread that trains."""

    clock: int = 0
    """Where a training stands, by its env steps and, in an update, its minibatches: the same in a repetition."""
    films: bool = False
    """Whether some episodes are to be kept frame by frame."""
    wake: int = NEVER
    """The `clock` at which a training must `poll`, however little time has gone by."""

    def on_start(self, start: Start) -> None:
        """Once, before the first env step of a training."""

    def poll(self) -> Signal:
        """Asked at every tick of evaluations and trials, about 50 times a second in training, its updates
        included; must return at once. `pause` is asked again until it is over. `stop` and `supersede` end a training
        where it stands; to go on later as if it had not been left, raise, and resume from its last checkpoint."""
        return "go"

    def on_film(self, result: EpisodeResult, moments: list[FrameSnapshot]) -> None:
        """A training episode that was filmed has ended."""

    def on_update(self, metrics: dict[str, Any]) -> None:
        """After each update: the columns of the metric row but `run`."""

    def on_checkpoint(self, blob: bytes, update: int, env_steps: int, kind: str) -> None:
        """`kind`: rollout | boundary."""


def obey(observer: Observer) -> Signal:
    """The observer's signal, after waiting for the end of a pause."""
    signal = observer.poll()
    while signal == "pause":
        time.sleep(PAUSE_POLL)
        signal = observer.poll()
    return signal

"""Worlds of the tests that say that they are slow, by names that the registry of another process finds too."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from rlgpt.training.worlds.crafter.env import CrafterEnv
from rlgpt.training.worlds.crafter.world import CrafterWorld
from rlgpt.training.worlds.protocol import NativeAction, StepResult
from tests.worlds.corridor import CorridorEnv, CorridorWorld

CRAFTER, CORRIDOR, FORGETFUL, FAULTY = (
    f"{__name__}:{name}" for name in ("SlowCrafter", "SlowCorridor", "ForgetfulCorridor", "FaultyCorridor")
)


class SlowCrafter(CrafterWorld):
    slow, reset_steps = True, 4


class SleepingCrafter(SlowCrafter):
    """Its steps take SLEEPING_STEP seconds, as those of a game that is waited for."""

    def make(self, task: str, *, features: Sequence[str] | None = None, pixels: bool = False) -> CrafterEnv:
        env = super().make(task, features=features, pixels=pixels)
        play, seconds = env.step, float(os.environ["SLEEPING_STEP"])

        def step(command: NativeAction) -> StepResult:
            until = time.perf_counter() + seconds
            result = play(command)
            time.sleep(max(0.0, until - time.perf_counter()))
            return result

        env.step = step  # type: ignore[method-assign]
        return env


class SlowCorridor(CorridorWorld):
    slow, reset_steps = True, 4


class ForgetfulEnv(CorridorEnv):
    """What it shows depends on the process: an episode cannot be repeated in another one."""

    def novelty(self) -> int:
        return super().novelty() + os.getpid()


class ForgetfulCorridor(CorridorWorld):
    slow = True

    def make(self, task: str, *, features: Sequence[str] | None = None, pixels: bool = False) -> ForgetfulEnv:
        return ForgetfulEnv(self, self.tasks[task], features or self.default_features)


class FaultyEnv(CorridorEnv):
    """Whoever does the third step of an episode loses the game."""

    def step(self, command: NativeAction) -> StepResult:
        if self.steps == 2:
            raise ConnectionError("the game closed its connection")
        return super().step(command)


class FaultyCorridor(CorridorWorld):
    slow = True

    def make(self, task: str, *, features: Sequence[str] | None = None, pixels: bool = False) -> FaultyEnv:
        return FaultyEnv(self, self.tasks[task], features or self.default_features)

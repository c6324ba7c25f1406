"""One running Crafter on one task: the `protocol.Env` over a `Simulation`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.worlds.crafter import layout, names, senses
from rlgpt.training.worlds.crafter.ahead import WorldsAhead
from rlgpt.training.worlds.crafter.features import columns
from rlgpt.training.worlds.crafter.frame import pack_frame, window_codes
from rlgpt.training.worlds.crafter.random_stream import seed_stream
from rlgpt.training.worlds.crafter.render import Painter
from rlgpt.training.worlds.crafter.simulation import Simulation
from rlgpt.training.worlds.crafter.survey import survey
from rlgpt.training.worlds.crafter.tasks import NIGHT_OVER, SURVIVED, goal_index
from rlgpt.training.worlds.optional_parts import Ending
from rlgpt.training.worlds.protocol import NativeAction, StepResult, Task

_CODES: dict[str, tuple[int, ...]] = {name: (code,) for code, name in enumerate(names.CATEGORIES) if code} | {
    "arrow": tuple(code for code, name in enumerate(names.CATEGORIES) if name.startswith("arrow_"))
}
_DISTANCES = [
    abs(cell % names.WIDTH - names.REACH_X) + abs(cell // names.WIDTH - names.REACH_Y)
    for cell in range(names.WIDTH * names.HEIGHT)
]
_SORTED_DISTANCES = sorted(_DISTANCES)
_sort_by_distance = itemgetter(*sorted(range(len(_DISTANCES)), key=_DISTANCES.__getitem__))


@lru_cache(256)
def _decode_milestones(achieved: bytes, survived: bool) -> frozenset[str]:
    bits = int.from_bytes(achieved, "little")
    milestones = frozenset(name for bit, name in enumerate(names.ACHIEVEMENTS) if bits >> bit & 1)
    return milestones | {SURVIVED} if survived else milestones


class CrafterEnv:
    """See `protocol.Env`. An episode with a seed is the first episode of stock `crafter.Env(seed=seed)`."""

    def __init__(self, task: Task, features: Sequence[str], pixels: bool, ahead: WorldsAhead | None = None) -> None:
        self.task = task
        self.steps = 0
        self._goal = goal_index(task)
        self._columns = columns(features)
        self._simulation = Simulation()
        self._ahead = ahead
        self._features = np.zeros(senses.FEATURES_SIZE, np.float32)
        self._painter = Painter(self._simulation) if pixels else None
        self.reset(0)

    def reset(self, seed: int) -> None:
        self.steps = 0
        self._simulation.reset(seed, self.task.horizon, self._goal, self._ahead)

    def step(self, command: NativeAction) -> StepResult:
        self.steps += 1
        reward, over = self._simulation.step(command[0])
        return StepResult(reward, over, False)

    def succeeded(self) -> bool:
        if self.task.kind == "survive":
            return self.steps >= self.task.horizon and self._alive()
        return self._goal >= 0 and bool(self._simulation.state[layout.ACHIEVED_TIMES + self._goal])

    def _alive(self) -> bool:
        return bool(self._simulation.state[layout.ITEM])

    def ending(self) -> Ending:
        """See `optional_parts.TellsEnding`."""
        state = self._simulation.state
        vitals = {name: float(state[layout.ITEM + place]) for place, name in enumerate(names.VITALS)}
        daylight = round(float(self._simulation.senses[names.AT_DAYLIGHT]) / 255, 2)
        cause = "" if self._alive() else names.HARMS[int(state[layout.HURT_BY])]
        return Ending(cause, vitals | {"daylight": daylight})

    def survey(self) -> str:
        """See `optional_parts.Surveys`."""
        return survey(self._simulation.material, self._simulation.memory)

    def milestones(self) -> frozenset[str]:
        bits = self._simulation.senses[names.AT_ACHIEVED : names.AT_ACHIEVED + 3].tobytes()
        return _decode_milestones(bits, self.steps >= NIGHT_OVER and self._alive())

    def observe(self) -> NDArray[np.float32]:
        simulation = self._simulation
        senses.describe(simulation.state, simulation.memory, simulation.senses, self._features)
        return self._features if self._columns is None else self._features[self._columns]

    def pixels(self) -> NDArray[np.uint8]:
        if self._painter is None:
            raise ValueError("This env was made without pixels; make it with pixels=True.")
        return self._painter.paint()

    def action_masks(self) -> NDArray[np.bool_]:
        return self._simulation.senses[senses.AT_MASK :].view(np.bool_)

    def view(self, whole: bool) -> bytes:
        packed = self._simulation.senses[: names.SENSES].tobytes()
        return b"\1" + packed[1:] + self._simulation.planes.tobytes() if whole else packed

    def interrupt(self) -> bool:
        return bool(self._simulation.state[layout.INTERRUPT])

    def waiting(self) -> bool:
        """Asleep, or within two cells of a growing plant."""
        return bool(self._simulation.senses[names.AT_WAITING])

    def progress_key(self) -> int:
        return int(senses.progress_key(self._simulation.state, self._simulation.senses))

    def novelty(self) -> int:
        return int(self._simulation.state[layout.NOVELTY])

    def distance(self, target: str) -> float | None:
        """L1 distance in cells within the 9x7 window."""
        window = window_codes(self._simulation.senses[: names.SENSES].tobytes())
        if not any(code in window for code in _CODES[target]):
            return None
        closest_first = _sort_by_distance(window)
        return float(min(_SORTED_DISTANCES[closest_first.index(code)] for code in _CODES[target] if code in window))

    def frame(self) -> bytes:
        return pack_frame(self._simulation.senses[: names.SENSES].tobytes())

    def save(self) -> bytes:
        return self._simulation.save()

    def restore(self, state: bytes) -> None:
        """Restore the world. The horizon and the goal stay those of this env's own task."""
        self._simulation.restore(state)
        self._simulation.state[layout.HORIZON] = self.task.horizon
        self._simulation.state[layout.GOAL] = self._goal
        self.steps = int(self._simulation.state[layout.STEP])

    def reseed(self, seed: int) -> None:
        seed_stream(self._simulation.state, seed)

    def close(self) -> None:
        """Nothing to release."""

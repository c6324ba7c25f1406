"""One running Crafter on one task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.worlds.crafter import layout, names, senses
from rlgpt.training.worlds.crafter.features import columns
from rlgpt.training.worlds.crafter.frame import pack_frame
from rlgpt.training.worlds.crafter.render import Painter
from rlgpt.training.worlds.crafter.simulation import Simulation
from rlgpt.training.worlds.crafter.tasks import NIGHT_OVER, SURVIVED, goal_index
from rlgpt.training.worlds.protocol import Command, StepResult, Task

TARGETS = (*names.MATERIALS[1:], "cow", "zombie", "skeleton", "arrow", "sapling", "ripe_plant")
_CODES: dict[str, tuple[int, ...]] = {name: (code,) for code, name in enumerate(names.CATEGORIES) if code} | {
    "arrow": tuple(code for code, name in enumerate(names.CATEGORIES) if name.startswith("arrow_"))
}
_OFFSETS = [
    abs(cell % names.WIDTH - names.REACH_X) + abs(cell // names.WIDTH - names.REACH_Y)
    for cell in range(names.WIDTH * names.HEIGHT)
]


class CrafterEnv:
    """See `protocol.Env`. `seed` starts the same world as stock `crafter.Env(seed=seed)` does first."""

    def __init__(self, task: Task, features: Sequence[str], pixels: bool) -> None:
        self.task = task
        self.steps = 0
        self._goal = goal_index(task)
        self._columns = columns(features)
        self._simulation = Simulation()
        self._features = np.zeros(senses.FEATURES_SIZE, np.float32)
        self._painter = Painter(self._simulation) if pixels else None
        self.reset(0)

    def reset(self, seed: int) -> None:
        self.steps = 0
        self._simulation.reset(seed, self.task.horizon, self._goal)
        if self._painter is not None:
            self._painter.reset(seed)

    def step(self, command: Command) -> StepResult:
        self.steps += 1
        reward, over = self._simulation.step(command[0])
        return StepResult(reward, over, False)

    def succeeded(self) -> bool:
        if self.task.kind == "survive":
            return self.steps >= self.task.horizon and self._alive()
        return self._goal >= 0 and bool(self._simulation.state[layout.DONE_TIMES + self._goal])

    def _alive(self) -> bool:
        return bool(self._simulation.state[layout.ITEM])

    def milestones(self) -> frozenset[str]:
        done = self._simulation.state[layout.DONE_TIMES : layout.DONE_TIMES + 22].tolist()
        reached = [name for name, times in zip(names.ACHIEVEMENTS, done, strict=True) if times]
        if self.steps >= NIGHT_OVER and self._alive():
            reached.append(SURVIVED)
        return frozenset(reached)

    def observe(self) -> NDArray[np.float32]:
        simulation = self._simulation
        senses.describe(simulation.state, simulation.memory, simulation.senses, self._features)
        return self._features if self._columns is None else self._features[self._columns]

    def pixels(self) -> NDArray[np.uint8]:
        if self._painter is None:
            raise ValueError("This env was made without pixels; make it with pixels=True.")
        return self._painter.paint()

    def mask(self) -> NDArray[np.bool_]:
        return self._simulation.senses[senses.AT_MASK :].view(np.bool_)

    def view(self, whole: bool) -> bytes:
        packed = self._simulation.senses[: names.SENSES].tobytes()
        return b"\1" + packed[1:] + self._simulation.planes.tobytes() if whole else packed

    def alarm(self) -> bool:
        return bool(self._simulation.state[layout.ALARM])

    def waiting(self) -> bool:
        """Asleep, or within two cells of a growing plant."""
        return bool(self._simulation.senses[names.AT_WAITING])

    def progress_key(self) -> int:
        return int(senses.key(self._simulation.state, self._simulation.senses))

    def novelty(self) -> int:
        return int(self._simulation.state[layout.NOVELTY])

    def distance(self, target: str) -> float | None:
        """L1 distance in cells within the 9x7 window."""
        window = self._simulation.senses[names.AT_MATERIALS : names.AT_BITS].tolist()
        materials, objects = window[: senses.CELLS], window[senses.CELLS :]
        codes = _CODES[target]
        first_object = len(names.MATERIALS) - 1
        seen = [
            far
            for far, material, thing in zip(_OFFSETS, materials, objects, strict=True)
            if (first_object + thing if thing else material) in codes
        ]
        return float(min(seen)) if seen else None

    def frame(self) -> bytes:
        return pack_frame(self._simulation.senses[: names.SENSES].tobytes())

    def save(self) -> bytes:
        return self._simulation.save()

    def restore(self, state: bytes) -> None:
        """Continues under this env's own task: its horizon and goal hold."""
        self._simulation.restore(state)
        self._simulation.state[layout.HORIZON] = self.task.horizon
        self._simulation.state[layout.GOAL] = self._goal
        self.steps = int(self._simulation.state[layout.STEP])

    def close(self) -> None:
        """Nothing is held."""

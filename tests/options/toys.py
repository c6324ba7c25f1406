"""Corridors with one thing changed, and small makers for configurations and coded actions."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgpt.agents.contracts import Hyperparameters, RewardTerm, RlConfigReply
from rlgpt.training.options.slots import CodedAction
from rlgpt.training.worlds.protocol import NativeAction, StepResult
from tests.options.fake_host import FakeHost
from tests.worlds.corridor import CorridorEnv, CorridorWorld

WALK = 'def walk(view):\n    for _ in range(3):\n        view = yield "right"\n'
BACK = 'def back(view):\n    while view.position:\n        view = yield "left"\n'
USE = 'def use_it(view):\n    if view.cell != "floor":\n        view = yield "use"\n'
NOTHING = "def nothing(view):\n    return\n    yield\n"
FAILS = 'def fails(view):\n    raise ZeroDivisionError("no")\n    yield\n'
LATE = 'def late(view):\n    view = yield "right"\n    raise ZeroDivisionError("no")\n'
NONSENSE = 'def nonsense(view):\n    yield "fly"\n'
GET_KEY = 'def get_key(view):\n    while view.cell != "key":\n        view = yield "right"\n    yield "use"\n'
OPEN_DOOR = 'def open_door(view):\n    while view.cell != "door":\n        view = yield "right"\n    yield "use"\n'
FOREVER = 'def forever(view):\n    while True:\n        yield "right"\n'


class ChangedEnv(CorridorEnv):
    """A corridor whose world can bend what a step returns and what is observed."""

    def step(self, command: NativeAction) -> StepResult:
        result = super().step(command)
        change = self._world.bend  # type: ignore[attr-defined]
        return change(self, command, result) if change else result

    def observe(self) -> NDArray[np.float32]:
        seen = super().observe()
        return seen[:-1] if self.steps >= self._world.shrink_at else seen  # type: ignore[attr-defined,no-any-return]


class ChangedWorld(CorridorWorld):
    """`bend(env, command, result)` replaces each step's result; the observation shrinks from `shrink_at` on."""

    def __init__(
        self,
        bend: Callable[[Any, NativeAction, StepResult], StepResult] | None = None,
        shrink_at: int = 1 << 30,
        two_heads: bool = False,
    ) -> None:
        super().__init__(two_heads)
        self.bend, self.shrink_at = bend, shrink_at

    def make(self, task: str, *, features: Sequence[str] | None = None, pixels: bool = False) -> ChangedEnv:
        return ChangedEnv(self, self.tasks[task], features or self.default_features)


def code(source: str, **more: Any) -> CodedAction:
    return CodedAction(source.split("(")[0].removeprefix("def "), source, **more)


def host_of(world: CorridorWorld) -> FakeHost:
    return FakeHost(world.host_module)


def term(name: str, weight: float = 1.0, argument: str = "") -> RewardTerm:
    return RewardTerm(term=name, weight=weight, argument=argument)  # type: ignore[arg-type]


def configuration(**changes: Any) -> RlConfigReply:
    hyper = {"n_envs": 2, "n_steps": 64, "batch_size": 64, "n_epochs": 2} | changes.pop("hyper", {})
    fields: dict[str, Any] = {
        "target": "",
        "observation": ["position", "cell", "flags"],
        "reward": [term("task")],
        "primitives": ["left", "right", "use"],
        "options": [],
        "horizon": 60,
        "env_steps": 256,
        "hyperparameters": Hyperparameters(**hyper),
    }
    return RlConfigReply(**fields | changes)


def packed_view(position: int, key: int = 0) -> bytes:
    return struct.pack("<6Bh", position, key, 0, 0, 0, 8, 60)

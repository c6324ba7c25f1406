"""A toy world for tests: a corridor with a key, a locked door behind it and a coin at the end.

`make_world()` has one head (left, right, use); `make_two_heads()` has heads (stay / left / right) and
(nothing / use). Where the key and the door lie depends on the seed. Standing on the key or the closed
door, `use` takes or opens it; the coin is taken by `use` at the end. Reward: +1 per milestone.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.worlds.protocol import Feature, NativeAction, Primitive, Script, StepResult, Task, UnknownTask

LENGTH = 8
MILESTONES = ("take_key", "open_door", "take_coin")
_STATE = struct.Struct("<4s7h")


def _task(goal: str, horizon: int, kind: str = "goal") -> Task:
    chain = MILESTONES[: MILESTONES.index(goal) + 1]
    return Task(goal, f"{goal.replace('_', ' ').capitalize()}.", horizon, chain, kind)


TASKS = {
    "take_key": _task("take_key", 20),
    "open_door": _task("open_door", 40),
    "take_coin": Task(
        "take_coin", "Take the coin behind the door.", 60, MILESTONES, long_horizon=True,
        sub_tasks=MILESTONES,
    ),
    "score": Task("score", "Reach as many milestones as you can.", 60, MILESTONES, "score"),
    "survive": Task("survive", "Be there at the end.", 10, (), "survive"),
}  # fmt: skip
FEATURES = {
    "position": Feature("position", 1, "cell / (length - 1)"),
    "cell": Feature("cell", 1, "floor, key, door, coin", 0, 3, categories=4),
    "flags": Feature("flags", 2, "key held, door open"),
    "time_left": Feature("time_left", 1, "share of the horizon left"),
    "milestones": Feature("milestones", 3, "reached in this episode"),
}


class CorridorEnv:
    def __init__(self, world: CorridorWorld, task: Task, features: Sequence[str]) -> None:
        self.task, self.steps, self._world, self._features = task, 0, world, tuple(features)
        self.reset(0)

    def reset(self, seed: int) -> None:
        draw = random.Random(seed)
        self._key_at, self._door_at = draw.choice((1, 2, 3)), draw.choice((4, 5))
        self.steps = self._position = self._flags = self._best = self._interrupt = 0

    def step(self, command: NativeAction) -> StepResult:
        move, use = self._world.decode(command)
        self.steps += 1
        before, self._interrupt = self._flags, 0
        target = min(max(self._position + move, 0), LENGTH - 1)
        if target <= self._door_at or self._flags & 2:
            self._position = target
        else:
            self._interrupt = 1
        if use:
            cell = self._cell()
            if cell == 1 or (cell == 2 and self._flags & 1) or (cell == 3 and self._flags & 2):
                self._flags |= 1 << cell - 1
        self._best = max(self._best, self._position)
        done = self.steps >= self.task.horizon or (self.task.kind == "goal" and self.succeeded())
        return StepResult(float((self._flags ^ before).bit_count()), done, False)

    def _cell(self) -> int:
        if self._position == self._key_at and not self._flags & 1:
            return 1
        if self._position == self._door_at and not self._flags & 2:
            return 2
        return 3 if self._position == LENGTH - 1 and not self._flags & 4 else 0

    def succeeded(self) -> bool:
        if self.task.kind == "survive":
            return self.steps >= self.task.horizon
        return self.task.kind == "goal" and self.task.milestones[-1] in self.milestones()

    def milestones(self) -> frozenset[str]:
        return frozenset(name for bit, name in enumerate(MILESTONES) if self._flags >> bit & 1)

    def observe(self) -> NDArray[np.float32]:
        parts = {
            "position": [self._position / (LENGTH - 1)],
            "cell": [self._cell()],
            "flags": [self._flags & 1, self._flags >> 1 & 1],
            "time_left": [1 - self.steps / self.task.horizon],
            "milestones": [self._flags >> bit & 1 for bit in range(3)],
        }
        return np.array([x for name in self._features for x in parts[name]], np.float32)

    def pixels(self) -> NDArray[np.uint8]:
        picture = np.zeros((5 * LENGTH, 5 * LENGTH, 3), np.uint8)
        picture[:, 5 * self._position : 5 * self._position + 5] = 255
        return picture

    def action_masks(self) -> NDArray[np.bool_]:
        return self._world.legal(self._position > 0, self._cell() > 0)

    def view(self, whole: bool) -> bytes:
        flags = [self._flags >> bit & 1 for bit in range(3)]
        return struct.pack("<6Bh", self._position, *flags, self._cell(), LENGTH, self.task.horizon - self.steps)

    def interrupt(self) -> bool:
        return bool(self._interrupt)

    def waiting(self) -> bool:
        return False

    def progress_key(self) -> int:
        return self._position << 3 | self._flags

    def novelty(self) -> int:
        return self._best + self._flags.bit_count()

    def distance(self, target: str) -> float | None:
        spots = {"key": (self._key_at, 1), "door": (self._door_at, 2), "coin": (LENGTH - 1, 4)}
        at, flag = spots[target]
        return None if self._flags & flag else float(abs(at - self._position))

    def frame(self) -> bytes:
        line = ["."] * LENGTH
        line[self._position] = "@"
        return "".join(line).encode()

    def save(self) -> bytes:
        return _STATE.pack(
            b"corr", self.steps, self._position, self._flags, self._best, self._interrupt, self._key_at, self._door_at
        )

    def restore(self, state: bytes) -> None:
        if len(state) != _STATE.size or state[:4] != b"corr":
            raise ValueError("These bytes are not a saved corridor.")
        (_, self.steps, self._position, self._flags, self._best, self._interrupt,
         self._key_at, self._door_at) = _STATE.unpack(state)  # fmt: skip

    def close(self) -> None:
        pass


class CorridorWorld:
    name = "corridor"
    version = "1"
    tasks = TASKS
    features = FEATURES
    default_features = ("position", "cell", "flags", "time_left")
    targets = ("key", "door", "coin")
    frame_format = "text"
    frame_module = ""
    restorable = True
    pixel_shape = (5 * LENGTH, 5 * LENGTH, 3)

    def __init__(self, two_heads: bool = False) -> None:
        self.action_nvec = (3, 2) if two_heads else (3,)
        self.native_action_size = len(self.action_nvec)
        names = ("stay", "left", "right") if two_heads else ("left", "right", "use")
        docs = {"stay": "Do not move.", "left": "One cell left.", "right": "One cell right, if no closed "
                "door is in the way.", "use": "Take or open what lies here."}  # fmt: skip
        self.primitives = tuple(Primitive(name, docs[name]) for name in names)
        self.host_module = f"tests.worlds.corridor{'_two_heads' if two_heads else ''}_host"

    def score(self, rates: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean share of the milestones."""
        return np.asarray(rates.mean(axis=-1))

    def decode(self, command: NativeAction) -> tuple[int, bool]:
        """Move in {-1, 0, 1} and whether `use` is pressed."""
        if len(self.action_nvec) == 2:
            return (0, -1, 1)[command[0]], bool(command[1])
        return (-1, 1, 0)[command[0]], command[0] == 2

    def legal(self, left: bool, use: bool) -> NDArray[np.bool_]:
        if len(self.action_nvec) == 2:
            return np.array([True, left, True, True, True])
        return np.array([left, True, use or not left])

    def native_action(self, action: Sequence[int]) -> NativeAction:
        return tuple(int(index) for index in action)

    def make(self, task: str, *, features: Sequence[str] | None = None, pixels: bool = False) -> CorridorEnv:
        if task not in TASKS:
            raise UnknownTask(f"There is no task {task!r} in the corridor; it has {', '.join(TASKS)}.")
        return CorridorEnv(self, TASKS[task], features or self.default_features)

    def sheet(self, task: str) -> dict[str, Any]:
        return {
            "items": [{"name": "key", "doc": "opens the door"}, {"name": "coin", "doc": "the prize"}],
            "recipes": [{"name": "open_door", "needs": {"key": 1}}],
            "primitives": [{"name": p.name, "doc": p.doc} for p in self.primitives],
            "view_doc": "position, key, opened, coin, cell (floor, key, door, coin), length, steps_left",
            "library_doc": "ahead(view): cells to the end of the corridor",
            "dangers": [],
            "milestones": list(TASKS[task].milestones) if task in TASKS else [],
            "scripts": [],
            "limits": {"horizon": TASKS[task].horizon if task in TASKS else 0},
        }

    def scripts(self, task: str) -> tuple[Script, ...]:
        return ()


def make_world() -> CorridorWorld:
    return CorridorWorld()


def make_two_heads() -> CorridorWorld:
    return CorridorWorld(two_heads=True)


def _walk_and_use(name: str, cell: str) -> str:
    return f'def {name}(view):\n    while view.cell != "{cell}":\n        view = yield "right"\n    yield "use"\n'


SCRIPTS = (
    Script(
        "get_key", "Take the key.", "view.key", (_walk_and_use("get_key", "key"),), gives=("take_key",)
    ),
    Script(
        "unlock", "Open the door.", "view.opened", (_walk_and_use("unlock", "door"),), ("get_key",), ("open_door",)
    ),
)  # fmt: skip


class ScriptedCorridor(CorridorWorld):
    """With a script book: a chain of two up to the open door."""

    def scripts(self, task: str) -> tuple[Script, ...]:
        return SCRIPTS

    def sheet(self, task: str) -> dict[str, Any]:
        return super().sheet(task) | {"recipes": [], "scripts": [asdict(script) for script in SCRIPTS]}


def make_scripted() -> ScriptedCorridor:
    return ScriptedCorridor()

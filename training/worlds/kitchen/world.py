"""The Kitchen world: the immutable description that the rest of `training` sees."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

from rlgpt.training.worlds.kitchen import frame, names
from rlgpt.training.worlds.kitchen.env import KitchenEnv
from rlgpt.training.worlds.kitchen.features import DEFAULT, FEATURES
from rlgpt.training.worlds.kitchen.model import check_versions
from rlgpt.training.worlds.kitchen.scripts import scripts_for
from rlgpt.training.worlds.kitchen.sheet import PRIMITIVES, sheet
from rlgpt.training.worlds.kitchen.tasks import TASKS
from rlgpt.training.worlds.protocol import Feature, NativeAction, Primitive, Script, Task, UnknownTask
from rlgpt.training.worlds.script_book import entries, first_tries

SWITCH_INTERVAL = 1e-4
"""Seconds, for `sys.setswitchinterval`; see `_pool`."""
TARGETS = (*names.NAMES, *(f"{name}_handle" for name in names.NAMES))


class KitchenWorld:
    """See `protocol.World`."""

    name = "kitchen"
    version = "1.4.2+1"
    tasks: Mapping[str, Task] = TASKS
    action_nvec = names.HEADS
    primitives: tuple[Primitive, ...] = PRIMITIVES
    features: Mapping[str, Feature] = FEATURES
    default_features = DEFAULT
    targets = TARGETS
    native_action_size = names.NATIVE_ACTION_SIZE
    host_module = "rlgpt.training.worlds.kitchen.host_side"
    frame_format = frame.FORMAT
    frame_module = "rlgpt.training.worlds.kitchen.frame"
    restorable = True
    pixel_shape = None

    @cached_property
    def _pool(self) -> ThreadPoolExecutor | None:
        """Threads that simulate, as many as there are processors for this process; None where there is only one."""
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if threads == 1:
            return None
        # A thread that returns from `mj_step` waits for the interpreter lock for up to this interval. The default of 5
        # ms is as long as four env steps: with it two processors gave 1.3 to 1.6 times the env steps of one, now 1.5 to
        # 1.9.
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL))
        return ThreadPoolExecutor(threads, "kitchen")

    def native_action(self, action: Sequence[int]) -> NativeAction:
        dx, dy, dz, roll, fingers = action
        moves = names.MOVES
        return moves[dx], moves[dy], moves[dz], names.ROLLS[roll], names.FINGER_COMMANDS[fingers]

    def make(self, task: str, *, features: Sequence[str] | None = None, pixels: bool = False) -> KitchenEnv:
        return KitchenEnv(self._task(task), features or self.default_features, self._pool)

    def sheet(self, task: str) -> dict[str, Any]:
        return sheet(self._task(task))

    def scripts(self, task: str) -> tuple[Script, ...]:
        return scripts_for(self._task(task))

    def _task(self, task: str) -> Task:
        try:
            return TASKS[task]
        except KeyError:
            raise UnknownTask(f"The kitchen has no task {task!r}; its tasks are {', '.join(TASKS)}.") from None


def make_world() -> KitchenWorld:
    """The world. Raises ImportError (a sentence) where the extra is missing or has other versions than were
    measured."""
    check_versions()
    return KitchenWorld()


class FirstTryWorld(KitchenWorld):
    """The same kitchen with the first version of each script and no repairs."""

    def scripts(self, task: str) -> tuple[Script, ...]:
        return first_tries(super().scripts(task))

    def sheet(self, task: str) -> dict[str, Any]:
        return {**super().sheet(task), "scripts": entries(self.scripts(task))}


def make_first_try() -> FirstTryWorld:
    """For `--world rlgpt.training.worlds.kitchen.world:make_first_try`. Raises ImportError (a sentence)."""
    check_versions()
    return FirstTryWorld()

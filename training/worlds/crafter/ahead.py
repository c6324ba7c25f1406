"""New worlds. Making one takes as long as many env steps (1.6 to 2.0 ms), so a thread makes them in advance."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from rlgpt.training.worlds.crafter import layout, terrain
from rlgpt.training.worlds.crafter.compiled import COMPILED
from rlgpt.training.worlds.crafter.layout import Array
from rlgpt.training.worlds.crafter.noise import make_layers

MAX_WORLDS = 64
"""Worlds kept at most for episodes that have not begun; beyond it the oldest is dropped."""


class NewWorld(NamedTuple):
    """Arrays as in `layout`; of `objects` the rows in use."""

    state: Array
    material: Array
    occupant: Array
    objects: Array


def new_world(seed: int) -> NewWorld:
    """The first episode of stock `crafter.Env(seed=seed)`: the map, its creatures, and the random stream after both."""
    state = np.zeros(layout.STATE_SIZE, np.int64)
    terrain.seed_stream(state, hash((seed, 1)) % (2**31 - 1))  # as stock seeds its first episode
    layers = make_layers(terrain.draw_noise(state))
    material = np.zeros((layout.AREA, layout.AREA), np.uint8)
    occupant = np.zeros((layout.AREA, layout.AREA), np.int16)
    objects = np.zeros((layout.CAPACITY, layout.FIELDS), np.int32)
    terrain.generate(state, material, occupant, objects, layers, terrain.start_area(layers))
    return NewWorld(state, material, occupant, objects[: state[layout.ROWS]].copy())


def _lower_priority() -> None:
    """Lowest priority for this thread, so that it uses only time that the worker and the action host leave free."""
    if sys.platform == "linux":  # elsewhere a priority belongs to the whole process
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)


class WorldsAhead:
    """Worlds by seed, made on a thread. A world depends on its seed alone, so it is the same wherever it was made."""

    def __init__(self) -> None:
        self._worlds: dict[int, Future[NewWorld]] = {}
        """Seed -> world, finished or not."""
        self._thread: ThreadPoolExecutor | None = None

    def expect(self, seeds: Sequence[int]) -> None:
        """Make the worlds of episodes that will begin. Does nothing without compiled rules: the thread would then hold
        Python's global lock."""
        if not COMPILED:
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "new worlds", _lower_priority)
        for seed in seeds:
            if seed not in self._worlds:
                self._worlds[seed] = self._thread.submit(new_world, seed)
        while len(self._worlds) > MAX_WORLDS:
            self._worlds.pop(next(iter(self._worlds))).cancel()

    def take(self, seed: int) -> NewWorld:
        """The world of a seed, made now unless it is finished. A world that the thread still makes is not waited for,
        because on a busy machine the thread gets little time."""
        future = self._worlds.pop(seed, None)
        if future is not None and not future.cancel() and future.done():
            return future.result()
        return new_world(seed)

"""New worlds. Making one takes as long as fifty env steps, so the next episodes' are made on a thread meanwhile."""

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

MOST = 64
"""Worlds kept for episodes that have not begun."""


class NewWorld(NamedTuple):
    """Arrays as in `layout`; of `objects` the rows in use."""

    state: Array
    material: Array
    occupant: Array
    objects: Array


def new_world(seed: int) -> NewWorld:
    """The first episode of stock `crafter.Env(seed=seed)`: the map, its creatures and the random numbers to come."""
    state = np.zeros(layout.STATE_SIZE, np.int64)
    terrain.seed_stream(state, hash((seed, 1)) % (2**31 - 1))  # as stock seeds its first episode
    perm, grad = terrain.noise_tables(terrain.draw_noise(state))
    logits = np.empty((layout.AREA, layout.AREA))
    terrain.start_logits(perm, grad, logits)
    start = 1 / (1 + np.exp(-logits))
    material = np.zeros((layout.AREA, layout.AREA), np.uint8)
    occupant = np.zeros((layout.AREA, layout.AREA), np.int16)
    objects = np.zeros((layout.CAPACITY, layout.FIELDS), np.int32)
    terrain.generate(state, material, occupant, objects, perm, grad, start)
    return NewWorld(state, material, occupant, objects[: state[layout.ROWS]].copy())


def _step_back() -> None:
    """What is played now goes first: this thread takes what the worker and the action host leave free."""
    if sys.platform == "linux":  # elsewhere a priority belongs to the whole process
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)


class Ahead:
    """Worlds by seed. A world depends on its seed alone, so that nobody can tell where it was made."""

    def __init__(self) -> None:
        self._coming: dict[int, Future[NewWorld]] = {}
        self._thread: ThreadPoolExecutor | None = None

    def expect(self, seeds: Sequence[int]) -> None:
        """Make the worlds of episodes that will begin. Without compiled rules a thread would only be in the way."""
        if not COMPILED:
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "new worlds", _step_back)
        for seed in seeds:
            if seed not in self._coming:
                self._coming[seed] = self._thread.submit(new_world, seed)
        while len(self._coming) > MOST:
            self._coming.pop(next(iter(self._coming))).cancel()

    def take(self, seed: int) -> NewWorld:
        """Does not wait for a world that is being made: on a busy machine the thread hardly gets on."""
        coming = self._coming.pop(seed, None)
        if coming is not None and not coming.cancel() and coming.done():
            return coming.result()
        return new_world(seed)

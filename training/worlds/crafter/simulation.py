"""One running Crafter world: its arrays, reset, step, exact save and restore."""

from __future__ import annotations

import math
import struct
from functools import cache

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.worlds.crafter import layout, names, senses
from rlgpt.training.worlds.crafter.ahead import WorldsAhead, new_world
from rlgpt.training.worlds.crafter.layout import FIELDS, RANDOM_AT, RANDOM_SIZE, STATE_SIZE

_MAGIC = b"crafter1"
_HEADER = struct.Struct("<8sI")


@cache
def daylight() -> NDArray[np.float64]:
    """Daylight by step, computed one scalar at a time as stock does, because array operations may round differently."""
    table = np.empty(senses.LAST_STEP + 1)
    for step in range(len(table)):
        progress = (step / 300) % 1 + 0.3
        table[step] = 1 - np.abs(np.cos(np.pi * progress)) ** 3
    return table


class Simulation:
    """The arrays of `layout`. Deterministic in (seed, horizon, goal, actions)."""

    __slots__ = ("lights", "material", "memory", "objects", "occupant", "planes", "senses", "state")

    def __init__(self) -> None:
        self.state = np.zeros(STATE_SIZE, np.int64)
        self.material = np.zeros((layout.AREA, layout.AREA), np.uint8)
        self.occupant = np.zeros((layout.AREA, layout.AREA), np.int16)
        self.objects = np.zeros((layout.CAPACITY, FIELDS), np.int32)
        self.memory = np.zeros((names.MEMORY_HEIGHT, names.MEMORY_WIDTH), np.uint8)
        self.planes = np.zeros((names.PLANES, names.PLANE_BYTES), np.uint8)
        self.senses = np.zeros(senses.SENSES_SIZE, np.uint8)
        self.lights = daylight()

    def reset(self, seed: int, horizon: int, goal: int, ahead: WorldsAhead | None = None) -> None:
        """The first episode of stock `crafter.Env(seed=seed)`. `goal`: index of an achievement or -1."""
        world = new_world(seed) if ahead is None else ahead.take(seed)
        state = self.state
        state[:] = world.state
        self.material[:] = world.material
        self.occupant[:] = world.occupant
        self.objects[: len(world.objects)] = world.objects
        self.memory[:] = 0
        self.planes[:] = 0
        self.senses[:] = 0
        state[layout.HORIZON] = horizon
        state[layout.GOAL] = goal
        state[layout.FACING] = names.FACINGS.index("down")
        state[layout.ITEM : layout.ITEM + 4] = 9
        state[layout.LAST_HEALTH] = state[layout.REWARDED_HEALTH] = 9
        state[layout.LEFT], state[layout.TOP] = names.MEMORY_WIDTH, names.MEMORY_HEIGHT
        self.look()

    def step(self, action: int) -> tuple[float, bool]:
        """Crafter's reward and whether the episode is over."""
        result: tuple[float, bool] = senses.advance(
            self.state,
            self.material,
            self.occupant,
            self.objects,
            self.memory,
            self.planes,
            self.senses,
            self.lights,
            action,
        )
        return result

    def look(self) -> None:
        senses.perceive(
            self.state,
            self.material,
            self.occupant,
            self.objects,
            self.memory,
            self.planes,
            self.senses,
            self.lights,
        )

    def save(self) -> bytes:
        rows = int(self.state[layout.ROWS])
        parts = (self.state, self.material, self.memory, self.planes, self.senses, self.objects[:rows])
        return _HEADER.pack(_MAGIC, rows) + b"".join(part.tobytes() for part in parts)

    def restore(self, saved: bytes) -> None:
        """Raises ValueError (a sentence) for anything that `save` did not write."""
        if len(saved) < _HEADER.size or saved[:8] != _MAGIC:
            raise ValueError("These bytes are not a saved Crafter world of this version.")
        rows = _HEADER.unpack_from(saved)[1]
        shapes = (self.state, self.material, self.memory, self.planes, self.senses)
        size = _HEADER.size + sum(part.nbytes for part in shapes) + rows * FIELDS * 4
        if not 0 < rows <= layout.CAPACITY or len(saved) != size:
            raise ValueError("The saved Crafter world is cut short or damaged.")
        at = _HEADER.size
        for part in (*shapes, self.objects[:rows]):
            count = math.prod(part.shape)
            part[...] = np.frombuffer(saved, part.dtype, count, at).reshape(part.shape)
            at += part.nbytes
        self._check(rows)
        self.occupant[:] = 0
        for row in range(rows):
            if self.objects[row, layout.KIND] != layout.NOBODY:
                self.occupant[self.objects[row, layout.X], self.objects[row, layout.Y]] = row + 1

    def _check(self, written: int) -> None:
        """Raises ValueError for a value that is no index where compiled code, which checks none, uses it as one.
        `written`: rows of objects that the save holds."""
        state = self.state
        if state[layout.ROWS] != written:
            raise ValueError("The saved Crafter world is damaged.")
        rows = self.objects[:written]
        positions = rows[:, [layout.X, layout.Y]]
        seen_materials = self.senses[names.AT_MATERIALS : names.AT_OBJECTS]
        seen_objects = self.senses[names.AT_OBJECTS : names.AT_BITS]
        counts = state[layout.ITEM : layout.ITEM + len(names.ITEMS)]
        chunks = layout.CHUNK_ROWS**2
        order = state[layout.CHUNK_ORDER : layout.CHUNK_ORDER + max(0, min(state[layout.CHUNKS], chunks))]
        used = state[layout.CHUNK_USED : layout.CHUNK_USED + chunks]
        is_valid = (
            0 <= state[RANDOM_AT] <= RANDOM_SIZE
            and 0 <= state[layout.STEP] <= senses.LAST_STEP
            and -1 <= state[layout.GOAL] < len(names.ACHIEVEMENTS)
            and 0 <= state[layout.FACING] < 4
            and 0 <= state[layout.HURT_BY] < len(names.HARMS)
            and 0 <= state[layout.CHUNKS] <= chunks
            and sorted(order) == list(used.nonzero()[0])
            and state[layout.LEFT] >= 0
            and state[layout.RIGHT] < names.MEMORY_WIDTH
            and state[layout.TOP] >= 0
            and state[layout.BOTTOM] < names.MEMORY_HEIGHT
            and bool((self.material < len(names.MATERIALS)).all())
            and bool((self.memory < len(names.REMEMBERED)).all())
            and bool((seen_materials < len(names.MATERIALS)).all())
            and bool((seen_objects < len(names.OBJECTS)).all())
            and self.senses[names.AT_FACING] < 4
            and bool(((counts >= 0) & (counts <= names.MOST)).all())
            and bool(((positions >= 0) & (positions < layout.AREA)).all())
            and rows[0, layout.KIND] == layout.PLAYER
            and bool(((rows[:, layout.HEADING] >= 0) & (rows[:, layout.HEADING] < 4)).all())
        )  # fmt: skip
        if not is_valid:
            raise ValueError("The saved Crafter world is damaged.")

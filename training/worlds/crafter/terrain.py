"""World generation of Crafter 1.8.3 (`crafter/worldgen.py`), number for number.

The noise is opensimplex's own compiled `noise3`. The only transcendental function is numpy's `exp`; the caller applies
it to a whole map between the two passes, because compiled code may round it differently in the last bit.
"""

from __future__ import annotations

import numpy as np
from opensimplex.internals import _init as tables_in_python
from opensimplex.internals import _noise3 as noise3

from rlgpt.training.worlds.crafter import random_stream
from rlgpt.training.worlds.crafter.compiled import COMPILED, compiled, entry
from rlgpt.training.worlds.crafter.ground import add
from rlgpt.training.worlds.crafter.layout import (
    AREA,
    COAL,
    COW,
    DIAMOND,
    GRASS,
    IRON,
    LAVA,
    PATH,
    PLAYER,
    SAND,
    SKELETON,
    STONE,
    TREE,
    WATER,
    ZOMBIE,
    Array,
)
from rlgpt.training.worlds.crafter.random_stream import below, uniform

CENTRE = AREA // 2
GRADIENTS = 24


@entry
def seed_stream(state: Array, seed: int) -> None:
    random_stream.seed_stream(state, seed)


@entry
def draw_noise(state: Array) -> int:
    """The seed of a world's noise: the first draw from its random stream."""
    return below(state, 2**31 - 1)


@entry
def shuffle(seed: int, perm: Array, grad: Array) -> None:
    """Fill opensimplex's tables. For compiled code only, where 64-bit integers wrap around; Python's do not."""
    for _ in range(3):
        seed = seed * 6364136223846793005 + 1442695040888963407
    source = np.arange(256)
    for i in range(255, -1, -1):
        seed = seed * 6364136223846793005 + 1442695040888963407
        chosen = (seed % (i + 1) + 31) % (i + 1)
        perm[i] = source[chosen]
        grad[i] = 3 * (perm[i] % GRADIENTS)
        source[chosen] = source[i]


def noise_tables(seed: int) -> tuple[Array, Array]:
    """Permutation and gradient indices of opensimplex, int64 [256] each."""
    if not COMPILED:
        tables: tuple[Array, Array] = tables_in_python(seed)
        return tables
    perm, grad = np.zeros(256, np.int64), np.zeros(256, np.int64)
    shuffle(seed, perm, grad)
    return perm, grad


@compiled
def octave(perm: Array, grad: Array, x: float, y: float, z: float, size: float) -> float:
    return float(noise3(x / size, y / size, z, perm, grad))


@entry
def start_logits(perm: Array, grad: Array, logits: Array) -> None:
    """How much each cell belongs to the meadow where the player starts, before the sigmoid."""
    for x in range(AREA):
        for y in range(AREA):
            logit = 4 - np.sqrt((x - CENTRE) ** 2 + (y - CENTRE) ** 2)
            logits[x, y] = logit + 2 * octave(perm, grad, x, y, 8.0, 3.0)


@compiled
def material_at(state: Array, perm: Array, grad: Array, x: int, y: int, start: float) -> int:
    """Material of one cell; a tunnel is the negative of PATH."""
    water = octave(perm, grad, x, y, 3.0, 15.0) + 0.15 * octave(perm, grad, x, y, 3.0, 5.0)
    water = water + 0.1
    water -= 2 * start
    mountain = octave(perm, grad, x, y, 0.0, 15.0) + 0.3 * octave(perm, grad, x, y, 0.0, 5.0)
    mountain /= 1.3
    mountain -= 4 * start + 0.3 * water
    if start > 0.5:
        return GRASS
    if mountain > 0.15:
        if octave(perm, grad, x, y, 6.0, 7.0) > 0.15 and mountain > 0.3:
            return PATH
        if octave(perm, grad, 2 * x, y / 5, 7.0, 3.0) > 0.4:
            return -PATH
        if octave(perm, grad, x / 5, 2 * y, 7.0, 3.0) > 0.4:
            return -PATH
        if octave(perm, grad, x, y, 1.0, 8.0) > 0 and uniform(state) > 0.85:
            return COAL
        if octave(perm, grad, x, y, 2.0, 6.0) > 0.4 and uniform(state) > 0.75:
            return IRON
        if mountain > 0.18 and uniform(state) > 0.994:
            return DIAMOND
        if mountain > 0.3 and octave(perm, grad, x, y, 6.0, 5.0) > 0.35:
            return LAVA
        return STONE
    if 0.25 < water <= 0.35 and octave(perm, grad, x, y, 4.0, 9.0) > -0.2:
        return SAND
    if water > 0.3:
        return WATER
    if octave(perm, grad, x, y, 5.0, 7.0) > 0 and uniform(state) > 0.8:
        return TREE
    return GRASS


@entry
def generate(
    state: Array,
    material: Array,
    occupant: Array,
    objects: Array,
    perm: Array,
    grad: Array,
    start: Array,
) -> None:
    """Put the player at the centre, fill the map, then add the first creatures."""
    add(state, occupant, objects, PLAYER, CENTRE, CENTRE, 0, 0)
    tunnel = np.zeros((AREA, AREA), np.uint8)
    for x in range(AREA):
        for y in range(AREA):
            cell = material_at(state, perm, grad, x, y, start[x, y])
            if cell < 0:
                tunnel[x, y] = 1
                cell = -cell
            material[x, y] = cell
    for x in range(AREA):
        for y in range(AREA):
            cell = material[x, y]
            if cell != GRASS and cell != SAND and cell != PATH:
                continue
            distance = np.sqrt((x - CENTRE) ** 2 + (y - CENTRE) ** 2)
            if distance > 3 and cell == GRASS and uniform(state) > 0.985:
                add(state, occupant, objects, COW, x, y, 3, 0)
            elif distance > 10 and uniform(state) > 0.993:
                add(state, occupant, objects, ZOMBIE, x, y, 5, 0)
            elif cell == PATH and tunnel[x, y] and uniform(state) > 0.95:
                add(state, occupant, objects, SKELETON, x, y, 3, 0)

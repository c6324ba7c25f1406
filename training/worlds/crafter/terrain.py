"""World generation of Crafter 1.8.3 (`crafter/worldgen.py`), number for number."""

from __future__ import annotations

import numpy as np

from rlgpt.training.worlds.crafter import random_stream
from rlgpt.training.worlds.crafter.compiled import compiled, entry
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
from rlgpt.training.worlds.crafter.noise import (
    BEACH,
    CAVE,
    COAL_SEAM,
    FOREST,
    IRON_SEAM,
    LAVA_LAKE,
    MOUNTAIN,
    MOUNTAIN_DETAIL,
    START,
    TUNNEL_X,
    TUNNEL_Y,
    WATER_DETAIL,
    WATER_LEVEL,
)
from rlgpt.training.worlds.crafter.random_stream import below, uniform

CENTRE = AREA // 2


@entry
def seed_stream(state: Array, seed: int) -> None:
    random_stream.seed_stream(state, seed)


@entry
def draw_noise(state: Array) -> int:
    """The seed of a world's noise: the first draw from its random stream."""
    return below(state, 2**31 - 1)


def start_area(layers: Array) -> Array:
    """How much each cell belongs to the meadow where the player starts, float64 [AREA, AREA]. Not compiled, because
    compiled code may round `exp` differently in the last bit."""
    x, y = np.ogrid[:AREA, :AREA]
    logits = 4 - np.sqrt((x - CENTRE) ** 2 + (y - CENTRE) ** 2) + 2 * layers[:, :, START]
    area: Array = 1 / (1 + np.exp(-logits))
    return area


@compiled
def material_at(state: Array, layers: Array, start: float) -> int:
    """Material of one cell by its row of `make_layers`; a tunnel is the negative of PATH."""
    water = layers[WATER_LEVEL] + 0.15 * layers[WATER_DETAIL]
    water = water + 0.1
    water -= 2 * start
    mountain = layers[MOUNTAIN] + 0.3 * layers[MOUNTAIN_DETAIL]
    mountain /= 1.3
    mountain -= 4 * start + 0.3 * water
    if start > 0.5:
        return GRASS
    if mountain > 0.15:
        if layers[CAVE] > 0.15 and mountain > 0.3:
            return PATH
        if layers[TUNNEL_X] > 0.4:
            return -PATH
        if layers[TUNNEL_Y] > 0.4:
            return -PATH
        if layers[COAL_SEAM] > 0 and uniform(state) > 0.85:
            return COAL
        if layers[IRON_SEAM] > 0.4 and uniform(state) > 0.75:
            return IRON
        if mountain > 0.18 and uniform(state) > 0.994:
            return DIAMOND
        if mountain > 0.3 and layers[LAVA_LAKE] > 0.35:
            return LAVA
        return STONE
    if 0.25 < water <= 0.35 and layers[BEACH] > -0.2:
        return SAND
    if water > 0.3:
        return WATER
    if layers[FOREST] > 0 and uniform(state) > 0.8:
        return TREE
    return GRASS


@entry
def generate(
    state: Array,
    material: Array,
    occupant: Array,
    objects: Array,
    layers: Array,
    start: Array,
) -> None:
    """Put the player at the centre, fill the map, then add the first creatures."""
    add(state, occupant, objects, PLAYER, CENTRE, CENTRE, 0, 0)
    tunnel = np.zeros((AREA, AREA), np.uint8)
    for x in range(AREA):
        for y in range(AREA):
            cell = material_at(state, layers[x, y], start[x, y])
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

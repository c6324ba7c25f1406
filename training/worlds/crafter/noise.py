"""The noise of Crafter's maps: opensimplex's `noise3`, bit for bit, at the points where the maps need it.

Every map needs it at the same points, and a world's seed only chooses the gradients. So the lattice points that
contribute to a point, and its offsets from them, are found once, by opensimplex's own code; a world then only adds up
gradients, in the same order. All layers are made for every cell, though a map needs half of them: reading the lattice
from its beginning to its end is faster than choosing.
"""

from __future__ import annotations

import functools
from types import FunctionType
from typing import NamedTuple

import numpy as np
from opensimplex import internals
from opensimplex.constants import GRADIENTS3, NORM_CONSTANT3

from rlgpt.training.worlds.crafter.compiled import COMPILED, compiled, entry
from rlgpt.training.worlds.crafter.layout import AREA, Array

(
    START, WATER_LEVEL, WATER_DETAIL, MOUNTAIN, MOUNTAIN_DETAIL, CAVE, TUNNEL_X, TUNNEL_Y, COAL_SEAM, IRON_SEAM,
    LAVA_LAKE, BEACH, FOREST,
) = range(LAYERS := 13)  # fmt: skip
"""Layers: what the noise decides about."""

_LAYERS = np.array([
    (1, 1, 1, 1, 3, 8), (1, 1, 1, 1, 15, 3), (1, 1, 1, 1, 5, 3), (1, 1, 1, 1, 15, 0), (1, 1, 1, 1, 5, 0),
    (1, 1, 1, 1, 7, 6), (2, 1, 1, 5, 3, 7), (1, 5, 2, 1, 3, 7), (1, 1, 1, 1, 8, 1), (1, 1, 1, 1, 6, 2),
    (1, 1, 1, 1, 5, 6), (1, 1, 1, 1, 9, 4), (1, 1, 1, 1, 7, 5),
], np.float64)  # fmt: skip
"""Of each layer: what x is multiplied and divided by, the same of y, the size that divides both, and z, as in
`crafter/worldgen.py`."""

_MAX_CONTRIBUTIONS = 8
"""Lattice points that `noise3` adds up for one point, at most."""
_GRADIENTS = GRADIENTS3.reshape(-1, 3).astype(np.float64)
_NORM = float(NORM_CONSTANT3)


class Lattice(NamedTuple):
    """Contributions to the points of all maps, by x, y and layer.

    `first`: uint32 [AREA * AREA * LAYERS + 1], where the contributions of each point begin. `corners`: uint16 [n, 3],
    coordinates of the lattice point, modulo 256. `offsets`: float64 [n, 3], from there to the point.
    """

    first: Array
    corners: Array
    offsets: Array


@entry
def _shuffle(seed: int, perm: Array, grad: Array) -> None:
    """Fill opensimplex's tables. For compiled code only, where 64-bit integers wrap around; Python's do not."""
    for _ in range(3):
        seed = seed * 6364136223846793005 + 1442695040888963407
    source = np.arange(256)
    for i in range(255, -1, -1):
        seed = seed * 6364136223846793005 + 1442695040888963407
        chosen = (seed % (i + 1) + 31) % (i + 1)
        perm[i] = source[chosen]
        grad[i] = 3 * (perm[i] % len(_GRADIENTS))
        source[chosen] = source[i]


def noise_tables(seed: int) -> tuple[Array, Array]:
    """opensimplex's tables for a seed: permutation and gradient indices, int64 [256] each."""
    if not COMPILED:
        tables: tuple[Array, Array] = internals._init(seed)
        return tables
    perm, grad = np.zeros(256, np.int64), np.zeros(256, np.int64)
    _shuffle(seed, perm, grad)
    return perm, grad


@compiled
def _write_down(found: Array, count: Array, i: int, j: int, k: int, dx: float, dy: float, dz: float) -> float:
    """In place of opensimplex's `_extrapolate3`, with two arrays in place of its tables: what it is asked for."""
    row = found[count[0]]
    row[0], row[1], row[2] = i & 0xFF, j & 0xFF, k & 0xFF
    row[3], row[4], row[5] = dx, dy, dz
    count[0] += 1
    return 0.0


_noise3 = getattr(internals._noise3, "py_func", internals._noise3)
_visit_contributions = compiled(
    FunctionType(_noise3.__code__, vars(internals) | {"_extrapolate3": _write_down}, "_visit_contributions")
)


@entry
def _find_contributions(layers: Array, first: Array, corners: Array, offsets: Array) -> None:
    found = np.zeros((_MAX_CONTRIBUTIONS, 6))
    count = np.zeros(1, np.int64)
    point = end = 0
    for x in range(AREA):
        for y in range(AREA):
            for layer in range(len(layers)):
                times_x, over_x, times_y, over_y, size, z = layers[layer]
                count[0] = 0
                _visit_contributions(x * times_x / over_x / size, y * times_y / over_y / size, z, found, count)
                for row in range(count[0]):
                    for axis in range(3):
                        corners[end, axis] = int(found[row, axis])
                        offsets[end, axis] = found[row, 3 + axis]
                    end += 1
                point += 1
                first[point] = end


@functools.cache
def lattice() -> Lattice:
    """The same for every world; 9 MB."""
    points = AREA * AREA * LAYERS
    first = np.zeros(points + 1, np.uint32)
    corners = np.zeros((points * _MAX_CONTRIBUTIONS, 3), np.uint16)
    offsets = np.zeros((points * _MAX_CONTRIBUTIONS, 3))
    _find_contributions(_LAYERS, first, corners, offsets)
    return Lattice(first, corners[: first[-1]].copy(), offsets[: first[-1]].copy())


@entry
def _add_up(first: Array, corners: Array, offsets: Array, permutation: Array, gradients: Array, values: Array) -> None:
    for point in range(len(values)):
        total = 0.0
        for at in range(first[point], first[point + 1]):
            dx, dy, dz = offsets[at, 0], offsets[at, 1], offsets[at, 2]
            row = permutation[permutation[corners[at, 0]] + corners[at, 1]] + corners[at, 2]
            weight = 2 - dx * dx - dy * dy - dz * dz
            weight *= weight
            total += weight * weight * (gradients[row, 0] * dx + gradients[row, 1] * dy + gradients[row, 2] * dz)
        values[point] = total / _NORM


def make_layers(seed: int) -> Array:
    """The noise of one world in [-1, 1], float64 [AREA, AREA, LAYERS]."""
    perm, grad = noise_tables(seed)
    # Twice, so that sums of two indices need no remainder; unsigned, because compiled code looks whether a signed index
    # is negative, which takes as long as the rest.
    permutation = np.tile(perm, 2).astype(np.uint16)
    gradients = _GRADIENTS[np.tile(grad // 3, 2)]
    values = np.empty(AREA * AREA * LAYERS)
    _add_up(*lattice(), permutation, gradients, values)
    return values.reshape(AREA, AREA, LAYERS)

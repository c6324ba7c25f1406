"""The arithmetic of the picture, pixel by pixel: `crafter.engine.LocalView` and `ItemView` in the order of their
operations, so that the bytes are equal.

Tiles, item cells and the table of Pillow's blend come from render.py.
"""

from __future__ import annotations

import numpy as np

from rlgpt.training.worlds.crafter import names
from rlgpt.training.worlds.crafter.compiled import compiled, entry
from rlgpt.training.worlds.crafter.layout import Array

UNIT = names.PICTURE // 9
"""Pixels per side of a cell."""
BORDER = (names.PICTURE - 9 * UNIT) // 2
FIRST_PLAYER = 10
"""Textures of a tile: nothing, the nine things by object code, the player by facing, the player asleep."""
ASLEEP = FIRST_PLAYER + 4
NIGHT = (0, 16, 64)
SLEEP = (0, 0, 16)
"""Colours that a picture is mixed with, half and half."""


@compiled
def to_grey(red: int, green: int, blue: int) -> int:
    """Pillow's conversion to "L": ITU-R 601-2 luma in 16 bits (Convert.c)."""
    return (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16


@entry
def paint(
    senses: Array, counts: Array, sleeping: bool, light: float, noise: Array, shade: Array, tiles: Array, cells: Array,
    faded: Array, canvas: Array,
) -> None:  # fmt: skip
    """Draw into the black `canvas`, (height, width, 3) uint8.

    `counts`: of each item. `light`: daylight in [0, 1]. `noise`, `shade`: (width, height) of the window in pixels; the
    noise is read where `light` is below one half. `tiles[material, texture]` and `cells[item, count]`: (UNIT, UNIT, 3),
    x first. `faded[grey, value]`: a colour value after Pillow's blend with its pixel's grey, which keeps 0.4 of it.
    """
    for cell in range(names.WIDTH * names.HEIGHT):
        column, row = cell % names.WIDTH, cell // names.WIDTH
        texture = int(senses[names.AT_OBJECTS + cell])
        if column == names.REACH_X and row == names.REACH_Y:
            texture = ASLEEP if sleeping else FIRST_PLAYER + int(senses[names.AT_FACING])
        tile = tiles[senses[names.AT_MATERIALS + cell], texture]
        for i in range(UNIT):
            for j in range(UNIT):
                x, y = column * UNIT + i, row * UNIT + j
                red, green, blue = int(tile[i, j, 0]), int(tile[i, j, 1]), int(tile[i, j, 2])
                dark_red, dark_green, dark_blue = red, green, blue
                if light < 0.5:
                    mask = 2 * (0.5 - light) * shade[x, y]
                    grain = mask * noise[x, y]
                    dark_red = int((1 - mask) * red + grain)
                    dark_green = int((1 - mask) * green + grain)
                    dark_blue = int((1 - mask) * blue + grain)
                grey = to_grey(dark_red, dark_green, dark_blue)
                lit_red = light * red + (1 - light) * (0.5 * faded[grey, dark_red] + 0.5 * NIGHT[0])
                lit_green = light * green + (1 - light) * (0.5 * faded[grey, dark_green] + 0.5 * NIGHT[1])
                lit_blue = light * blue + (1 - light) * (0.5 * faded[grey, dark_blue] + 0.5 * NIGHT[2])
                if sleeping:
                    grey = to_grey(int(lit_red), int(lit_green), int(lit_blue))
                    lit_red = 0.5 * grey + 0.5 * SLEEP[0]
                    lit_green = 0.5 * grey + 0.5 * SLEEP[1]
                    lit_blue = 0.5 * grey + 0.5 * SLEEP[2]
                canvas[BORDER + y, BORDER + x, 0] = np.uint8(lit_red)
                canvas[BORDER + y, BORDER + x, 1] = np.uint8(lit_green)
                canvas[BORDER + y, BORDER + x, 2] = np.uint8(lit_blue)
    for item in range(len(counts)):
        left, top = BORDER + item % 9 * UNIT, BORDER + (names.HEIGHT + item // 9) * UNIT
        for i in range(UNIT):
            for j in range(UNIT):
                for colour in range(3):
                    canvas[top + j, left + i, colour] = cells[item, counts[item], i, j, colour]

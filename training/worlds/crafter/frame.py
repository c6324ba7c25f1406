"""Frames of the format `crafter-window-1`: what a console needs to draw one moment. Standard library only.

92 bytes, little-endian:

    0       format, 1
    1, 2    cell x, y of the agent, 0..63; x grows to the right, y downwards
    3       facing: 0 left, 1 right, 2 up, 3 down
    4       1 while asleep
    5       daylight, 0 dark .. 255 bright
    6, 7    env steps since reset, 16 bits
    8       health, food, drink, energy, sapling, wood, stone, coal, iron, diamond, wood_pickaxe,
            stone_pickaxe, iron_pickaxe, wood_sword, stone_sword, iron_sword: 16 bytes, each 0..9
    24      achievements unlocked in this episode: 24 bits, bit i is the i-th in alphabetical order:
            collect_coal, collect_diamond, collect_drink, collect_iron, collect_sapling, collect_stone,
            collect_wood, defeat_skeleton, defeat_zombie, eat_cow, eat_plant, make_iron_pickaxe,
            make_iron_sword, make_stone_pickaxe, make_stone_sword, make_wood_pickaxe, make_wood_sword,
            place_furnace, place_plant, place_stone, place_table, wake_up
    27      the 9 x 7 window, row by row from the top left, the agent in the middle (cell 31): 63 bytes,
            0 outside the map, 1 water, 2 grass, 3 stone, 4 path, 5 sand, 6 tree, 7 lava, 8 coal, 9 iron,
            10 diamond, 11 table, 12 furnace, 13 cow, 14 zombie, 15 skeleton, 16 arrow to the left,
            17 to the right, 18 upwards, 19 downwards, 20 sapling, 21 ripe plant
    90      steps left, 16 bits
"""

from __future__ import annotations

from rlgpt.training.worlds.crafter import names

FORMAT = "crafter-window-1"
SIZE = 92
_CELLS = names.WIDTH * names.HEIGHT
_NO_OBJECTS = bytes(_CELLS)
_FIRST_OBJECT = len(names.MATERIALS) - 1


def window_codes(packed: bytes) -> bytes:
    """Category codes of the 63 window cells of packed senses (see `names`)."""
    materials = packed[names.AT_MATERIALS : names.AT_OBJECTS]
    things = packed[names.AT_OBJECTS : names.AT_BITS]
    if things == _NO_OBJECTS:
        return materials
    return bytes(_FIRST_OBJECT + thing if thing else cell for cell, thing in zip(materials, things, strict=True))


def pack_frame(packed: bytes) -> bytes:
    """The frame of packed senses."""
    return b"".join(
        (
            b"\1",
            packed[names.AT_X : names.AT_DAYLIGHT + 1],
            packed[names.AT_STEPS : names.AT_STEPS + 2],
            packed[names.AT_ITEMS : names.AT_ITEMS + 16],
            packed[names.AT_ACHIEVED : names.AT_ACHIEVED + 3],
            window_codes(packed),
            packed[names.AT_STEPS_LEFT : names.AT_STEPS_LEFT + 2],
        )
    )

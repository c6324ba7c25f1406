"""The policy's observation: named features, each computed as a short row of floats from a `GameReading`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlgpt.training.worlds.minedojo.host_side import FUNCTIONS
from rlgpt.training.worlds.minedojo.sense import Sighting, bearing, block_name
from rlgpt.training.worlds.protocol import Feature

BLOCKS = (
    "other", "air", "grass", "dirt", "log", "leaves", "stone", "cobblestone", "sand", "gravel", "water", "lava",
    "planks", "crafting_table", "furnace", "coal_ore", "iron_ore", "gold_ore", "diamond_ore", "redstone_ore",
    "tallgrass", "tall_grass", "flower", "snow", "ice", "clay", "bedrock",
)  # fmt: skip
"""The 27 categories of a voxel; every other block is `other`."""
_BLOCK = {name: index for index, name in enumerate(BLOCKS)}
OPEN = frozenset({
    "air", "water", "lava", "tallgrass", "tall_grass", "flower", "dandelion", "poppy", "torch", "snow", "vine",
})  # fmt: skip
"""Blocks one can walk into."""
ITEMS = (
    "log", "planks", "stick", "crafting_table", "wooden_pickaxe", "cobblestone", "stone_pickaxe", "furnace", "coal",
    "iron_ore", "iron_ingot", "iron_pickaxe", "diamond", "bucket", "milk_bucket", "shears", "wool", "bed", "beef",
    "mutton", "dirt", "torch", "diamond_sword", "cooked_beef",
)  # fmt: skip
TARGETS = (
    "cow", "sheep", "pig", "chicken", "zombie", "skeleton", "spider", "creeper", "item", "log", "stone", "coal_ore",
    "iron_ore", "diamond_ore", "crafting_table", "furnace", "water",
)  # fmt: skip
FAR = 50.0
"""Blocks at which the distance in the feature `target` reaches 1."""
MOVES = 13
"""Categories of movement: the 12 primitives of head 0, and any other."""
BIOMES = 168
"""Biome ids are below it."""


@dataclass
class GameReading:
    """Everything a feature may read. `reply` is the child's, see child.py."""

    reply: Mapping[str, Any]
    sightings: list[Sighting]
    last_seen: Mapping[str, tuple[Sighting, int]]
    """Name -> its latest sighting, and the env step of it."""
    target: str
    step: int
    horizon: int
    origin: tuple[float, float, float]
    """Where the episode began."""
    last_category: int
    """Category of the last command, see `command_category`."""


def command_category(command: tuple[int, ...]) -> int:
    """Movement (a head-0 primitive, or 12 for any other) times 8 plus function."""
    movement = _MOVEMENT.get(command[:5], MOVES - 1)
    return movement * len(FUNCTIONS) + command[5]


def _primitive(index: int, value: int) -> tuple[int, ...]:
    base = [0, 0, 0, 12, 12]
    base[index] = value
    return tuple(base)


PRIMITIVE_VECTORS: tuple[tuple[int, ...], ...] = (
    (0, 0, 0, 12, 12), _primitive(0, 1), _primitive(0, 2), _primitive(1, 1), _primitive(1, 2),
    _primitive(2, 1), _primitive(2, 2), _primitive(2, 3), _primitive(3, 10), _primitive(3, 14),
    _primitive(4, 10), _primitive(4, 14),
)  # fmt: skip
"""First five entries of the native action for each of the 12 actions of head 0."""
_MOVEMENT = {vector: index for index, vector in enumerate(PRIMITIVE_VECTORS)}


def _compass(reading: GameReading) -> list[float]:
    yaw, pitch = (math.radians(reading.reply["place"][i]) for i in (3, 4))
    return [math.sin(yaw), math.cos(yaw), math.sin(pitch), math.cos(pitch)]


def _gps(reading: GameReading) -> list[float]:
    return [_clip((reading.reply["place"][i] - reading.origin[i]) / 100.0) for i in range(3)]


def _voxels(reading: GameReading) -> list[float]:
    return [float(_BLOCK.get(block_name(name), 0)) for name in reading.reply["voxels"]]


def _around(reading: GameReading) -> list[float]:
    """(16,) whether a block is in the way, at the feet and then at the head, in eight directions clockwise from the
    look."""
    row: list[float] = []
    for up in (0, 1):
        for turn in range(0, 360, 45):
            angle = math.radians(reading.reply["place"][3] + turn)
            x, z = 1 - round(math.sin(angle)), 1 + round(math.cos(angle))
            row.append(float(block_name(reading.reply["voxels"][x * 9 + (up + 1) * 3 + z]) not in OPEN))
    return row


def _sight(reading: GameReading, name: str) -> list[float]:
    """(6,) seen now, seen ever, nearness in (0, 1], sine and cosine of the turn, tilt / 90 degrees; zeros for what was
    never seen."""
    now = next((sighting for sighting in reading.sightings if sighting.name == name), None)
    known_place = now or (reading.last_seen[name][0] if name in reading.last_seen else None)
    if known_place is None:
        return [0.0] * 6
    turn, tilt, distance = bearing(reading.reply["place"], known_place.x, known_place.y, known_place.z)
    angle = math.radians(turn)
    nearness = 1.0 / (1.0 + distance / 4.0)
    return [float(now is not None), 1.0, nearness, math.sin(angle), math.cos(angle), _clip(tilt / 90)]


def _target(reading: GameReading) -> list[float]:
    """`_sight` of the task's target, its distance / 50, and whether it is in reach of the crosshair."""
    row = _sight(reading, reading.target)
    if not row[1]:
        return [*row, 1.0, 0.0]
    distance = 4.0 * (1.0 / row[2] - 1.0)
    aimed = row[0] and distance < 4.0 and row[4] > 0.97 and abs(row[5]) < 0.2
    return [*row, min(1.0, distance / FAR), float(bool(aimed))]


def _all_sights(reading: GameReading) -> list[float]:
    return [value for name in TARGETS for value in _sight(reading, name)]


def _vitals(reading: GameReading) -> list[float]:
    life, food, armor, oxygen = reading.reply["life"][:4]
    return [life / 20, food / 20, armor / 20, max(0.0, oxygen) / 300, reading.reply["place"][6] / 15]


def _inventory(reading: GameReading) -> list[float]:
    counts: dict[str, int] = {}
    for _, name, count, _ in reading.reply["inventory"]:
        counts[name] = counts.get(name, 0) + count
    return [min(1.0, math.log2(1 + counts.get(name, 0)) / 6) for name in ITEMS]


def _nearby(reading: GameReading) -> list[float]:
    return [float(flag) for flag in reading.reply["near"]]


def _clip(value: float) -> float:
    return max(-1.0, min(1.0, value))


_ROWS: tuple[tuple[Feature, Callable[[GameReading], list[float]]], ...] = (
    (Feature("compass", 4, "sine and cosine of yaw and pitch", -1.0), _compass),
    (Feature("gps", 3, "x, y, z since the episode's start, in units of 100 blocks", -1.0), _gps),
    (Feature("voxels", 27, "kinds of the 3x3x3 blocks around the feet", 0, len(BLOCKS), len(BLOCKS)), _voxels),
    (Feature("around", 16, "whether one bumps into something at the feet, then at the head, in eight directions "
             "clockwise from the look"), _around),
    (Feature("biome", 1, "biome id", 0, BIOMES, BIOMES),
     lambda reading: [float(max(0, min(BIOMES - 1, reading.reply["place"][5])))]),
    (Feature("previous_action", 1, "the last command: movement x function", 0, MOVES * 8, MOVES * 8),
     lambda reading: [float(reading.last_category)]),
    (Feature("target", 8, "the task's target by lidar: seen, known, nearness, sine and cosine of the turn, tilt, "
             "distance, aimed at", -1.0), _target),
    (Feature("sights", 6 * len(TARGETS), "the same six values for each named target of the world", -1.0), _all_sights),
    (Feature("vitals", 5, "health, food, armour, oxygen, light"), _vitals),
    (Feature("inventory", len(ITEMS), "logarithm of the count of each of 24 items"), _inventory),
    (Feature("nearby", 2, "crafting table, furnace in reach"), _nearby),
    (Feature("time_left", 1, "share of the task's time limit that is left"),
     lambda reading: [max(0.0, 1.0 - reading.step / reading.horizon)]),
)  # fmt: skip

FEATURES: Mapping[str, Feature] = {feature.name: feature for feature, _ in _ROWS}
ROWS: Mapping[str, Callable[[GameReading], list[float]]] = {feature.name: row for feature, row in _ROWS}
DEFAULT = ("compass", "previous_action", "around", "target", "vitals", "inventory", "nearby", "time_left")
"""Of the paper's features compass and previous action; `around` in place of the voxels, which do not turn with the
look and which took PPO twice as many env steps to read; the target, since the distance reward needs it to be
observed; and the time left, since our limit is terminal."""

"""The view of coded actions in Minecraft, the named actions, and the check of what they yield.

Imported in the action host: stdlib only, no I/O. A command is MineDojo's native vector of 8 small integers:
forward / back, left / right, jump / sneak / sprint, pitch bin, yaw bin, function, craft item, inventory slot.
Angles are degrees; a positive turn is to the right, a positive tilt is down; the game turns in bins of 15.
"""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from rlgpt.training.worlds.minedojo.items import CRAFT_INDEX, SMELT_ITEMS

Command = tuple[int, ...]
NATIVE_ACTION_SIZE = 8
NVEC = (3, 3, 4, 25, 25, 8, 244, 36)
NOOP: Command = (0, 0, 0, 12, 12, 0, 0, 0)
BIN = 15.0
FUNCTIONS = ("none", "use", "drop", "attack", "craft", "equip", "place", "destroy")
_WAYS = {"forward": (1, 0), "back": (2, 0), "left": (0, 1), "right": (0, 2), "stay": (0, 0)}
_FIELDS = ("forward / back", "left / right", "jump / sneak / sprint", "pitch bin", "yaw bin", "function",
           "craft item", "slot")  # fmt: skip


class Sight(NamedTuple):
    """Something the lidar meets, or met before (`age` env steps ago, from its last known place)."""

    name: str
    is_animal: bool
    """True for whatever lives or lies about (cow, zombie, item), False for a block."""
    distance: float
    """Blocks from the eye."""
    turn: float
    """Degrees to turn right to face it, -180 to 180."""
    tilt: float
    """Degrees to look further down to face it."""
    age: int


class InventorySlot(NamedTuple):
    slot: int
    name: str
    quantity: int


class View(NamedTuple):
    """One moment, immutable. Documented for agents in the world sheet's `view_doc`."""

    step: int
    time_left: int
    health: float
    food: float
    armor: float
    oxygen: float
    x: float
    y: float
    z: float
    yaw: float
    pitch: float
    biome: int
    light: float
    inventory: Mapping[str, int]
    slots: tuple[InventorySlot, ...]
    holding: str
    near_table: bool
    near_furnace: bool
    sights: tuple[Sight, ...]
    memories: tuple[Sight, ...]
    voxels: tuple[str, ...]
    craftable: tuple[str, ...]
    equippable: tuple[int, ...]
    placeable: tuple[int, ...]
    refused: str


class MineDojoDecoder:
    """Every packed view is whole (it holds the memories), so nothing is kept between calls."""

    def view(self, packed: bytes) -> View:
        raw: dict[str, Any] = json.loads(packed)
        slots = tuple(InventorySlot(*entry) for entry in raw.pop("slots"))
        counts: dict[str, int] = {}
        for slot in slots:
            counts[slot.name] = counts.get(slot.name, 0) + slot.quantity
        fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in raw.items()}
        fields["sights"] = tuple(Sight(*entry) for entry in raw["sights"])
        fields["memories"] = tuple(Sight(*entry) for entry in raw["memories"])
        return View(inventory=MappingProxyType(counts), slots=slots, **fields)


def describe(view: View) -> dict[str, Any]:
    """The view in the few words that tell a person or a critic what is going on."""
    return {
        "health": view.health, "food": view.food, "position": [round(view.x), round(view.y), round(view.z)],
        "yaw": round(view.yaw), "pitch": round(view.pitch), "inventory": dict(view.inventory),
        "holding": view.holding, "near_table": view.near_table, "near_furnace": view.near_furnace,
        "sees": {s.name: f"{s.distance:.0f} blocks off, {s.turn:.0f} degrees to the right" for s in view.sights},
        "remembers": {s.name: f"{s.distance:.0f} blocks off, {s.age} steps ago" for s in view.memories},
        "refused": view.refused,
    }  # fmt: skip


def moment(view: View) -> dict[str, Any]:
    """One line of a timeline; see `optional_parts.ShowsMoments`."""
    return {
        "at": [round(view.x), round(view.y), round(view.z)], "health": view.health, "food": view.food,
        "light": view.light, "holding": view.holding, "holds": dict(view.inventory),
        "near": [f"{s.name} {s.distance:.0f} blocks" for s in view.sights[:4]],
    }  # fmt: skip


def decoder() -> MineDojoDecoder:
    return MineDojoDecoder()


def encode(yielded: object) -> Command:
    """Exact type and range check of a yield; raises ValueError with the sentence for the agent."""
    if type(yielded) is not tuple:
        raise ValueError("yield one named action, such as `view = yield move('forward')`, or a tuple of 8 integers")
    if len(yielded) != NATIVE_ACTION_SIZE:
        raise ValueError(f"a native action has {NATIVE_ACTION_SIZE} integers, this one has {len(yielded)}")
    for value, size, field in zip(yielded, NVEC, _FIELDS, strict=True):
        if type(value) is not int or not 0 <= value < size:
            raise ValueError(f"entry `{field}` of a native action must be an integer from 0 to {size - 1}")
    return yielded


def _bins(degrees: float) -> int:
    """The camera bin nearest to `degrees`, at most half a turn either way."""
    return max(0, min(24, 12 + round(max(-180.0, min(180.0, degrees)) / BIN)))


def act(
    way: str = "stay", turn: float = 0, tilt: float = 0, jump: bool = False, sprint: bool = False,
    sneak: bool = False, do: str = "none",
) -> Command:  # fmt: skip
    """One env step that walks, looks and uses or attacks at once."""
    if way not in _WAYS:
        raise ValueError(f"the way must be one of {', '.join(_WAYS)}")
    if do not in ("none", "use", "attack", "drop"):
        raise ValueError("`do` must be none, use, attack or drop; craft, equip and place have their own actions")
    ahead, side = _WAYS[way]
    gait = 1 if jump else 2 if sneak else 3 if sprint else 0
    return ahead, side, gait, _bins(tilt), _bins(turn), FUNCTIONS.index(do), 0, 0


def move(way: str = "forward", turn: float = 0, tilt: float = 0, jump: bool = False, sprint: bool = False) -> Command:
    return act(way, turn, tilt, jump, sprint)


def turn(degrees: float, tilt: float = 0) -> Command:
    return act("stay", degrees, tilt)


def face(sight: Sight, do: str = "none") -> Command:
    """Turn and tilt towards a sight, to the nearest bin."""
    return act("stay", sight.turn, sight.tilt, do=do)


def repeat(command: Command, n: int) -> Generator[Command, Any, Any]:
    """`view = yield from repeat(command, n)`: the same env step n times; gives the last view."""
    view = None
    for _ in range(n):
        view = yield command
    return view


def use(n: int | None = None) -> Command | Generator[Command, Any, Any]:
    """Right click: `view = yield use()`; several env steps: `view = yield from use(n)`."""
    command = act(do="use")
    return command if n is None else repeat(command, n)


def attack(n: int | None = None) -> Command | Generator[Command, Any, Any]:
    """Left click: `view = yield attack()`; held for n env steps: `view = yield from attack(n)`."""
    command = act(do="attack")
    return command if n is None else repeat(command, n)


def craft(item: str) -> Command:
    """By hand, or at a table that is near; see `view.craftable`."""
    if item not in CRAFT_INDEX or item in SMELT_ITEMS:
        raise ValueError(f"{item} cannot be crafted; see the recipes")
    return (*NOOP[:5], 4, CRAFT_INDEX[item], 0)


def smelt(item: str) -> Command:
    """`item` is the result, such as iron_ingot; needs a furnace that is near, and fuel."""
    if item not in SMELT_ITEMS:
        raise ValueError(f"{item} cannot be smelted; see the recipes")
    return (*NOOP[:5], 4, CRAFT_INDEX[item], 0)


def _slot(view: View, item: str, allowed: tuple[int, ...], what: str) -> int:
    for slot in view.slots:
        if slot.name == item and slot.slot in allowed:
            return slot.slot
    raise ValueError(f"there is no {item} in the inventory that can be {what} now")


def equip(view: View, item: str) -> Command:
    """Take an item of the inventory in the hand (armour: put on). Nothing happens if it is held already."""
    if view.holding == item:
        return NOOP
    return (*NOOP[:5], 5, 0, _slot(view, item, view.equippable, "equipped"))


def place(view: View, item: str) -> Command:
    """Place a block where the eye meets a surface within reach."""
    return (*NOOP[:5], 6, 0, _slot(view, item, view.placeable, "placed"))


def nearest(view: View, name: str) -> Sight | None:
    """The nearest `name` in sight now, None if the lidar meets none."""
    for sight in view.sights:
        if sight.name == name:
            return sight
    return None


def remembered(view: View, name: str) -> Sight | None:
    """The same, or where it was last seen (`age` > 0)."""
    in_sight = nearest(view, name)
    if in_sight is not None:
        return in_sight
    for sight in view.memories:
        if sight.name == name:
            return sight
    return None


def block(view: View, ahead: int, up: int, right: int) -> str:
    """Name of a block of the 3x3x3 around the feet, in the eight-way direction one looks; each -1, 0 or 1."""
    angle = math.radians(view.yaw)
    dx = round(-math.sin(angle) * ahead - math.cos(angle) * right)
    dz = round(math.cos(angle) * ahead - math.sin(angle) * right)
    x, y, z = (max(-1, min(1, v)) + 1 for v in (dx, up, dz))
    return view.voxels[x * 9 + y * 3 + z]


LIBRARY: Mapping[str, Any] = {
    "NOOP": NOOP, "act": act, "move": move, "turn": turn, "face": face, "use": use, "attack": attack,
    "repeat": repeat, "craft": craft, "smelt": smelt, "equip": equip, "place": place, "nearest": nearest,
    "remembered": remembered, "block": block,
}  # fmt: skip

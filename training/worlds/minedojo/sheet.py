"""The world sheet: what the agents are told about Minecraft for one task, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rlgpt.training.worlds.minedojo.features import ITEMS, TARGETS
from rlgpt.training.worlds.minedojo.scripts import LONG_ATTACK
from rlgpt.training.worlds.minedojo.tasks import ClientTask, split_count
from rlgpt.training.worlds.protocol import Primitive, Script
from rlgpt.training.worlds.script_book import entries

VIEW_DOC = """\
view.step, view.time_left      env steps since the start, and left (one step is 50 ms of the game)
view.health, .food (0-20), .armor (0-20), .oxygen (0-300)
view.x, .y, .z                 position in blocks; y is up
view.yaw, view.pitch           degrees; yaw 0 looks along +z and grows to the right, pitch grows downwards
view.inventory                 item -> count, e.g. view.inventory.get("log", 0)
view.slots                     tuple of (slot, name, quantity); view.holding is the item in the hand, "air" if none
view.near_table, .near_furnace True if one is close enough to craft or smelt
view.sights                    what the lidar meets now, nearest first, one per name; each has name, is_animal,
                               distance (blocks from the eye), turn, tilt (degrees to face it), age (0)
view.memories                  the same for what was seen before and is not now, age env steps ago
view.voxels                    27 block names around the feet; use block(view, ahead, up, right)
view.craftable                 items that can be crafted or smelted now
view.equippable, view.placeable  slots whose item can be taken in the hand, or placed, now
view.biome, view.light (0-15), view.refused (why the last command was not executed, else "")"""

LIBRARY_DOC = """\
move(way="forward", turn=0, tilt=0, jump=False, sprint=False)   way: forward, back, left, right, stay
turn(degrees, tilt=0)          right is positive; the camera moves in bins of 15 degrees
act(way, turn, tilt, jump, sprint, sneak, do)                   all at once; do: none, use, attack, drop
face(sight, do="none")         turn and tilt towards a sight
use(), attack()                one env step: `view = yield attack()`
use(n), attack(n), repeat(command, n)                           n env steps: `view = yield from attack(n)`
craft(item), smelt(item)       smelt takes the result, e.g. smelt("iron_ingot")
equip(view, item), place(view, item)                            place puts a block where the eye meets a surface
nearest(view, name), remembered(view, name)                     a sight or None
block(view, ahead, up, right)  name of one of the 27 blocks, each coordinate -1, 0 or 1
NOOP                           do nothing for one env step
A command is a tuple of 8 integers (forward/back, left/right, jump/sneak/sprint, pitch bin, yaw bin, function,
craft item, slot) and may also be yielded as such."""

SHORT_OPTION, LONG_OPTION = 16, 80
"""Env steps for which a policy's option may run: a block breaks only under a blow that is held without a break."""

DANGERS = (
    "zombies, skeletons, spiders and creepers come at night and in the dark",
    "lava and deep falls kill",
    "animals walk; the aim point of a sight is where the animal is now",
    "breaking a log by hand takes 60 env steps of uninterrupted attack at the same block",
)


def milestone(name: str) -> dict[str, str]:
    """A milestone with its meaning and, where the view shows it, its predicate."""
    if name in ("near_table", "near_furnace"):
        return {"name": name, "doc": f"A {name[5:]} is close enough to use.", "done_when": f"view.{name}"}
    count, item = split_count(name)
    if name.startswith(("kill ", "use ")) or name == "success":
        return {"name": name, "doc": f"{name.replace('_', ' ').capitalize()}; the game itself keeps count."}
    return {
        "name": name,
        "doc": f"Get {count} {item.replace('_', ' ')} more than at the start.",
        "done_when": f'view.inventory.get("{item}", 0) >= start.inventory.get("{item}", 0) + {count}',
    }


def for_task(
    client_task: ClientTask, catalogue: Mapping[str, Any], primitives: Sequence[Primitive], scripts: Sequence[Script],
    games: int,
) -> dict[str, Any]:  # fmt: skip
    """Items and recipes are those that the task's milestones lead through, not all 244."""
    recipes: Mapping[str, Any] = catalogue.get("recipes", {})
    items_to_look_up = [name.split(" ")[-1] for name in client_task.task.milestones]
    recipes_shown: dict[str, Any] = {}
    while items_to_look_up:
        item = items_to_look_up.pop()
        if item in recipes and item not in recipes_shown:
            recipe = recipes[item]
            near = [recipe["near"]] if recipe["near"] else []
            gives = {item: recipe["gives"]}
            recipes_shown[item] = {"name": item, "needs": recipe["needs"], "gives": gives, "near": near}
            items_to_look_up.extend(recipe["needs"])
    items = sorted({*ITEMS, *recipes_shown, *(need for recipe in recipes_shown.values() for need in recipe["needs"])})
    has_long_attack = any(LONG_ATTACK in source for script in scripts for source in script.sources)
    return {
        "task": client_task.task.id,
        "prompt": client_task.task.prompt,
        "guidance": client_task.guidance,
        "items": items,
        "recipes": list(recipes_shown.values()),
        "targets": list(TARGETS),
        "primitives": [asdict(primitive) for primitive in primitives],
        "view_doc": VIEW_DOC,
        "library_doc": LIBRARY_DOC,
        "dangers": list(DANGERS),
        "milestones": [milestone(name) for name in client_task.task.milestones],
        "start": {slot: dict(entry) for slot, entry in client_task.task.start.items()},
        "scripts": entries(scripts),
        "limits": {
            "horizon": client_task.task.horizon,
            "ms_per_step": 50,
            "camera_bin_degrees": 15,
            "option_cap": LONG_OPTION if has_long_attack else SHORT_OPTION,
            "games_at_once": games,
        },
    }

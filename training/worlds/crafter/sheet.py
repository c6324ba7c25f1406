"""The world sheet: what agents are told about Crafter, generated from its own data where it has them."""

from __future__ import annotations

import inspect
from typing import Any

from rlgpt.training.worlds.crafter import data, names
from rlgpt.training.worlds.crafter.library import LIBRARY
from rlgpt.training.worlds.crafter.scripts import SCRIPTS
from rlgpt.training.worlds.crafter.tasks import NIGHT_OVER, SURVIVED, TASKS
from rlgpt.training.worlds.crafter.view import View
from rlgpt.training.worlds.protocol import Primitive, Task
from rlgpt.training.worlds.script_book import entries

_DO = "Use the faced cell: collect its material, hit its creature, drink its water, eat its ripe plant."
_DOCS = {
    "noop": "Wait one step.",
    "do": _DO,
    "sleep": "Fall asleep; only when energy is below 9. Asleep, every action is ignored until energy is 9 or "
    "something hurts; a zombie hits a sleeper for 7.",
} | {
    f"move_{way}": (f"Face {way}, and walk one cell {way} if it is free grass, sand or path. Walking into lava kills.")
    for way in names.FACINGS
}


def _amounts(uses: dict[str, int]) -> str:
    return " and ".join(f"{count} {item}" for item, count in uses.items())


def _primitive(action: str) -> Primitive:
    verb, _, item = action.partition("_")
    if verb == "place":
        rule = data.PLACE[item]
        where = ", ".join(rule["where"])
        return Primitive(action, f"Place a {item} on the faced cell; takes {_amounts(rule['uses'])}, on {where}.")
    if verb == "make":
        rule = data.MAKE[item]
        near = " and a ".join(rule["nearby"])
        return Primitive(action, f"Make one; takes {_amounts(rule['uses'])}, with a {near} within one cell.")
    return Primitive(action, _DOCS[action])


PRIMITIVES = tuple(_primitive(action) for action in names.ACTIONS)


def _recipes() -> list[dict[str, Any]]:
    """name, primitive, needs (consumed), requires (kept), near, gives."""
    recipes: list[dict[str, Any]] = []
    for material, rule in data.COLLECT.items():
        (item,) = rule["receive"]
        recipes.append(
            {
                "name": f"collect_{item}",
                "primitive": "do",
                "from": material,
                "needs": {},
                "requires": dict(rule["require"]),
                "near": [],
                "gives": dict(rule["receive"]),
                "probability": rule.get("probability", 1.0),
            }
        )
    for kind, rules in (("place", data.PLACE), ("make", data.MAKE)):
        for item, rule in rules.items():
            if f"{kind}_{item}" in names.ACTIONS:
                recipes.append(
                    {
                        "name": f"{kind}_{item}",
                        "primitive": f"{kind}_{item}",
                        "needs": dict(rule["uses"]),
                        "requires": {},
                        "near": list(rule.get("nearby", ())),
                        "gives": {} if item == "stone" else {item: 1},
                        "probability": 1.0,
                    }
                )
    return recipes


_ITEM_DOCS = {
    "sapling": "from grass, one time in ten; grows into a plant",
    "wood": "from trees",
    "stone": "from stone; blocks creatures when placed, also on water and lava",
    "coal": "black dots in the mountains",
    "iron": "orange dots, often along tunnels",
    "diamond": "white, rare, deep in the mountains, often beside water or lava",
}
DANGERS = (
    "distances here are |dx| + |dy|. Whatever is 18 cells away or more stands still: it neither moves nor grows.",
    "zombie: 5 health, so 5 blows kill it, with a wood, stone or iron sword 3, 2 or 1. Within 8 cells it takes one "
    "step towards you in 9 of 10 steps: as fast as you. At distance 1 (not diagonally) it hits at once for 2 and then "
    "every 6 steps; a sleeper for 7, who wakes up. In each step you act first, then it moves and hits: no blow comes "
    "before its first 2 damage, only a solid cell between you saves them. Born on grass, 6 cells away or more, in "
    "areas of 12 x 12 cells with 50 of grass: up to 1 an area where daylight is below 0.83, 2 below 0.5, 3 below "
    "0.17; the others vanish.",
    "skeleton: 3 health, so 3 blows, with a sword 2, 1 or 1. Born on `path`, 7 cells away or more: in tunnels, and "
    "where you dug 6 cells or more. Within 3 cells it backs away if it can; within 5 it shoots in half of the steps, "
    "an arrow in 4 steps at most; within 8 it comes closer in 3 of 10.",
    "arrow: flies one cell a step in a straight line, over anything free, also water and lava; 2 damage to whatever "
    "is in its way. A placed stone stops it; a table or furnace that it hits becomes path.",
    "plant: ripe after 300 steps within 17 cells of you. Only a ripe one is eaten (4 food), and it grows again; `do` "
    "on a sapling does nothing. A zombie, skeleton or cow on one of its 4 neighbour cells eats it at once: put stones "
    "there.",
    "lava: walking onto it kills at once.",
    "needs: food, drink and energy fall by 1 every 26, 21 and 31 steps awake, food and drink half as fast asleep. "
    "Asleep energy rises by 1 every 11 steps. While none of them is 0, health rises by 1 every 26 steps (asleep 13); "
    "while one is 0 it falls by 1 every 16 steps (asleep 31).",
    "meals: water gives 1 drink, a cow 6 food. A cow has 3 health (blows as for a skeleton), takes a random step in "
    "half of the steps and harms nobody.",
    "night: a day lasts 300 steps and starts in the morning; it is dark from about step 180 to 270, and "
    "zombies are born on dark grass.",
)


def view_doc() -> str:
    """One line per attribute of the view, from its own docstrings."""
    lines = []
    for name, member in vars(View).items():
        if name.startswith("_"):
            continue
        text = " ".join((inspect.getdoc(member) or "").split())
        call = f"{name}{inspect.signature(member, eval_str=True)}".replace("self, ", "") if callable(member) else name
        lines.append(f"view.{call}: {text}")
    return "\n".join(lines)


def library_doc() -> str:
    lines = []
    for name, function in LIBRARY.items():
        text = " ".join((inspect.getdoc(function) or "").split())
        lines.append(f"{name}{inspect.signature(function, eval_str=True)}: {text}")
    return "\n".join(lines).replace("view: object", "view")


def milestones_for(task: Task) -> tuple[str, ...]:
    """All the world's milestones, the task's own first."""
    return tuple(dict.fromkeys((*task.milestones, *names.ACHIEVEMENTS, SURVIVED)))


def _done_when(milestone: str) -> str:
    if milestone == SURVIVED:
        return f"view.steps >= {NIGHT_OVER} and view.health > 0"
    return f'"{milestone}" in view.achieved'


def _milestone(name: str) -> dict[str, str]:
    return {"name": name, "doc": TASKS[name].prompt, "done_when": _done_when(name)}


def sheet(task: Task) -> dict[str, Any]:
    """See `protocol.World.sheet`; also `materials` and `creatures`, the names that the library takes."""
    return {
        "items": [{"name": item, "doc": _ITEM_DOCS.get(item, "a tool, kept for ever")} for item in names.INVENTORY],
        "materials": list(names.MATERIALS[1:]),
        "creatures": list(names.OBJECTS[1:]),
        "recipes": _recipes(),
        "primitives": [{"name": primitive.name, "doc": primitive.doc} for primitive in PRIMITIVES],
        "view_doc": view_doc(),
        "library_doc": library_doc(),
        "dangers": list(DANGERS),
        "milestones": [_milestone(name) for name in milestones_for(task)],
        "scripts": entries(SCRIPTS),
        "limits": {
            "horizon": task.horizon,
            "inventory": "at most 9 of each item; what a recipe does not list under needs is kept",
            "window": "9 wide, 7 high; beyond it only what was seen before",
            "mask": "make_* and place_* are masked where they would do nothing, all but noop while asleep",
        },
    }

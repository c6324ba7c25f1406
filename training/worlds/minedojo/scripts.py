"""The script book: what a competent programmer would ship first for Minecraft, shortest versions first.

Each goal is written for one name (a cow, a log); the world fills in the task's own. Nothing here knows the
terrain: code sees the lidar, the 27 blocks around the feet and the inventory, like the policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlgpt.training.worlds.minedojo.tasks import SOURCES, ClientTask, counted
from rlgpt.training.worlds.protocol import Script

MOBS = frozenset({"cow", "sheep", "pig", "chicken", "zombie", "skeleton", "spider", "creeper"})

HELD = "attack(70)"
"""Long enough for a log by hand: 60 env steps."""

_FIND = """def find_{name}(view):
    for _ in range(24):
        if nearest(view, "{name}") is not None:
            return
        view = yield turn(15)
    view = yield from repeat(move("forward"), 20)
"""
_FIND_WALKING = """def find_{name}(view):
    for _ in range(8):
        if nearest(view, "{name}") is not None:
            return
        view = yield move("forward", turn=45)
    view = yield from repeat(move("forward", sprint=True), 20)
    for _ in range(24):
        if nearest(view, "{name}") is not None:
            return
        view = yield turn(15)
"""
_APPROACH = """def approach_{name}(view):
    for _ in range(60):
        seen = nearest(view, "{name}")
        if seen is None or seen.distance < {reach}:
            return
        before = view
        view = yield move("forward", turn=seen.turn)
        if abs(view.x - before.x) + abs(view.z - before.z) < 0.05:
            return
"""
_APPROACH_MEMORY = """def approach_{name}(view):
    for _ in range(60):
        seen = remembered(view, "{name}")
        if seen is None or seen.distance < {reach}:
            return
        before = view
        view = yield move("forward", turn=seen.turn, tilt=15 - view.pitch)
        if abs(view.x - before.x) + abs(view.z - before.z) < 0.05:
            return
"""
_USE_ON = """def {verb}_{name}(view):
    for _ in range(16):
        seen = nearest(view, "{name}")
        if seen is None:
            return
        view = yield face(seen, do="use")
"""
_USE_ON_CHASING = """def {verb}_{name}(view):
    for _ in range(60):
        seen = remembered(view, "{name}")
        if seen is None:
            return
        if seen.distance > 2.5:
            view = yield move("forward", turn=seen.turn, tilt=15 - view.pitch)
        else:
            view = yield face(seen, do="use")
"""
_HIT = """def hit_{name}(view):
    for _ in range(40):
        seen = nearest(view, "{name}")
        if seen is None:
            return
        if seen.distance > 2.5:
            view = yield move("forward", turn=seen.turn)
        else:
            view = yield face(seen, do="attack")
"""
_COLLECT = """def collect_item(view):
    for _ in range(20):
        seen = nearest(view, "item")
        if seen is None:
            return
        view = yield move("forward", turn=seen.turn)
"""
_CHOP = """def chop_{name}(view):
    seen = nearest(view, "{name}")
    if seen is None or seen.distance > 4:
        return
    if abs(seen.turn) > 8 or abs(seen.tilt) > 8:
        view = yield face(seen, do="attack")
    view = yield from attack(70)
"""
_CHOP_CLOSER = """def chop_{name}(view):
    seen = remembered(view, "{name}")
    if seen is None or seen.distance > 4:
        return
    if seen.distance > 2:
        view = yield move("forward", turn=seen.turn)
    elif abs(seen.turn) > 8 or abs(seen.tilt) > 8:
        view = yield face(seen, do="attack")
    view = yield from attack(70)
    view = yield from repeat(move("forward"), 8)
"""
_CRAFT = """def craft_{name}(view):
    yield craft("{name}")
"""
_PLACE = """def place_{name}(view):
    view = yield turn(0, tilt=45 - view.pitch)
    yield place(view, "{name}")
"""
_PLACE_ANYWHERE = """def place_{name}(view):
    for _ in range(8):
        for pitch in (45, 30):
            view = yield turn(0, tilt=pitch - view.pitch)
            view = yield place(view, "{name}")
            if view.{flag}:
                return
        view = yield turn(45)
"""
_EQUIP = """def hold_{name}(view):
    yield equip(view, "{name}")
"""


def _in_sight(name: str) -> str:
    return f'nearest(view, "{name}") is not None'


def _within_or_stopped(name: str, reach: float) -> str:
    """In reach, or in sight behind something that has to be got over or around."""
    stopped = 'block(view, 1, 0, 0) not in ("air", "water", "tallgrass", "tall_grass", "flower")'
    return f'{_in_sight(name)} and (nearest(view, "{name}").distance < {reach} or {stopped})'


def _more(item: str, count: int = 1) -> str:
    return f'view.inventory.get("{item}", 0) >= start.inventory.get("{item}", 0) + {count}'


def _reach(name: str, reach: float) -> list[Script]:
    """Find something and walk up to it."""
    return [
        Script(f"find_{name}", f"Bring a {name} into sight.", _in_sight(name),
               (_FIND.format(name=name), _FIND_WALKING.format(name=name)), gives=()),
        Script(f"approach_{name}", f"Walk up to the {name} in sight, as far as one can walk.",
               _within_or_stopped(name, reach + 0.3),
               (_APPROACH.format(name=name, reach=reach), _APPROACH_MEMORY.format(name=name, reach=reach)),
               needs=(f"find_{name}",)),
    ]  # fmt: skip


def _hold(tool: str) -> Script:
    return Script(f"hold_{tool}", f"Take the {tool} in the hand.", f'view.holding == "{tool}"',
                  (_EQUIP.format(name=tool),))  # fmt: skip


def _interact(name: str, verb: str, item: str, tool: str) -> list[Script]:
    """Find an animal, walk up to it and use a tool on it."""
    return [
        *_reach(name, 2.5),
        Script(f"{verb}_{name}", f"Use the {tool} on the {name}.", _more(item),
               tuple(source.format(name=name, verb=verb) for source in (_USE_ON, _USE_ON_CHASING)),
               needs=(f"approach_{name}",), gives=(item,)),
    ]  # fmt: skip


def _hunt(name: str, gives: str, done: str) -> list[Script]:
    return [
        *_reach(name, 2.5),
        Script(f"hit_{name}", f"Strike the {name} until it is dead.", done, (_HIT.format(name=name),),
               needs=(f"approach_{name}",), gives=(gives,), hard=True),
        Script("collect_item", "Pick up what lies about.", done, (_COLLECT,), needs=(f"hit_{name}",), gives=(gives,)),
    ]  # fmt: skip


def _gather(block: str, item: str, count: int) -> list[Script]:
    return [
        *_reach(block, 1.2),
        Script(f"chop_{block}", f"Break the {block} and pick up the {item}.", _more(item, count),
               (_CHOP.format(name=block), _CHOP_CLOSER.format(name=block)),
               needs=(f"approach_{block}",), gives=(item,)),
    ]  # fmt: skip


def _place(block: str, flag: str) -> tuple[str, ...]:
    return tuple(source.format(name=block, flag=flag) for source in (_PLACE, _PLACE_ANYWHERE))


def _make(item: str, recipes: Mapping[str, Any]) -> list[Script]:
    """Craft an item, with its table put down first where one is needed."""
    recipe = recipes.get(item)
    if recipe is None:
        return []
    made: list[Script] = []
    near = recipe["near"]
    if near:
        flag = "near_table" if near == "crafting_table" else "near_furnace"
        made.append(Script(f"place_{near}", f"Put the {near} on the ground.", f"view.{flag}",
                           _place(near, flag), gives=(flag,)))  # fmt: skip
    verb = "smelt" if near == "furnace" else "craft"
    made.append(Script(f"craft_{item}", f"Make the {item}.", _more(item),
                       (_CRAFT.format(name=item).replace("yield craft", f"yield {verb}"),),
                       needs=tuple(s.name for s in made), gives=(item,)))  # fmt: skip
    return made


def for_task(made: ClientTask, recipes: Mapping[str, Any]) -> tuple[Script, ...]:
    """The scripts for the milestones of a task, in the order in which they are needed."""
    book: dict[str, Script] = {}
    for milestone in made.task.milestones:
        for script in _for_milestone(milestone, made, recipes):
            book.setdefault(script.name, script)
    return tuple(book.values())


def _for_milestone(milestone: str, made: ClientTask, recipes: Mapping[str, Any]) -> list[Script]:
    words = milestone.split(" ")
    if words[0] == "kill":
        return _hunt(words[1], milestone, f"{_in_sight(words[1])} is False") if words[1] in MOBS else []
    count, item = counted(milestone)
    if words[0] == "use":
        item = words[-1]
    if item == "milk_bucket":
        return _interact("cow", "milk", "milk_bucket", "bucket")
    if item == "wool" and _starts_with(made, "shears"):
        return [*_interact("sheep", "shear", "wool", "shears"),
                Script("collect_item", "Pick up the wool that lies about.", _more("wool"), (_COLLECT,),
                       needs=("shear_sheep",), gives=("wool",))]  # fmt: skip
    source = SOURCES.get(item, item)
    if source in MOBS:
        return _hunt(source, item, _more(item, count))
    if milestone in ("near_table", "near_furnace"):
        block = "crafting_table" if milestone == "near_table" else "furnace"
        return [Script(f"place_{block}", f"Put the {block} on the ground.", f"view.{milestone}",
                       _place(block, milestone), gives=(milestone,))]  # fmt: skip
    if item in ("log", "cobblestone", "coal", "iron_ore", "diamond", "dirt", "sand"):
        return _gather(source, item, count)
    return _make(item, recipes)


def _starts_with(made: ClientTask, tool: str) -> bool:
    return any(entry.get("name") == tool for entry in made.task.start.values() if isinstance(entry, Mapping)) or (
        tool in made.task.id or "shears" in made.task.milestones
    )

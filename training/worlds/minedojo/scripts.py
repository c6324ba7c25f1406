"""The script book: for each milestone the code that a programmer would write first, the shortest version first.

The sources are templates for one name (a cow, a log), filled in for the task. The code reads what the policy reads too:
the lidar, the 27 blocks around the feet and the inventory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlgpt.training.worlds.minedojo.tasks import CRAFTED, SOURCES, ClientTask, split_count
from rlgpt.training.worlds.protocol import Script

MOBS = frozenset({"cow", "sheep", "pig", "chicken", "zombie", "skeleton", "spider", "creeper"})

PLACED = {"near_table": "crafting_table", "near_furnace": "furnace"}
"""Milestones that a block on the ground reaches."""
NEVER = "False"
"""The predicate of a milestone that the view does not show; only the game's own success test can end it."""
MAX_PREDICATE_LENGTH = 500
"""Characters of a predicate, so that a predicate with more around it still fits into a plan."""
LONG_ATTACK = "attack(70)"
"""Breaking a log by hand takes 60 env steps of attack."""

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


def _in_sight(name: str) -> str:
    return f'nearest(view, "{name}") is not None'


def _more(item: str, count: int = 1) -> str:
    return f'view.inventory.get("{item}", 0) >= start.inventory.get("{item}", 0) + {count}'


def predicates(milestones: Sequence[str], recipes: Mapping[str, Any]) -> dict[str, str]:
    """Milestone -> its predicate.

    An item that later milestones are made of is done while the inventory holds as much as they still need: so it is not
    fetched again after it was used up. The goal, and an item that nothing is made of, is done when it was gained."""
    done_when_of: dict[str, str] = {}
    for milestone in reversed(milestones):
        count, item = split_count(milestone)
        numbers_needed = {later: _needs(later, recipes).get(item, 0) for later in done_when_of}
        count_needed = " + ".join(
            f"{number} * (not ({done_when_of[later]}))" for later, number in numbers_needed.items() if number
        )
        text = f"view.{milestone}" if milestone in PLACED else f'view.inventory.get("{item}", 0) >= {count_needed}'
        is_usable = milestone in PLACED or (count_needed and len(text) <= MAX_PREDICATE_LENGTH)
        done_when_of[milestone] = text if is_usable else _more(item, count)
    return done_when_of


def _needs(milestone: str, recipes: Mapping[str, Any]) -> Mapping[str, int]:
    if milestone in PLACED:
        return {PLACED[milestone]: 1}
    needs: Mapping[str, int] = recipes.get(split_count(milestone)[1], {}).get("needs", {})
    return needs


def _reach(name: str, reach: float, done_when: str) -> list[Script]:
    """Find something and walk up to it, unless `done_when`, the predicate of what it is needed for, holds already."""
    near = f'{_in_sight(name)} and nearest(view, "{name}").distance < {reach + 0.3}'
    return [
        Script(f"find_{name}", f"Bring a {name} into sight.", f"({done_when}) or {_in_sight(name)}",
               (_FIND.format(name=name), _FIND_WALKING.format(name=name)), gives=()),
        Script(f"approach_{name}", f"Get up to the {name} in sight.", f"({done_when}) or {near}",
               (_APPROACH.format(name=name, reach=reach), _APPROACH_MEMORY.format(name=name, reach=reach)),
               needs=(f"find_{name}",)),
    ]  # fmt: skip


def _interact(name: str, verb: str, item: str, tool: str, done_when: str) -> list[Script]:
    """Find an animal, walk up to it and use a tool on it."""
    return [
        *_reach(name, 2.5, done_when),
        Script(f"{verb}_{name}", f"Use the {tool} on the {name}.", done_when,
               tuple(source.format(name=name, verb=verb) for source in (_USE_ON, _USE_ON_CHASING)),
               needs=(f"approach_{name}",), gives=(item,)),
    ]  # fmt: skip


def _hunt(name: str, gives: str, done_when: str) -> list[Script]:
    return [
        *_reach(name, 2.5, done_when),
        Script(f"hit_{name}", f"Strike the {name} until it is dead.", done_when, (_HIT.format(name=name),),
               needs=(f"approach_{name}",), gives=(gives,), hard=True),
        Script("collect_item", "Pick up what lies about.", done_when, (_COLLECT,),
               needs=(f"hit_{name}",), gives=(gives,)),
    ]  # fmt: skip


def _gather(block: str, item: str, done_when: str) -> list[Script]:
    return [
        *_reach(block, 1.2, done_when),
        Script(f"chop_{block}", f"Break the {block} and pick up the {item}.", done_when,
               (_CHOP.format(name=block), _CHOP_CLOSER.format(name=block)),
               needs=(f"approach_{block}",), gives=(item,)),
    ]  # fmt: skip


def _place(block: str, flag: str) -> tuple[str, ...]:
    return tuple(source.format(name=block, flag=flag) for source in (_PLACE, _PLACE_ANYWHERE))


def _put_down(flag: str) -> Script:
    block = PLACED[flag]
    return Script(f"place_{block}", f"Put the {block} on the ground.", f"view.{flag}", _place(block, flag),
                  gives=(flag,))  # fmt: skip


def _make(item: str, done_when: str, recipes: Mapping[str, Any]) -> list[Script]:
    """Craft an item, with its table put down first where one is needed."""
    recipe = recipes.get(item)
    if recipe is None:
        return []
    scripts = [_put_down(flag) for flag, block in PLACED.items() if block == recipe["near"]]
    verb = "smelt" if recipe["near"] == "furnace" else "craft"
    scripts.append(Script(f"craft_{item}", f"Make the {item}.", done_when,
                       (_CRAFT.format(name=item).replace("yield craft", f"yield {verb}"),),
                       needs=tuple(s.name for s in scripts), gives=(item,)))  # fmt: skip
    return scripts


def for_task(client_task: ClientTask, recipes: Mapping[str, Any]) -> tuple[Script, ...]:
    """The scripts for the milestones of a task, in the order in which they are needed."""
    book: dict[str, Script] = {}
    done_when_of = predicates(client_task.chain or client_task.task.milestones, recipes)
    for milestone in client_task.task.milestones:
        for script in _for_milestone(milestone, done_when_of[milestone], client_task, recipes):
            book.setdefault(script.name, script)
    return tuple(book.values())


def _for_milestone(milestone: str, done_when: str, client_task: ClientTask, recipes: Mapping[str, Any]) -> list[Script]:
    words = milestone.split(" ")
    if words[0] == "kill":
        return _hunt(words[1], milestone, NEVER) if words[1] in MOBS else []
    item = words[-1]
    if item == "milk_bucket":
        return _interact("cow", "milk", "milk_bucket", "bucket", done_when)
    if item == "wool" and _starts_with(client_task, "shears"):
        return [*_interact("sheep", "shear", "wool", "shears", done_when),
                Script("collect_item", "Pick up the wool that lies about.", done_when, (_COLLECT,),
                       needs=("shear_sheep",), gives=("wool",))]  # fmt: skip
    source = SOURCES.get(item, item)
    if source in MOBS and item not in CRAFTED:
        return _hunt(source, item, done_when)
    if milestone in PLACED:
        return [_put_down(milestone)]
    if item in ("log", "cobblestone", "coal", "iron_ore", "diamond", "dirt", "sand"):
        return _gather(source, item, done_when)
    return _make(item, done_when, recipes)


def _starts_with(client_task: ClientTask, tool: str) -> bool:
    task = client_task.task
    return (
        any(entry.get("name") == tool for entry in task.start.values() if isinstance(entry, Mapping))
        or tool in task.id
        or "shears" in task.milestones
    )

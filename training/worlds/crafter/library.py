"""Pure functions for coded actions: where things are and the next primitive on the way there.

Ways are found by flood fill on bit boards: one Python integer holds a bit per remembered cell, so that a
whole ring of the search is a few shifts. Cost is bounded by the 5,040 cells of the map memory.
Standard library only. Arguments are checked: these functions are called by code nobody trusts.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rlgpt.training.worlds.crafter import names
from rlgpt.training.worlds.crafter.view import View

_ROW = names.MEMORY_WIDTH
_CODE = {name: code for code, name in enumerate(names.CATEGORIES) if code}
_FIRST_OBJECT = len(names.MATERIALS)
_MOVES = ("move_left", "move_right", "move_up", "move_down")
_SHIFTS = (-1, 1, -_ROW, _ROW)
_WALKABLE = frozenset(("grass", "sand", "path"))
_PLACEABLE = _WALKABLE | {"water", "lava"}
Names = tuple[str, ...]
_ENEMIES = ("zombie", "skeleton")
_SOLID = {"stone": "wood_pickaxe", "coal": "wood_pickaxe", "iron": "stone_pickaxe", "diamond": "iron_pickaxe"}
_DIG_STEPS = 3
"""Turn, dig, walk."""
_MOST_STEPS = 400


_INSIDE = sum((1 << names.AREA) - 1 << (y + names.REACH_Y) * _ROW + names.REACH_X for y in range(names.AREA))


def _board(view: View, wanted: frozenset[str]) -> int:
    """Bit board of the remembered cells of some materials."""
    board = 0
    for name in wanted:
        board |= view._cells(_CODE[name])
    return board


def _around(board: int) -> int:
    return board << 1 | board >> 1 | board << _ROW | board >> _ROW


def _agent(view: View) -> int:
    x, y = view.position
    return (y + names.REACH_Y) * _ROW + x + names.REACH_X


def _names(wanted: tuple[Any, ...]) -> frozenset[str]:
    for name in wanted:
        if type(name) is not str or name not in _CODE:
            raise ValueError(f"{str(name)[:30]!r} is no material or object; they are {', '.join(_CODE)}.")
    if not wanted:
        raise ValueError("Name at least one material or object.")
    return frozenset(wanted)


def _avoided(wanted: object) -> frozenset[str]:
    if type(wanted) is not tuple or not set(wanted) <= _WALKABLE:
        raise ValueError("avoid takes a tuple of grass, sand and path")
    return frozenset(wanted)


def _look(view: object) -> View:
    if type(view) is not View:
        raise TypeError("The first argument must be the view.")
    return view


class _Ground:
    """The boards of one question."""

    __slots__ = ("agent", "dig", "here", "occupied", "targets", "view", "walk")

    def __init__(self, view: View, wanted: frozenset[str], dig: object, bridge: object, avoid: object = ()) -> None:
        self.view = view
        self.agent = _agent(view)
        self.here = 1 << self.agent
        self.occupied = self.targets = 0
        for name, dx, dy in view.objects:
            bit = 1 << self.agent + dy * _ROW + dx
            self.occupied |= bit
            if name in wanted:
                self.targets |= bit
        materials = frozenset(name for name in wanted if _CODE[name] < _FIRST_OBJECT)
        if materials:
            self.targets |= _board(view, materials) & ~self.occupied
        self.walk = _board(view, _WALKABLE - _avoided(avoid)) & ~self.occupied
        self.dig = 0
        if dig is True:
            items = view.inventory
            soft = frozenset(name for name, tool in _SOLID.items() if items[tool])
            if soft:
                self.dig = _board(view, soft)
            if bridge is True and items["stone"] and items["wood_pickaxe"]:
                self.dig |= _board(view, frozenset(("water",))) & ~self.occupied

    def route(self, goal: int) -> tuple[int, ...] | None:
        """Cells from the agent to the nearest cell of the board `goal`, both included."""
        layers = [self.here]
        if self.here & goal:
            return (self.agent,)
        seen = self.here
        late: dict[int, int] = {}
        frontier = self.here
        while len(layers) < _MOST_STEPS and (frontier or late):
            ring = _around(frontier) & ~seen
            if self.dig and ring & self.dig:
                due = len(layers) + _DIG_STEPS - 1
                late[due] = late.get(due, 0) | ring & self.dig
            frontier = ring & self.walk
            if late:
                frontier |= late.pop(len(layers), 0) & ~seen
            seen |= frontier
            layers.append(frontier)
            if frontier & goal:
                return self._back(layers, frontier & goal)
        return None

    def _back(self, layers: list[int], reached: int) -> tuple[int, ...]:
        bit = 1 << reached.bit_length() - 1
        cells = [bit.bit_length() - 1]
        at = len(layers) - 1
        while at:
            at -= _DIG_STEPS if bit & self.dig else 1
            before = _around(bit) & layers[at]
            bit = 1 << before.bit_length() - 1
            cells.append(bit.bit_length() - 1)
        return tuple(reversed(cells))

    def primitive(self, cell: int) -> str:
        """What to do now to get to the neighbouring cell: turn or walk, dig, or bridge."""
        way = _SHIFTS.index(cell - self.agent)
        if self.dig >> cell & 1 and self.view.facing == names.FACINGS[way]:
            return "place_stone" if self.view.front == "water" else "do"
        return _MOVES[way]


def nearest(view: object, *wanted: str) -> tuple[int, int] | None:
    """(dx, dy) of the nearest remembered cell or visible object of these names, as the crow walks."""
    seen = _look(view)
    ground = _Ground(seen, _names(wanted), False, False)
    if not ground.targets:
        return None
    board, ring, reach = ground.targets, ground.here, ground.here
    for _ in range(2 * names.AREA):
        if ring & board:
            hit = ring & board
            cell = hit.bit_length() - 1
            x, y = seen.position
            return cell % _ROW - names.REACH_X - x, cell // _ROW - names.REACH_Y - y
        ring = _around(ring) & _INSIDE & ~reach
        reach |= ring
    return None


def _distance(ground: _Ground, route: tuple[int, ...]) -> int:
    return sum(_DIG_STEPS if ground.dig >> cell & 1 else 1 for cell in route[1:])


def approach(view: object, *wanted: str, dig: bool = False, bridge: bool = False, avoid: Names = ()) -> str | None:
    """The next primitive that brings the agent to face the nearest reachable cell or object of these
    names, None if none is known or reachable. With `dig` also through stone and ore that the pickaxes in
    the inventory can mine, with `bridge` also over water by placing and mining a stone, and never over
    the materials of the tuple `avoid`."""
    seen = _look(view)
    ground = _Ground(seen, _names(wanted), dig, bridge, avoid)
    route = ground.route(_around(ground.targets) & _INSIDE) if ground.targets else None
    if route is None:
        return None
    if len(route) > 1:
        return ground.primitive(route[1])
    for way, shift in enumerate(_SHIFTS):
        if ground.targets >> ground.agent + shift & 1:
            return _MOVES[way]
    return None


def steps_to(view: object, *wanted: str, dig: bool = False, bridge: bool = False, avoid: Names = ()) -> int | None:
    """Env steps until the agent stands next to the nearest reachable target, None if there is no way."""
    ground = _Ground(_look(view), _names(wanted), dig, bridge, avoid)
    route = ground.route(_around(ground.targets) & _INSIDE) if ground.targets else None
    return None if route is None else _distance(ground, route)


def go(view: object, dx: int, dy: int, dig: bool = False, bridge: bool = False, avoid: Names = ()) -> str | None:
    """The next primitive on the way to the cell at an offset, None if there is no known way or the agent
    stands on it."""
    seen = _look(view)
    if not (type(dx) is int and type(dy) is int):
        raise TypeError("go(view, dx, dy) takes two ints")
    x, y = seen.position
    if not (0 <= x + dx < names.AREA and 0 <= y + dy < names.AREA):
        return None
    ground = _Ground(seen, frozenset(), dig, bridge, avoid)
    route = ground.route(1 << ground.agent + dy * _ROW + dx)
    return None if route is None or len(route) < 2 else ground.primitive(route[1])


def explore(view: object, *wanted: str, dig: bool = False, bridge: bool = False, avoid: Names = ()) -> str | None:
    """The next primitive towards the nearest known cell with an unseen neighbour; where possible one
    close to a cell of the wanted materials. None when everything in reach has been seen."""
    seen = _look(view)
    ground = _Ground(seen, frozenset(), dig, bridge, avoid)
    unseen = seen._cells(0) & _INSIDE
    edge = _around(unseen) & (ground.walk | ground.dig | ground.here)
    goals = [edge & ~ground.here]
    if wanted:
        near = _board(seen, _names(wanted))
        for _ in range(2):
            near |= _around(near)
        goals.insert(0, edge & near & ~ground.here)
    for goal in goals:
        route = ground.route(goal) if goal else None
        if route is not None and len(route) > 1:
            return ground.primitive(route[1])
    return None


def flee(view: object, *wanted: str) -> str | None:
    """The move to a free neighbouring cell furthest from the visible objects of these names, None if none
    is in sight or no move helps."""
    seen = _look(view)
    feared = _names(wanted)
    threats = [(dx, dy) for name, dx, dy in seen.objects if name in feared]
    if not threats:
        return None
    best, choice = min(abs(dx) + abs(dy) for dx, dy in threats), None
    for move, (mx, my) in zip(_MOVES, names.DIRECTIONS, strict=True):
        if seen.at(mx, my) in _WALKABLE:
            far = min(abs(dx - mx) + abs(dy - my) for dx, dy in threats)
            if far > best:
                best, choice = far, move
    return choice


def towards(dx: int, dy: int) -> str:
    """The move along the longer axis of an offset."""
    if not (type(dx) is int and type(dy) is int):
        raise TypeError("towards(dx, dy) takes two ints")
    if abs(dx) >= abs(dy):
        return "move_left" if dx < 0 else "move_right"
    return "move_up" if dy < 0 else "move_down"


def fight(view: object) -> str | None:
    """The next primitive against a zombie or skeleton on a neighbouring cell: turn to it, then hit. None
    if there is none."""
    seen = _look(view)
    if seen.front in _ENEMIES:
        return "do"
    for name, dx, dy in seen.objects:
        if name in _ENEMIES and abs(dx) + abs(dy) == 1:
            return towards(dx, dy)
    return None


def _room(start: int, free: int, most: int) -> bool:
    """Whether the free cells that can be walked to from `start` are at most `most`."""
    reach = start
    for _ in range(most + 1):
        wider = reach | _around(reach) & free
        if wider == reach:
            return reach.bit_count() <= most
        reach = wider
    return False


def _free(view: View) -> int:
    """Cells something could walk on, as far as is known."""
    return _board(view, _WALKABLE) | view._cells(0)


def enclosed(view: object, most: int = 8) -> bool:
    """Whether nothing can walk to the agent: the free cells around it are at most `most`, all known."""
    seen = _look(view)
    if type(most) is not int or not 1 <= most <= 64:
        raise ValueError("most must be an int from 1 to 64")
    return _room(1 << _agent(seen), _free(seen), most)


def shelter(view: object, most: int = 8) -> str | None:
    """The next primitive towards being enclosed: dig two cells into solid stone, step back, close the way
    with a stone. `noop` once enclosed; None without a wood pickaxe and a stone, or if no place is known."""
    seen = _look(view)
    if enclosed(seen, most):
        return "noop"
    items = seen.inventory
    if not items["stone"] or not items["wood_pickaxe"]:
        return None
    agent, free = _agent(seen), _free(seen)
    here = 1 << agent
    facing = names.FACINGS.index(seen.facing)
    ahead = 1 << agent + _SHIFTS[facing]
    if seen.front in _PLACEABLE and _room(here, free & ~ahead, most):
        return "place_stone"
    walkable = _board(seen, _WALKABLE) & ~_Ground(seen, frozenset(), False, False).occupied
    for way, shift in enumerate(_SHIFTS):
        beside, behind, beyond = 1 << agent + shift, 1 << agent - shift, 1 << agent + 2 * shift
        if not beside & walkable:
            continue
        if _room(beside, free & ~beyond, most) or _room(here, free & ~behind, most):
            return _MOVES[way]
    soft = _board(seen, frozenset(("stone",)))
    behind = 1 << agent - _SHIFTS[facing]
    if ahead & soft and _room(here, (free | ahead) & ~behind, most):
        return "do"
    return _burrow(seen, free, soft)


def _burrow(view: View, free: int, soft: int) -> str | None:
    """The way to the nearest cell from which two cells of stone with solid sides can be dug."""
    ground = _Ground(view, frozenset(), True, False)
    solid = _INSIDE & ~free
    sites: list[tuple[int, int]] = []
    for way, shift in enumerate(_SHIFTS):
        across = _ROW if abs(shift) == 1 else 1
        walled = soft & (solid << across) & (solid >> across)
        first = walled & _moved(walled & _moved(solid, -shift), -shift)
        sites.append((way, _moved(first, -shift) & (ground.walk | ground.here)))
    goal = 0
    for _, board in sites:
        goal |= board
    route = ground.route(goal) if goal else None
    if route is None:
        return None
    if len(route) > 1:
        return ground.primitive(route[1])
    way = next(way for way, board in sites if board & ground.here)
    return "do" if view.facing == names.FACINGS[way] else _MOVES[way]


def _moved(board: int, shift: int) -> int:
    return board << shift if shift > 0 else board >> -shift


LIBRARY: Mapping[str, Any] = MappingProxyType(
    {
        "nearest": nearest,
        "approach": approach,
        "steps_to": steps_to,
        "go": go,
        "explore": explore,
        "flee": flee,
        "towards": towards,
        "fight": fight,
        "enclosed": enclosed,
        "shelter": shelter,
    }
)
"""Everything generated code may name besides the host's own builtins."""

COSTS: Mapping[str, int] = MappingProxyType(
    {"nearest": 60, "approach": 100, "steps_to": 100, "go": 100, "explore": 150, "enclosed": 40, "shelter": 250}
)
"""What a call takes from the budget of work between two yields, where it is more than usual."""

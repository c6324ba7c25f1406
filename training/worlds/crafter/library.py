"""Pure functions for coded actions: where things are and the next primitive on the way there.

Paths are found by flood fill on bit boards: one Python integer holds a bit per remembered cell, so that a few shifts
extend the search by one step. Cost is bounded by the 5,040 cells of the map memory.
Standard library only. Arguments are checked, because generated code calls these functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from rlgpt.training.worlds.crafter import counting, names
from rlgpt.training.worlds.crafter.view import Boards, View

_ROW = names.MEMORY_WIDTH
_CODE = {name: code for code, name in enumerate(names.REMEMBERED) if code}
_REMEMBERED = frozenset(_CODE)
_CHECKED_NAMES: dict[tuple[Any, ...], frozenset[str]] = {}
"""Arguments that were checked before -> the set of their names. Bounded by `_CHECKED_NAMES_CAP`."""
_CHECKED_NAMES_CAP = 1_000
_NAMES = frozenset((*names.REMEMBERED[1:], *names.OBJECTS[1:]))
_MOVES = ("move_left", "move_right", "move_up", "move_down")
_SHIFTS = (-1, 1, -_ROW, _ROW)
_WALKABLE = frozenset(("grass", "sand", "path"))
_PLACEABLE = _WALKABLE | {"water", "lava"}
_ENEMIES = ("zombie", "skeleton")
_SOLID = {"stone": "wood_pickaxe", "coal": "wood_pickaxe", "iron": "stone_pickaxe", "diamond": "iron_pickaxe"}
_NEVER_SEEN, _WATER, _STONE, _PLANT = 0, _CODE["water"], _CODE["stone"], _CODE["plant"]
_DIG_STEPS = 3
"""Env steps to enter a solid cell: turn, dig, walk."""
_MAX_STEPS = 400
_DIG_ON_STEPS = 2
"""Env steps to enter a solid cell straight ahead: dig, walk. `scout` reckons with it both to choose a place and to go
there: were they two numbers, a step on the way could make another place look better, and the next step this one."""
_LIKELY_CELLS = 5
"""How far from known ground `scout` guesses what the ground is."""
_LIKELY_POWER = 3
"""Ground that is likely what is looked for counts 1 + 2 ** this, other ground 1."""
_SCOUT_START = 2
"""Env steps added to those of every way, so that the nearest corner is not always the best."""
_SCOUT_STEPS = 120
_MAP = sum((1 << names.AREA) - 1 << (y + names.REACH_Y) * _ROW + names.REACH_X for y in range(names.AREA))


def _around(board: int) -> int:
    return board << 1 | board >> 1 | board << _ROW | board >> _ROW


def _check_names(wanted: tuple[Any, ...]) -> frozenset[str]:
    try:
        names_set = _CHECKED_NAMES.get(wanted)
    except TypeError:
        names_set = None
    if names_set is not None:
        return names_set
    for name in wanted:
        if type(name) is not str:
            raise ValueError(f"Name materials and objects by texts, not by a value of type {type(name).__name__[:40]}.")
        if name not in _NAMES:
            raise ValueError(f"{name[:30]!r} is no material or object; they are {', '.join(sorted(_NAMES))}.")
    if not wanted:
        raise ValueError("Name at least one material or object.")
    names_set = frozenset(wanted)
    if len(_CHECKED_NAMES) < _CHECKED_NAMES_CAP:
        _CHECKED_NAMES[wanted] = names_set
    return names_set


def _walkable(avoid: object) -> frozenset[str]:
    if avoid == ():
        return _WALKABLE
    if type(avoid) is not tuple or not set(avoid) <= _WALKABLE:
        raise ValueError("avoid takes a tuple of grass, sand and path")
    return _WALKABLE - frozenset(avoid)


@cache
def _diggable(wood: bool, stone: bool, iron: bool) -> frozenset[str]:
    """The materials that can be mined with these pickaxes."""
    tools = {"wood_pickaxe": wood, "stone_pickaxe": stone, "iron_pickaxe": iron}
    return frozenset(name for name, tool in _SOLID.items() if tools[tool])


def _check_view(view: object) -> View:
    if type(view) is not View:
        raise TypeError("The first argument must be the view.")
    return view


class _Ground:
    """The boards of cells that the agent can walk on or dig, for one call of the library."""

    __slots__ = ("agent", "boards", "dig", "here", "view", "walk")

    def __init__(self, view: View, dig: object = False, bridge: object = False, avoid: object = ()) -> None:
        self.view = view
        self.boards = boards = view._search_boards()
        self.agent = boards.agent
        self.here = 1 << boards.agent
        walk = boards.any_of(_walkable(avoid))
        self.walk = walk & ~boards.occupied if boards.occupied else walk
        self.dig = 0
        if dig is True:
            items = view.inventory
            tools = items["wood_pickaxe"] > 0, items["stone_pickaxe"] > 0, items["iron_pickaxe"] > 0
            self.dig = boards.any_of(_diggable(*tools))
            if bridge is True and items["stone"] and items["wood_pickaxe"]:
                self.dig |= boards.cells(_WATER) & ~boards.occupied

    def next_cell(self, goal: int, dig_steps: int = _DIG_STEPS) -> tuple[int, int] | None:
        """(cell to enter next, env steps to the nearest cell of `goal`), or None if there is no way; the
        agent's own cell and 0 when it is there. The flood starts at the goal, so that the first of its rings
        that reaches the agent contains the next cell. `dig_steps`: env steps to enter a solid cell."""
        here, dig = self.here, self.dig
        if goal & here:
            return self.agent, 0
        enterable = self.walk | dig
        frontier = goal & enterable
        unseen = (enterable | here) ^ frontier
        delayed: dict[int, int] = {}
        for step in range(1, _MAX_STEPS):
            source = frontier
            if dig:
                hard = frontier & dig
                if hard:
                    delayed[step + dig_steps - 1] = hard
                    source ^= hard
                if step in delayed:
                    source |= delayed.pop(step)
            frontier = (source << 1 | source >> 1 | source << _ROW | source >> _ROW) & unseen
            if frontier & here:
                return self._neighbour(source), step
            if not frontier and not delayed:
                return None
            unseen ^= frontier
        return None

    def _neighbour(self, board: int) -> int:
        """A neighbouring cell on the board, straight ahead if there are several."""
        ahead = names.FACINGS.index(self.view.facing)
        ways = (_SHIFTS[ahead], *_SHIFTS)
        return next(self.agent + shift for shift in ways if board >> self.agent + shift & 1)

    def primitive(self, cell: int) -> str:
        """What to do now to get to the neighbouring cell: turn or walk, dig, or bridge."""
        way = _SHIFTS.index(cell - self.agent)
        if self.dig >> cell & 1 and self.view.facing == names.FACINGS[way]:
            return "place_stone" if self.view.front == "water" else "do"
        return _MOVES[way]


def _targets(view: View, wanted: frozenset[str]) -> int:
    """Board of visible objects and remembered cells of these names."""
    boards = view._search_boards()
    board = boards.any_of(wanted & _REMEMBERED)
    if boards.occupied:
        board &= ~(boards.occupied & ~boards.cells(_PLANT))
    for name, dx, dy in view.objects:
        if name in wanted:
            board |= 1 << boards.agent + dy * _ROW + dx
    return board


def nearest(view: object, *wanted: str) -> tuple[int, int] | None:
    """(dx, dy) of the nearest remembered cell or visible object of these names, as the crow walks."""
    current = _check_view(view)
    targets, boards = _targets(current, _check_names(wanted)), current._search_boards()
    if not targets:
        return None
    ball = 1 << boards.agent
    for _ in range(2 * names.AREA):
        hit = ball & targets
        if hit:
            cell = hit.bit_length() - 1 + boards.origin
            x, y = current.position
            return cell % _ROW - names.REACH_X - x, cell // _ROW - names.REACH_Y - y
        ball = (ball | _around(ball)) & boards.inside
    return None


def approach(
    view: object, *wanted: str, dig: bool = False, bridge: bool = False, avoid: tuple[str, ...] = ()
) -> str | None:
    """The next primitive towards facing the nearest reachable cell or object of these names (as in `world.materials`
    and `world.creatures`, and `plant`): a step on the way, then a turn. None if none is known or reachable. It
    faces, it does not act: once `view.front` is what you want, `yield "do"` (faced already, it gives the turn that
    changes nothing, so look at `view.front` first). With `dig` also through stone and ore that the pickaxes in the
    inventory can mine, with `bridge` also over water by placing and mining a stone (needs both). `avoid`: a tuple of
    materials never to walk on, of grass, sand and path; lava is never walked on."""
    current = _check_view(view)
    targets = _targets(current, _check_names(wanted))
    if not targets:
        return None
    ground = _Ground(current, dig, bridge, avoid)
    solid, runs = targets & ~ground.walk, _approach_cells(ground, targets & ground.walk)
    goal = _around(solid) & ground.boards.inside | runs[0] | runs[1] | runs[2] | runs[3]
    route = ground.next_cell(goal)
    if route is None:
        return None
    if route[1]:
        return ground.primitive(route[0])
    for way, shift in enumerate(_SHIFTS):
        if solid >> ground.agent + shift & 1:
            return _MOVES[way]
    return next(move for move, run in zip(_MOVES, runs, strict=True) if run & ground.here)


def _approach_cells(ground: _Ground, soft: int) -> tuple[int, ...]:
    """By direction, the walkable cells two before a target that is walkable itself: after a step from there the agent
    faces the target without having walked onto it."""
    if not soft:
        return (0,) * len(_SHIFTS)
    stand = ground.walk | ground.here
    return tuple(_shift_board(_shift_board(soft, -shift) & ground.walk, -shift) & stand for shift in _SHIFTS)


def steps_to(
    view: object, *wanted: str, dig: bool = False, bridge: bool = False, avoid: tuple[str, ...] = ()
) -> int | None:
    """Env steps until the agent stands next to the nearest reachable target (see `approach`), None if there is no
    way."""
    current = _check_view(view)
    targets = _targets(current, _check_names(wanted))
    if not targets:
        return None
    ground = _Ground(current, dig, bridge, avoid)
    route = ground.next_cell(_around(targets) & ground.boards.inside)
    return None if route is None else route[1]


def go(
    view: object, dx: int, dy: int, dig: bool = False, bridge: bool = False, avoid: tuple[str, ...] = ()
) -> str | None:
    """The next primitive on the way to the cell at an offset, None if there is no known way or the agent
    stands on it."""
    current = _check_view(view)
    if not (type(dx) is int and type(dy) is int):
        raise TypeError("go(view, dx, dy) takes two ints")
    x, y = current.position
    if not (0 <= x + dx < names.AREA and 0 <= y + dy < names.AREA):
        return None
    ground = _Ground(current, dig, bridge, avoid)
    cell = ground.agent + dy * _ROW + dx
    route = ground.next_cell(1 << cell) if cell >= 0 else None
    return ground.primitive(route[0]) if route and route[1] else None


def explore(
    view: object, *wanted: str, dig: bool = False, bridge: bool = False, avoid: tuple[str, ...] = ()
) -> str | None:
    """The next primitive towards the nearest known cell that borders on one never seen, so that the window shows new
    ground; where possible one within two cells of the wanted materials (`explore(view, "stone")` looks along the
    mountains). It remembers nothing between calls: ask again in every env step. None when everything in reach has
    been seen; then dig (`dig=True`) or bridge."""
    current = _check_view(view)
    ground = _Ground(current, dig, bridge, avoid)
    edge = _around(ground.boards.cells(_NEVER_SEEN)) & (ground.walk | ground.dig) & ~ground.here
    goals = [edge]
    if wanted:
        near = ground.boards.any_of(_check_names(wanted))
        for _ in range(2):
            near |= _around(near)
        goals.insert(0, edge & near)
    for goal in goals:
        route = ground.next_cell(goal) if goal else None
        if route is not None:
            return ground.primitive(route[0])
    return None


def scout(
    view: object, *wanted: str, dig: bool = False, bridge: bool = False, avoid: tuple[str, ...] = ()
) -> str | None:
    """The next primitive towards the place where most ground never seen comes into sight for the env steps it takes to
    get there: it passes small corners by that `explore` would look into. Of unseen ground up to five cells away, what
    lies nearer to one of the wanted materials than to any other known ground counts nine times
    (`scout(view, "stone", "coal", "iron", "path", dig=True)` searches the mountains). It remembers nothing between
    calls: ask again in every env step, with the same arguments, or the way to one place and that to another take turns.
    None when nothing new is in reach."""
    current = _check_view(view)
    ground = _Ground(current, dig, bridge, avoid)
    origin, known = ground.boards.origin, ground.boards.known << ground.boards.origin
    unseen = _MAP & ~known
    worth, most = counting.count_in_windows(unseen), counting.MOST
    if wanted:
        likely = _likely(ground.boards.any_of(_check_names(wanted)) << origin, known, unseen)
        more = counting.times_power_of_two(counting.count_in_windows(likely), _LIKELY_POWER)
        worth, most = counting.add(worth, more), most * (1 + 2**_LIKELY_POWER)
    goal = _best_place(ground, [bits >> origin for bits in worth], most)
    route = ground.next_cell(goal, _DIG_ON_STEPS) if goal else None
    return ground.primitive(route[0]) if route and route[1] else None


def _likely(near: int, known: int, unseen: int) -> int:
    """The unseen cells within `_LIKELY_CELLS` that lie nearer to `near` than to what else is known, or as near."""
    other, likely = known & ~near, 0
    for _ in range(_LIKELY_CELLS):
        near = _around(near) & unseen
        unseen ^= near
        other = _around(other) & unseen
        unseen ^= other
        likely |= near
    return likely


def _best_place(ground: _Ground, worth: list[int], most: int) -> int:
    """Board of the cells with the most worth for each env step on the way, 0 if none in reach has any."""
    enterable = (ground.walk | ground.dig) & ~ground.here
    frontier, delayed = ground.here, {}
    best, goal = 0.0, 0
    for step in range(1, _SCOUT_STEPS):
        ring = _around(frontier) & enterable
        enterable ^= ring
        hard = ring & ground.dig
        ring ^= hard
        if hard:
            delayed[step + _DIG_ON_STEPS - 1] = hard
        frontier = ring | delayed.pop(step, 0)
        if frontier:
            found, cells = counting.highest(worth, frontier)
            if found > best * (step + _SCOUT_START):
                best, goal = found / (step + _SCOUT_START), cells
        elif not delayed:
            break
        if most <= best * (step + 1 + _SCOUT_START):
            break
    return goal


def flee(view: object, *wanted: str) -> str | None:
    """The move to a free neighbouring cell furthest from the visible objects of these names, None if none
    is in sight or no move helps."""
    current = _check_view(view)
    enemy_names = _check_names(wanted)
    threats = [(dx, dy) for name, dx, dy in current.objects if name in enemy_names]
    if not threats:
        return None
    best_distance, choice = min(abs(dx) + abs(dy) for dx, dy in threats), None
    for move, (mx, my) in zip(_MOVES, names.DIRECTIONS, strict=True):
        if current.at(mx, my) in _WALKABLE:
            distance = min(abs(dx - mx) + abs(dy - my) for dx, dy in threats)
            if distance > best_distance:
                best_distance, choice = distance, move
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
    current = _check_view(view)
    if current.front in _ENEMIES:
        return "do"
    for name, dx, dy in current.objects:
        if name in _ENEMIES and abs(dx) + abs(dy) == 1:
            return towards(dx, dy)
    return None


def _is_small_room(boards: Boards, start: int, free: int, max_cells: int) -> bool:
    """Whether at most `max_cells` free cells can be walked to from `start`, and none of them holds an enemy."""
    reach = start
    for _ in range(max_cells + 1):
        wider = reach | _around(reach) & free
        if wider == reach:
            return reach.bit_count() <= max_cells and not reach & boards.enemies
        reach = wider
    return False


def _free_cells(boards: Boards) -> int:
    """Cells that a creature may be able to walk on: the walkable ones and those never seen."""
    return boards.any_of(_WALKABLE) | boards.cells(_NEVER_SEEN)


def enclosed(view: object, most: int = 8) -> bool:
    """Whether no enemy can walk to the agent: the free cells that it could walk to are at most `most`, all of them
    known, with no enemy among them. What is unknown counts as open."""
    boards = _check_view(view)._search_boards()
    if type(most) is not int or not 1 <= most <= 64:
        raise ValueError("most must be an int from 1 to 64")
    return _is_small_room(boards, 1 << boards.agent, _free_cells(boards), most)


def shelter(view: object, most: int = 8) -> str | None:
    """The next primitive towards being enclosed: walk to the nearest known stone that is thick enough, dig two cells
    into it, step back, close the way with a stone. Ask again in every env step: 5 to 8 steps at the stone, and the
    way there. `noop` once enclosed (stay, or sleep). None without a wood pickaxe and a stone in the inventory, or if
    no such place is known: it does not build walls on open ground."""
    current = _check_view(view)
    if enclosed(current, most):
        return "noop"
    items = current.inventory
    if not items["stone"] or not items["wood_pickaxe"]:
        return None
    boards = current._search_boards()
    agent, free = boards.agent, _free_cells(boards)
    here = 1 << agent
    facing = _SHIFTS[names.FACINGS.index(current.facing)]
    ahead, back = 1 << agent + facing, 1 << agent - facing
    if current.front in _PLACEABLE and _is_small_room(boards, here, free & ~ahead, most):
        return "place_stone"
    walkable = boards.any_of(_WALKABLE) & ~boards.occupied
    for move, shift in zip(_MOVES, _SHIFTS, strict=True):
        beside, behind = 1 << agent + shift, 1 << agent - shift
        if beside & walkable:
            beyond = 1 << agent + 2 * shift
            rooms = (beside, free & ~beyond), (here, free & ~behind)
            if any(_is_small_room(boards, start, cells, most) for start, cells in rooms):
                return move
    if ahead & boards.cells(_STONE) and _is_small_room(boards, here, (free | ahead) & ~back, most):
        return "do"
    return _burrow(current, free)


def _burrow(view: View, free: int) -> str | None:
    """The way to the nearest cell from which two cells of stone with solid sides can be dug."""
    ground = _Ground(view, True)
    solid = ground.boards.inside & ~free
    sites: list[int] = []
    for shift in _SHIFTS:
        across = _ROW if abs(shift) == 1 else 1
        walled = ground.boards.cells(_STONE) & solid << across & solid >> across
        first = walled & _shift_board(walled & _shift_board(solid, -shift), -shift)
        sites.append(_shift_board(first, -shift) & (ground.walk | ground.here))
    goal = sites[0] | sites[1] | sites[2] | sites[3]
    route = ground.next_cell(goal) if goal else None
    if route is None:
        return None
    if route[1]:
        return ground.primitive(route[0])
    way = next(way for way, board in enumerate(sites) if board & ground.here)
    return "do" if view.facing == names.FACINGS[way] else _MOVES[way]


def _shift_board(board: int, shift: int) -> int:
    return board << shift if shift > 0 else board >> -shift


LIBRARY: Mapping[str, Any] = MappingProxyType(
    {
        "nearest": nearest,
        "approach": approach,
        "steps_to": steps_to,
        "go": go,
        "explore": explore,
        "scout": scout,
        "flee": flee,
        "towards": towards,
        "fight": fight,
        "enclosed": enclosed,
        "shelter": shelter,
    }
)
"""Everything generated code may name besides the host's own builtins."""

_COSTS = {"nearest": 60, "approach": 100, "steps_to": 100, "go": 100, "explore": 150, "scout": 400}
COSTS: Mapping[str, int] = MappingProxyType({**_COSTS, "enclosed": 40, "shelter": 250})
"""What a call takes from the budget of work between two yields, where it is more than usual."""

TEXTS: Mapping[str, frozenset[str]] = MappingProxyType(
    dict.fromkeys(("nearest", "approach", "steps_to", "explore", "scout", "flee"), _NAMES)
    | {"avoid": _WALKABLE, "known": _REMEMBERED}
)
"""Function, method or keyword -> the texts that it takes."""

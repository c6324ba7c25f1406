"""Pure functions for coded actions: where things are and the next primitive on the way there.

Standard library only. Arguments are checked, because generated code calls these functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rlgpt.training.worlds.crafter import names, scouting
from rlgpt.training.worlds.crafter.routes import CODE, MOVES, ROW, SHIFTS, WALKABLE, Ground, around, shift_board
from rlgpt.training.worlds.crafter.view import Boards, View

_REMEMBERED = frozenset(CODE)
_CHECKED_NAMES: dict[tuple[Any, ...], frozenset[str]] = {}
"""Arguments that were checked before -> the set of their names. Bounded by `_CHECKED_NAMES_CAP`."""
_CHECKED_NAMES_CAP = 1_000
_NAMES = frozenset((*names.REMEMBERED[1:], *names.OBJECTS[1:]))
_PLACEABLE = WALKABLE | {"water", "lava"}
_ENEMIES = ("zombie", "skeleton")
_NEVER_SEEN, _STONE, _PLANT = 0, CODE["stone"], CODE["plant"]


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


def _check_ground(wanted: tuple[Any, ...]) -> frozenset[str]:
    names_set = _check_names(wanted)
    for name in wanted:
        if name not in _REMEMBERED:
            raise ValueError(f"scout looks for materials, and {name!r} is none; explore and approach take creatures.")
    return names_set


def _check_view(view: object) -> View:
    if type(view) is not View:
        raise TypeError("The first argument must be the view.")
    return view


def _targets(view: View, wanted: frozenset[str]) -> int:
    """Board of visible objects and remembered cells of these names."""
    boards = view._search_boards()
    board = boards.any_of(wanted & _REMEMBERED)
    if boards.occupied:
        board &= ~(boards.occupied & ~boards.cells(_PLANT))
    return board | _in_sight(view, wanted)


def _in_sight(view: View, wanted: frozenset[str]) -> int:
    """Board of the visible objects of these names."""
    agent, board = view._search_boards().agent, 0
    for name, dx, dy in view.objects:
        if name in wanted:
            board |= 1 << agent + dy * ROW + dx
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
            return cell % ROW - names.REACH_X - x, cell // ROW - names.REACH_Y - y
        ball = (ball | around(ball)) & boards.inside
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
    ground = Ground(current, dig, bridge, avoid)
    solid, runs = targets & ~ground.walk, _approach_cells(ground, targets & ground.walk)
    goal = around(solid) & ground.boards.inside | runs[0] | runs[1] | runs[2] | runs[3]
    route = ground.next_cell(goal)
    if route is None:
        return None
    if route[1]:
        return ground.primitive(route[0])
    for way, shift in enumerate(SHIFTS):
        if solid >> ground.agent + shift & 1:
            return MOVES[way]
    return next(move for move, run in zip(MOVES, runs, strict=True) if run & ground.here)


def _approach_cells(ground: Ground, soft: int) -> tuple[int, ...]:
    """By direction, the walkable cells two before a target that is walkable itself: after a step from there the agent
    faces the target without having walked onto it."""
    if not soft:
        return (0,) * len(SHIFTS)
    stand = ground.walk | ground.here
    return tuple(shift_board(shift_board(soft, -shift) & ground.walk, -shift) & stand for shift in SHIFTS)


def steps_to(
    view: object, *wanted: str, dig: bool = False, bridge: bool = False, avoid: tuple[str, ...] = ()
) -> int | None:
    """Env steps until the agent stands next to the nearest reachable target (see `approach`), None if there is no
    way."""
    current = _check_view(view)
    targets = _targets(current, _check_names(wanted))
    if not targets:
        return None
    ground = Ground(current, dig, bridge, avoid)
    route = ground.next_cell(around(targets) & ground.boards.inside)
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
    ground = Ground(current, dig, bridge, avoid)
    cell = ground.agent + dy * ROW + dx
    route = ground.next_cell(1 << cell) if cell >= 0 else None
    return ground.primitive(route[0]) if route and route[1] else None


def explore(
    view: object, *wanted: str, dig: bool = False, bridge: bool = False, avoid: tuple[str, ...] = ()
) -> str | None:
    """The next primitive towards the nearest known cell that borders on one never seen, so that the window shows new
    ground; where possible one within two cells of the wanted materials, or creatures in sight (`explore(view, "stone")`
    looks along the mountains). It remembers nothing between calls: ask again in every env step. None when everything in
    reach has been seen; then dig (`dig=True`) or bridge."""
    current = _check_view(view)
    ground = Ground(current, dig, bridge, avoid)
    edge = around(ground.boards.cells(_NEVER_SEEN)) & (ground.walk | ground.dig) & ~ground.here
    goals = [edge]
    if wanted:
        wanted_names = _check_names(wanted)
        near = ground.boards.any_of(wanted_names & _REMEMBERED) | _in_sight(current, wanted_names)
        for _ in range(2):
            near |= around(near)
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
    ground = Ground(current, dig, bridge, avoid)
    goal = scouting.find_place(ground, ground.boards.any_of(_check_ground(wanted)) if wanted else 0)
    route = ground.next_cell(goal, scouting.DIG_ON_STEPS) if goal else None
    return ground.primitive(route[0]) if route and route[1] else None


def flee(view: object, *wanted: str) -> str | None:
    """The move to a free neighbouring cell furthest from the visible objects of these names, None if none
    is in sight or no move helps."""
    current = _check_view(view)
    enemy_names = _check_names(wanted)
    threats = [(dx, dy) for name, dx, dy in current.objects if name in enemy_names]
    if not threats:
        return None
    best_distance, choice = min(abs(dx) + abs(dy) for dx, dy in threats), None
    for move, (mx, my) in zip(MOVES, names.DIRECTIONS, strict=True):
        if current.at(mx, my) in WALKABLE:
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
        wider = reach | around(reach) & free
        if wider == reach:
            return reach.bit_count() <= max_cells and not reach & boards.enemies
        reach = wider
    return False


def _free_cells(boards: Boards) -> int:
    """Cells that a creature may be able to walk on: the walkable ones and those never seen."""
    return boards.any_of(WALKABLE) | boards.cells(_NEVER_SEEN)


def enclosed(view: object, most: int = 8) -> bool:
    """Whether no enemy can walk to the agent: the free cells that it could walk to are at most `most`, all of them
    known, with no enemy among them. What is unknown counts as open. Arrows fly over water and lava too."""
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
    facing = SHIFTS[names.FACINGS.index(current.facing)]
    ahead, back = 1 << agent + facing, 1 << agent - facing
    if current.front in _PLACEABLE and _is_small_room(boards, here, free & ~ahead, most):
        return "place_stone"
    walkable = boards.any_of(WALKABLE) & ~boards.occupied
    for move, shift in zip(MOVES, SHIFTS, strict=True):
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
    ground = Ground(view, True)
    solid = ground.boards.inside & ~free
    sites: list[int] = []
    for shift in SHIFTS:
        across = ROW if abs(shift) == 1 else 1
        walled = ground.boards.cells(_STONE) & solid << across & solid >> across
        first = walled & shift_board(walled & shift_board(solid, -shift), -shift)
        sites.append(shift_board(first, -shift) & (ground.walk | ground.here))
    goal = sites[0] | sites[1] | sites[2] | sites[3]
    route = ground.next_cell(goal) if goal else None
    if route is None:
        return None
    if route[1]:
        return ground.primitive(route[0])
    way = next(way for way, board in enumerate(sites) if board & ground.here)
    return "do" if view.facing == names.FACINGS[way] else MOVES[way]


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
    dict.fromkeys(("nearest", "approach", "steps_to", "explore", "flee"), _NAMES)
    | {"scout": _REMEMBERED, "avoid": WALKABLE, "known": _REMEMBERED}
)
"""Function, method or keyword -> the texts that it takes."""

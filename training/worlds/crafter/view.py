"""The immutable view that coded actions see. Standard library only; every access is cheap and bounded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from rlgpt.training.ordered_sets import FrozenSet
from rlgpt.training.worlds.crafter import names

_MATERIALS, _OBJECTS, _REMEMBERED = names.MATERIALS, names.OBJECTS, names.REMEMBERED
_PLANT = _REMEMBERED.index("plant")
_CODE = {name: code for code, name in enumerate(_REMEMBERED)}
_FRONT = tuple((names.REACH_Y + dy) * names.WIDTH + names.REACH_X + dx for dx, dy in names.DIRECTIONS)
_OFFSETS = tuple(
    (cell % names.WIDTH - names.REACH_X, cell // names.WIDTH - names.REACH_Y)
    for cell in range(names.WIDTH * names.HEIGHT)
)
_CLOSEST_FIRST = tuple(
    sorted(range(len(_OFFSETS)), key=lambda cell: (abs(_OFFSETS[cell][0]) + abs(_OFFSETS[cell][1]), cell))
)
_NEARNESS = tuple(_CLOSEST_FIRST.index(cell) for cell in range(len(_OFFSETS)))
_THINGS = re.compile(rb"[^\0]")
INSIDE = sum(
    (1 << names.AREA) - 1 << (y + names.REACH_Y) * names.MEMORY_WIDTH + names.REACH_X for y in range(names.AREA)
)
"""Board of the map's cells, without the margin of the map memory."""
_WINDOW = sum((1 << names.WIDTH) - 1 << row * names.MEMORY_WIDTH for row in range(names.HEIGHT))
_PATCHES = tuple(
    slice(names.AT_BITS + plane * names.WINDOW_BYTES, names.AT_BITS + (plane + 1) * names.WINDOW_BYTES)
    for plane in range(names.PLANES)
)
_WHOLE_PLANES = tuple(
    slice(names.SENSES + plane * names.PLANE_BYTES, names.SENSES + (plane + 1) * names.PLANE_BYTES)
    for plane in range(names.PLANES)
)
_EMPTY_PLANES = (0,) * names.PLANES
_NO_OBJECTS = bytes(names.WIDTH * names.HEIGHT)


@lru_cache(4096)
def _counts(packed: bytes) -> Mapping[str, int]:
    return MappingProxyType(dict(zip(names.INVENTORY, packed, strict=True)))


@lru_cache(4096)
def _decode_achievements(packed: bytes) -> FrozenSet:
    bits = int.from_bytes(packed, "little")
    return FrozenSet(name for bit, name in enumerate(names.ACHIEVEMENTS) if bits >> bit & 1)


def _vital(index: int, doc: str) -> property:
    at = names.AT_ITEMS + index
    return property(lambda view: view._packed[at], doc=doc)


@lru_cache(1024)
def _inside(origin: int, length: int) -> int:
    """Board of the cells inside the map, down to two rows below the last one that has been seen."""
    return (INSIDE >> origin) & (1 << length + 2 * names.MEMORY_WIDTH) - 1


class Boards:
    """Bit boards of one view's map memory. Memory cell (column, row) is bit row * MEMORY_WIDTH + column - origin.
    `origin` leaves out the empty rows above what has been seen, because smaller integers are faster."""

    __slots__ = ("_cells", "_high", "_low", "_unions", "agent", "enemies", "inside", "known", "occupied", "origin")

    def __init__(self, view: View) -> None:
        first, second, third, fourth = view._memory_planes()
        known = first | second | third | fourth
        row = names.MEMORY_WIDTH
        self.origin = origin = max(0, ((known & -known).bit_length() - 1) // row - 2) * row
        self.known = known = known >> origin
        first, second, third, fourth = first >> origin, second >> origin, third >> origin, fourth >> origin
        both = first & second
        self._low = (known ^ (first | second), first ^ both, second ^ both, both)
        """Known cells by the lower two bits of their code; `_high` by the upper two."""
        both = third & fourth
        self._high = (known ^ (third | fourth), third ^ both, fourth ^ both, both)
        self._cells: dict[int, int] = {}
        self._unions: dict[frozenset[str], int] = {}
        x, y = view._packed[names.AT_X], view._packed[names.AT_Y]
        self.agent = (y + names.REACH_Y) * row + x + names.REACH_X - origin
        self.inside = _inside(origin, known.bit_length())
        self.occupied = self.enemies = 0
        for name, dx, dy in view.objects:
            bit = 1 << self.agent + dy * row + dx
            self.occupied |= bit
            if name in ("zombie", "skeleton"):
                self.enemies |= bit

    def cells(self, code: int) -> int:
        """Board of the cells where one material was last seen; code 0: of those never seen."""
        board = self._cells.get(code)
        if board is None:
            board = self._low[code & 3] & self._high[code >> 2] if code else self.inside & ~self.known
            self._cells[code] = board
        return board

    def any_of(self, wanted: frozenset[str]) -> int:
        """Board of the cells where one of several materials was last seen."""
        board = self._unions.get(wanted)
        if board is None:
            board = 0
            for name in wanted:
                board |= self.cells(_CODE[name])
            self._unions[wanted] = board
        return board


class View:
    """What the agent knows at one env step. Offsets are (dx, dy): dx to the right, dy downwards."""

    __slots__ = ("_boards", "_inventory", "_objects", "_packed", "_planes", "_previous")

    def __init__(self, packed: bytes, previous: View | None) -> None:
        self._packed = packed
        self._previous = previous
        self._planes: tuple[int, ...] | None = None
        self._boards: Boards | None = None
        self._inventory: Mapping[str, int] | None = None
        self._objects: tuple[tuple[str, int, int], ...] | None = None

    health = _vital(0, "0..9; 0 is death")
    food = _vital(1, "0..9; at 0 health falls")
    drink = _vital(2, "0..9; at 0 health falls")
    energy = _vital(3, "0..9; at 0 health falls; sleeping restores it")

    @property
    def inventory(self) -> Mapping[str, int]:
        """Counts 0..9 of sapling, wood, stone, coal, iron, diamond and of the six tools."""
        if self._inventory is None:
            self._inventory = _counts(self._packed[names.AT_ITEMS + 4 : names.AT_ITEMS + 16])
        return self._inventory

    @property
    def position(self) -> tuple[int, int]:
        """Cell (x, y), each 0..63; every episode starts at (32, 32)."""
        return self._packed[names.AT_X], self._packed[names.AT_Y]

    @property
    def facing(self) -> str:
        """left, right, up or down."""
        return names.FACINGS[self._packed[names.AT_FACING]]

    @property
    def front(self) -> str:
        """What `do` and `place_*` act on: the object on the faced cell, else its material."""
        cell = _FRONT[self._packed[names.AT_FACING]]
        thing = self._packed[names.AT_OBJECTS + cell]
        return _OBJECTS[thing] if thing else _MATERIALS[self._packed[names.AT_MATERIALS + cell]]

    @property
    def sleeping(self) -> bool:
        """While asleep every action is ignored, and a guard whose trigger holds takes the plan's turn all the same: let
        triggers ask for `not view.sleeping`."""
        return bool(self._packed[names.AT_SLEEPING])

    @property
    def daylight(self) -> float:
        """0 dark to 1 bright; zombies come out of grass in the dark."""
        return self._packed[names.AT_DAYLIGHT] / 255

    @property
    def steps(self) -> int:
        """Env steps since the episode began."""
        return self._packed[names.AT_STEPS] | self._packed[names.AT_STEPS + 1] << 8

    @property
    def steps_left(self) -> int:
        """Env steps until the episode ends by time."""
        return self._packed[names.AT_STEPS_LEFT] | self._packed[names.AT_STEPS_LEFT + 1] << 8

    @property
    def near_table(self) -> bool:
        """A table is close enough to craft: within the 3x3 cells around the agent."""
        return bool(self._packed[names.AT_NEAR] & 1)

    @property
    def near_furnace(self) -> bool:
        """A furnace is close enough to craft."""
        return bool(self._packed[names.AT_NEAR] & 2)

    @property
    def achieved(self) -> FrozenSet:
        """Achievements unlocked in this episode, a frozenset in the order of the world's list."""
        return _decode_achievements(self._packed[names.AT_ACHIEVED : names.AT_ACHIEVED + 3])

    @property
    def objects(self) -> tuple[tuple[str, int, int], ...]:
        """(name, dx, dy) of everything that lives or flies in the window, closest first."""
        if self._objects is None:
            things = self._packed[names.AT_OBJECTS : names.AT_BITS]
            if things == _NO_OBJECTS:
                self._objects = ()
            else:
                cells = sorted([match.start() for match in _THINGS.finditer(things)], key=_NEARNESS.__getitem__)
                self._objects = tuple([(_OBJECTS[things[cell]], *_OFFSETS[cell]) for cell in cells])
        return self._objects

    def at(self, dx: int, dy: int) -> str:
        """Object or else material at an offset; outside the 9x7 window what was last seen there (a
        material or `plant`), or `unknown`."""
        if not (type(dx) is int and type(dy) is int):
            raise TypeError("at(dx, dy) takes two ints")
        if -names.REACH_X <= dx <= names.REACH_X and -names.REACH_Y <= dy <= names.REACH_Y:
            cell = (dy + names.REACH_Y) * names.WIDTH + dx + names.REACH_X
            thing = self._packed[names.AT_OBJECTS + cell]
            return _OBJECTS[thing] if thing else _MATERIALS[self._packed[names.AT_MATERIALS + cell]]
        return _REMEMBERED[self._code(dx, dy)]

    def material(self, dx: int, dy: int) -> str:
        """Like `at`, but what lies beneath an object."""
        if not (type(dx) is int and type(dy) is int):
            raise TypeError("material(dx, dy) takes two ints")
        code = self._code(dx, dy)
        return "grass" if code == _PLANT else _MATERIALS[code]

    def _code(self, dx: int, dy: int) -> int:
        x, y = self._packed[names.AT_X] + dx, self._packed[names.AT_Y] + dy
        if not (0 <= x < names.AREA and 0 <= y < names.AREA):
            return 0
        at = (y + names.REACH_Y) * names.MEMORY_WIDTH + x + names.REACH_X
        first, second, third, fourth = self._planes or self._memory_planes()
        return first >> at & 1 | (second >> at & 1) << 1 | (third >> at & 1) << 2 | (fourth >> at & 1) << 3

    def _memory_planes(self) -> tuple[int, ...]:
        """The map memory as bit planes: that of the previous view, updated with this view's window."""
        if self._planes is not None:
            return self._planes
        views: list[View] = []
        view: View | None = self
        while view is not None and view._planes is None:
            views.append(view)
            view = view._previous
        planes = _EMPTY_PLANES if view is None else view._planes or _EMPTY_PLANES
        for view in reversed(views):
            planes = view._update_planes(planes)
            view._planes, view._previous = planes, None
        return planes

    def _update_planes(self, planes: tuple[int, ...]) -> tuple[int, ...]:
        packed, number = self._packed, int.from_bytes
        if packed[0]:
            return tuple(number(packed[part], "little") for part in _WHOLE_PLANES)
        at = packed[names.AT_Y] * names.MEMORY_WIDTH + packed[names.AT_X]
        changed = []
        for plane, part in zip(planes, _PATCHES, strict=True):
            patch = plane >> at & _WINDOW ^ number(packed[part], "little")
            changed.append(plane ^ patch << at if patch else plane)
        return tuple(changed)

    def known(self, name: str) -> int:
        """How many cells of a material, or with a `plant`, are remembered."""
        if type(name) is not str or name not in _REMEMBERED[1:]:
            raise ValueError(f"known(name) takes one of {', '.join(_REMEMBERED[1:])}")
        return self._search_boards().cells(_REMEMBERED.index(name)).bit_count()

    def _search_boards(self) -> Boards:
        """Made on the first call, because most views are never searched."""
        if self._boards is None:
            self._boards = Boards(self)
        return self._boards

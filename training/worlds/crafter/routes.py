"""Ways over what the agent remembers, found by flood fill on bit boards: one Python integer holds a bit per remembered
cell, so that a few shifts extend the search by one step. Cost is bounded by the 5,040 cells of the map memory.
Standard library only."""

from __future__ import annotations

from functools import cache

from rlgpt.training.worlds.crafter import names
from rlgpt.training.worlds.crafter.view import View

ROW = names.MEMORY_WIDTH
CODE = {name: code for code, name in enumerate(names.REMEMBERED) if code}
MOVES = ("move_left", "move_right", "move_up", "move_down")
SHIFTS = (-1, 1, -ROW, ROW)
WALKABLE = frozenset(("grass", "sand", "path"))
DIG_STEPS = 3
"""Env steps to enter a solid cell: turn, dig, walk."""
_SOLID = {"stone": "wood_pickaxe", "coal": "wood_pickaxe", "iron": "stone_pickaxe", "diamond": "iron_pickaxe"}
_MAX_STEPS = 400


def around(board: int) -> int:
    return board << 1 | board >> 1 | board << ROW | board >> ROW


def shift_board(board: int, shift: int) -> int:
    return board << shift if shift > 0 else board >> -shift


def walkable_but(avoid: object) -> frozenset[str]:
    if avoid == ():
        return WALKABLE
    if type(avoid) is not tuple or not set(avoid) <= WALKABLE:
        raise ValueError("avoid takes a tuple of grass, sand and path")
    return WALKABLE - frozenset(avoid)


@cache
def _diggable(wood: bool, stone: bool, iron: bool) -> frozenset[str]:
    """The materials that can be mined with these pickaxes."""
    tools = {"wood_pickaxe": wood, "stone_pickaxe": stone, "iron_pickaxe": iron}
    return frozenset(name for name, tool in _SOLID.items() if tools[tool])


class Ground:
    """The boards of cells that the agent can walk on or dig, for one call of the library."""

    __slots__ = ("agent", "boards", "dig", "here", "view", "walk")

    def __init__(self, view: View, dig: object = False, bridge: object = False, avoid: object = ()) -> None:
        self.view = view
        self.boards = boards = view._search_boards()
        self.agent = boards.agent
        self.here = 1 << boards.agent
        walk = boards.any_of(walkable_but(avoid))
        self.walk = walk & ~boards.occupied if boards.occupied else walk
        self.dig = 0
        if dig is True:
            items = view.inventory
            tools = items["wood_pickaxe"] > 0, items["stone_pickaxe"] > 0, items["iron_pickaxe"] > 0
            self.dig = boards.any_of(_diggable(*tools))
            if bridge is True and items["stone"] and items["wood_pickaxe"]:
                self.dig |= boards.cells(CODE["water"]) & ~boards.occupied

    def next_cell(self, goal: int, dig_steps: int = DIG_STEPS) -> tuple[int, int] | None:
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
            frontier = (source << 1 | source >> 1 | source << ROW | source >> ROW) & unseen
            if frontier & here:
                return self._neighbour(source), step
            if not frontier and not delayed:
                return None
            unseen ^= frontier
        return None

    def _neighbour(self, board: int) -> int:
        """A neighbouring cell on the board, straight ahead if there are several."""
        ahead = names.FACINGS.index(self.view.facing)
        ways = (SHIFTS[ahead], *SHIFTS)
        return next(self.agent + shift for shift in ways if board >> self.agent + shift & 1)

    def primitive(self, cell: int) -> str:
        """What to do now to get to the neighbouring cell: turn or walk, dig, or bridge."""
        way = SHIFTS.index(cell - self.agent)
        if self.dig >> cell & 1 and self.view.facing == names.FACINGS[way]:
            return "place_stone" if self.view.front == "water" else "do"
        return MOVES[way]

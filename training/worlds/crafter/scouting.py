"""Where to go to see most: the place from which most ground never seen comes into sight for the env steps on the way.
Standard library only."""

from __future__ import annotations

from rlgpt.training.worlds.crafter import counting
from rlgpt.training.worlds.crafter.routes import Ground, around
from rlgpt.training.worlds.crafter.view import INSIDE

DIG_ON_STEPS = 2
"""Env steps to enter a solid cell straight ahead: dig, walk. The way to the place has to be reckoned with it too: were
they two numbers, a step on the way could make another place look better, and the next step this one."""
_LIKELY_CELLS = 5
"""How far from known ground it is guessed what the ground is."""
_LIKELY_POWER = 3
"""Ground that is likely what is looked for counts 1 + 2 ** this, other ground 1."""
_START_STEPS = 2
"""Env steps added to those of every way, so that the nearest corner is not always the best."""
_MAX_STEPS = 120


def find_place(ground: Ground, wanted: int) -> int:
    """Board of the cells to go to, 0 if nothing new is in reach. `wanted`: board of the known cells of what is looked
    for, 0 if all unseen ground counts the same."""
    origin, known = ground.boards.origin, ground.boards.known << ground.boards.origin
    unseen = INSIDE & ~known
    worth, most = counting.count_in_windows(unseen), counting.MOST
    if wanted:
        likely = _likely(wanted << origin, known, unseen)
        more = counting.times_power_of_two(counting.count_in_windows(likely), _LIKELY_POWER)
        worth, most = counting.add(worth, more), most * (1 + 2**_LIKELY_POWER)
    return _best_place(ground, [bits >> origin for bits in worth], most)


def _likely(near: int, known: int, unseen: int) -> int:
    """The unseen cells within `_LIKELY_CELLS` that lie nearer to `near` than to what else is known, or as near."""
    other, likely = known & ~near, 0
    for _ in range(_LIKELY_CELLS):
        near = around(near) & unseen
        unseen ^= near
        other = around(other) & unseen
        unseen ^= other
        likely |= near
    return likely


def _best_place(ground: Ground, worth: list[int], most: int) -> int:
    """Board of the cells with the most worth for each env step on the way, 0 if none in reach has any."""
    enterable = (ground.walk | ground.dig) & ~ground.here
    frontier, delayed = ground.here, {}
    best, goal = 0.0, 0
    for step in range(1, _MAX_STEPS):
        ring = around(frontier) & enterable
        enterable ^= ring
        hard = ring & ground.dig
        ring ^= hard
        if hard:
            delayed[step + DIG_ON_STEPS - 1] = hard
        frontier = ring | delayed.pop(step, 0)
        if frontier:
            found, cells = counting.highest(worth, frontier)
            if found > best * (step + _START_STEPS):
                best, goal = found / (step + _START_STEPS), cells
        elif not delayed:
            break
        if most <= best * (step + 1 + _START_STEPS):
            break
    return goal

"""A number for each cell of the map, written as bit boards: the first holds the lowest bit of every number. Adding two
such lists takes a few operations on whole boards, so that a window is counted around all cells at once. Standard
library only."""

from __future__ import annotations

from collections.abc import Sequence

from rlgpt.training.worlds.crafter import names

_ROW = names.MEMORY_WIDTH
MOST = names.WIDTH * names.HEIGHT
"""The largest count in a window."""


def add(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """The sums, cell by cell."""
    total: list[int] = []
    carry = 0
    for place in range(max(len(first), len(second))):
        a = first[place] if place < len(first) else 0
        b = second[place] if place < len(second) else 0
        either = a ^ b
        total.append(either ^ carry)
        carry = a & b | either & carry
    return [*total, carry] if carry else total


def times_power_of_two(numbers: Sequence[int], power: int) -> list[int]:
    return [*[0] * power, *numbers]


def count_in_windows(board: int) -> list[int]:
    """For each cell how many cells of the board lie in the window around it. The board's bits keep a margin of half a
    window, as the map memory does."""
    pairs = add([board], [board >> 1])
    fours = add(pairs, _moved(pairs, 2))
    eights = add(fours, _moved(fours, 4))
    rows = add(eights, [board >> 8])
    two_rows = add(rows, _moved(rows, _ROW))
    four_rows = add(two_rows, _moved(two_rows, 2 * _ROW))
    six_rows = add(four_rows, _moved(two_rows, 4 * _ROW))
    windows = add(six_rows, _moved(rows, 6 * _ROW))
    to_middle = names.REACH_X + names.REACH_Y * _ROW
    return [bits << to_middle for bits in windows]


def highest(numbers: Sequence[int], cells: int) -> tuple[int, int]:
    """(the largest number on these cells, the cells that have it). `cells` is not empty."""
    most = 0
    for bits in reversed(numbers):
        most <<= 1
        if cells & bits:
            cells, most = cells & bits, most | 1
    return most, cells


def _moved(numbers: Sequence[int], by: int) -> list[int]:
    return [bits >> by for bits in numbers]

"""Creatures appear and disappear in each chunk, every tenth step (`crafter/env.py`, `_balance_object`)."""

from __future__ import annotations

from rlgpt.training.worlds.crafter.compiled import compiled
from rlgpt.training.worlds.crafter.ground import add, chunk_of, distance_to_player, remove
from rlgpt.training.worlds.crafter.layout import (
    AREA,
    ARRIVAL,
    CHUNK,
    CHUNK_ORDER,
    CHUNK_ROWS,
    CHUNKS,
    COW,
    GRASS,
    KIND,
    PATH,
    POPULATION,
    ROWS,
    SKELETON,
    ZOMBIE,
    Array,
    X,
    Y,
)
from rlgpt.training.worlds.crafter.random_stream import below, uniform


@compiled
def find_cell(material: Array, chunk: int, target: int, index: int) -> int:
    """The `index`-th cell of the material `target` in the chunk, as x * AREA + y; with index -1, how many there are."""
    count = 0
    left = chunk // CHUNK_ROWS * CHUNK
    top = chunk % CHUNK_ROWS * CHUNK
    for x in range(left, min(left + CHUNK, AREA)):
        for y in range(top, min(top + CHUNK, AREA)):
            if material[x, y] == target:
                if count == index:
                    return x * AREA + y
                count += 1
    return count


@compiled
def find_creature(state: Array, objects: Array, chunk: int, kind: int, index: int) -> int:
    """Row of a creature in the chunk: the `index`-th of its kind, in the order in which they entered."""
    last = -1
    row_of_next = -1
    for _ in range(index + 1):
        row_of_next = -1
        for row in range(state[ROWS]):
            if objects[row, KIND] != kind or objects[row, ARRIVAL] <= last:
                continue
            if chunk_of(objects[row, X], objects[row, Y]) != chunk:
                continue
            if row_of_next < 0 or objects[row, ARRIVAL] < objects[row_of_next, ARRIVAL]:
                row_of_next = row
        last = objects[row_of_next, ARRIVAL]
    return row_of_next


@compiled
def balance(
    state: Array,
    material: Array,
    occupant: Array,
    objects: Array,
    chunk: int,
    kind: int,
    minimum: int,
    maximum: int,
    birth_distance: int,
    death_distance: int,
    birth: float,
    death: float,
) -> None:
    """Bring the number of one kind in one chunk towards [minimum, maximum], by at most one birth or death."""
    population = state[POPULATION + chunk * 3 + (0 if kind == ZOMBIE else 1 if kind == SKELETON else 2)]
    ground = PATH if kind == SKELETON else GRASS
    if population < minimum and uniform(state) < birth:
        cell = find_cell(material, chunk, ground, below(state, find_cell(material, chunk, ground, -1)))
        x = cell // AREA
        y = cell % AREA
        if occupant[x, y] == 0 and distance_to_player(objects, x, y) >= birth_distance:
            add(state, occupant, objects, kind, x, y, 5 if kind == ZOMBIE else 3, 0)
    elif population > maximum and uniform(state) < death:
        row = find_creature(state, objects, chunk, kind, below(state, population))
        if distance_to_player(objects, objects[row, X], objects[row, Y]) >= death_distance:
            remove(state, occupant, objects, row)


@compiled
def balance_chunks(state: Array, material: Array, occupant: Array, objects: Array, light: float) -> None:
    state[POPULATION : POPULATION + 3 * CHUNK_ROWS * CHUNK_ROWS] = 0
    for row in range(state[ROWS]):
        kind = objects[row, KIND]
        if kind in (ZOMBIE, SKELETON, COW):
            group = 0 if kind == ZOMBIE else 1 if kind == SKELETON else 2
            state[POPULATION + chunk_of(objects[row, X], objects[row, Y]) * 3 + group] += 1
    for index in range(state[CHUNKS]):
        chunk = state[CHUNK_ORDER + index]
        grass = find_cell(material, chunk, GRASS, -1)
        path = find_cell(material, chunk, PATH, -1)
        zombies = int(3.5 - 3 * light)
        balance(
            state, material, occupant, objects, chunk, ZOMBIE,
            0 if grass < 50 else zombies, zombies, 6, 0, 0.3, 0.4,
        )  # fmt: skip
        balance(state, material, occupant, objects, chunk, SKELETON, 0 if path < 6 else 1, 2, 7, 7, 0.1, 0.1)
        cows = int(1.5 + light)
        balance(state, material, occupant, objects, chunk, COW, 0 if grass < 30 else 1, cows, 5, 5, 0.01, 0.1)

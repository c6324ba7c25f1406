"""Cows, zombies, skeletons, arrows and plants (`crafter/objects.py`).

An object that dies in its own update finishes that update, as in stock Crafter.
"""

from __future__ import annotations

from rlgpt.training.worlds.crafter.compiled import compiled
from rlgpt.training.worlds.crafter.ground import (
    DX,
    DY,
    add,
    distance_to_player,
    heading_to_player,
    inside,
    is_free,
    move,
    move_along,
    move_anywhere,
    remove,
    walkable,
)
from rlgpt.training.worlds.crafter.layout import (
    ARROW,
    COW,
    FURNACE,
    HEADING,
    HEALTH,
    HURT_BY,
    KIND,
    OUTSIDE,
    PATH,
    SKELETON,
    SLEEPING,
    TABLE,
    TIMER,
    ZOMBIE,
    Array,
    X,
    Y,
)
from rlgpt.training.worlds.crafter.random_stream import uniform
from rlgpt.training.worlds.crafter.words import BY_ARROW, BY_ZOMBIE, LIFE


@compiled
def hurt_player(state: Array, damage: int, cause: int) -> None:
    if state[LIFE] > 0:
        state[HURT_BY] = cause
    state[LIFE] = max(0, state[LIFE] - damage)


@compiled
def update_cow(state: Array, material: Array, occupant: Array, objects: Array, row: int) -> None:
    if objects[row, HEALTH] <= 0:
        remove(state, occupant, objects, row)
    if uniform(state) < 0.5:
        move_anywhere(state, material, occupant, objects, row, COW)


@compiled
def update_zombie(state: Array, material: Array, occupant: Array, objects: Array, row: int) -> None:
    if objects[row, HEALTH] <= 0:
        remove(state, occupant, objects, row)
    near = distance_to_player(objects, objects[row, X], objects[row, Y]) <= 8
    if near and uniform(state) < 0.9:
        heading = heading_to_player(objects, row, uniform(state) < 0.8)
        move_along(state, material, occupant, objects, row, ZOMBIE, heading)
    else:
        move_anywhere(state, material, occupant, objects, row, ZOMBIE)
    if distance_to_player(objects, objects[row, X], objects[row, Y]) <= 1:
        if objects[row, TIMER]:
            objects[row, TIMER] -= 1
        else:
            hurt_player(state, 7 if state[SLEEPING] else 2, BY_ZOMBIE)
            objects[row, TIMER] = 5


@compiled
def shoot(state: Array, material: Array, occupant: Array, objects: Array, row: int, heading: int) -> None:
    if objects[row, TIMER] > 0 or heading == 0:
        return
    direction = (heading + 2) // 4 if abs(heading) == 2 else 2 + (heading + 1) // 2
    x = objects[row, X] + DX[direction]
    y = objects[row, Y] + DY[direction]
    if is_free(material, occupant, ARROW, x, y):
        add(state, occupant, objects, ARROW, x, y, 0, direction)
        objects[row, TIMER] = 4


@compiled
def update_skeleton(state: Array, material: Array, occupant: Array, objects: Array, row: int) -> None:
    if objects[row, HEALTH] <= 0:
        remove(state, occupant, objects, row)
    objects[row, TIMER] = max(0, objects[row, TIMER] - 1)
    distance = distance_to_player(objects, objects[row, X], objects[row, Y])
    if distance <= 3:
        heading = -heading_to_player(objects, row, uniform(state) < 0.6)
        if move_along(state, material, occupant, objects, row, SKELETON, heading):
            return
    if distance <= 5 and uniform(state) < 0.5:
        shoot(state, material, occupant, objects, row, heading_to_player(objects, row, True))
    elif distance <= 8 and uniform(state) < 0.3:
        heading = heading_to_player(objects, row, uniform(state) < 0.6)
        move_along(state, material, occupant, objects, row, SKELETON, heading)
    elif uniform(state) < 0.2:
        move_anywhere(state, material, occupant, objects, row, SKELETON)


@compiled
def update_arrow(state: Array, material: Array, occupant: Array, objects: Array, row: int) -> None:
    direction = objects[row, HEADING]
    x = objects[row, X] + DX[direction]
    y = objects[row, Y] + DY[direction]
    cell = OUTSIDE
    hit = 0
    if inside(x, y):
        cell = material[x, y]
        hit = occupant[x, y]
    if hit == 1:
        hurt_player(state, 2, BY_ARROW)
        remove(state, occupant, objects, row)
    elif hit:
        objects[hit - 1, HEALTH] = max(0, objects[hit - 1, HEALTH] - 2)
        remove(state, occupant, objects, row)
    elif not walkable(ARROW, cell):
        remove(state, occupant, objects, row)
        if cell in (TABLE, FURNACE):
            material[x, y] = PATH
    else:
        move(state, material, occupant, objects, row, ARROW, DX[direction], DY[direction])


@compiled
def update_plant(state: Array, occupant: Array, objects: Array, row: int) -> None:
    objects[row, TIMER] += 1
    for direction in range(4):
        x = objects[row, X] + DX[direction]
        y = objects[row, Y] + DY[direction]
        if inside(x, y) and occupant[x, y]:
            kind = objects[occupant[x, y] - 1, KIND]
            if kind in (ZOMBIE, SKELETON, COW):
                objects[row, HEALTH] = max(0, objects[row, HEALTH] - 1)
                break
    if objects[row, HEALTH] <= 0:
        remove(state, occupant, objects, row)

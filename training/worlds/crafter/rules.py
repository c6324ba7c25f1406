"""One step of Crafter 1.8.3 (`crafter/env.py`, `data.yaml`) on flat arrays.

Every random draw happens where stock Crafter makes it. One thing differs: stock iterates over the chunks, and over the
objects of a chunk, in the order of a set of addresses; here they are ordered by arrival.
"""

from __future__ import annotations

from rlgpt.training.worlds.crafter.compiled import compiled
from rlgpt.training.worlds.crafter.creatures import (
    update_arrow,
    update_cow,
    update_plant,
    update_skeleton,
    update_zombie,
)
from rlgpt.training.worlds.crafter.ground import distance_to_player, drop_dead_rows
from rlgpt.training.worlds.crafter.layout import (
    ACTIVE,
    ARROW,
    COW,
    DEAD,
    KIND,
    NOBODY,
    PLAYER,
    ROWS,
    SKELETON,
    STEP,
    ZOMBIE,
    Array,
    X,
    Y,
)
from rlgpt.training.worlds.crafter.player import update_player
from rlgpt.training.worlds.crafter.population import balance_chunks


@compiled
def update_objects(state: Array, material: Array, occupant: Array, objects: Array, action: int) -> None:
    """One update of everything close to the player; who is born now waits for the next step."""
    for row in range(state[ROWS]):
        kind = objects[row, KIND]
        if kind == NOBODY or distance_to_player(objects, objects[row, X], objects[row, Y]) >= ACTIVE:
            continue
        if kind == PLAYER:
            update_player(state, material, occupant, objects, action)
        elif kind == COW:
            update_cow(state, material, occupant, objects, row)
        elif kind == ZOMBIE:
            update_zombie(state, material, occupant, objects, row)
        elif kind == SKELETON:
            update_skeleton(state, material, occupant, objects, row)
        elif kind == ARROW:
            update_arrow(state, material, occupant, objects, row)
        else:
            update_plant(state, occupant, objects, row)


@compiled
def step(state: Array, material: Array, occupant: Array, objects: Array, light: float, action: int) -> None:
    """One env step of stock Crafter, without its picture. `light` is the daylight of the new step."""
    if state[DEAD] > 32:
        drop_dead_rows(state, occupant, objects)
    state[STEP] += 1
    update_objects(state, material, occupant, objects, action)
    if state[STEP] % 10 == 0:
        balance_chunks(state, material, occupant, objects, light)

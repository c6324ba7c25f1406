"""What the agent perceives: the 9x7 window, its own map memory, and the policy's features.

`advance` is the one entry point of a step: rules, senses, reward, end. `describe` fills the features.
"""

from __future__ import annotations

import numpy as np

from rlgpt.training.worlds.crafter import names
from rlgpt.training.worlds.crafter.compiled import compiled, entry
from rlgpt.training.worlds.crafter.ground import inside
from rlgpt.training.worlds.crafter.layout import (
    ACHIEVED_TIMES,
    ARROW,
    BOTTOM,
    COW,
    ENEMY_NEAR,
    FACING,
    FURNACE,
    GOAL,
    HEADING,
    HORIZON,
    INTERRUPT,
    ITEM,
    KIND,
    LEFT,
    MAX_COUNT,
    NOVELTY,
    OUTSIDE,
    REWARDED_HEALTH,
    RIGHT,
    RIPE,
    SKELETON,
    SLEEPING,
    STEP,
    TABLE,
    TIMER,
    TOP,
    ZOMBIE,
    Array,
    X,
    Y,
)
from rlgpt.training.worlds.crafter.player import can_make, can_place, is_near
from rlgpt.training.worlds.crafter.rules import step
from rlgpt.training.worlds.crafter.words import ENERGY, LIFE, MAKE, SET_PLANT, SET_STONE

WIDTH, HEIGHT = names.WIDTH, names.HEIGHT
REACH_X, REACH_Y = names.REACH_X, names.REACH_Y
AT_X, AT_Y, AT_FACING, AT_SLEEPING = names.AT_X, names.AT_Y, names.AT_FACING, names.AT_SLEEPING
AT_DAYLIGHT, AT_INTERRUPT, AT_WAITING = names.AT_DAYLIGHT, names.AT_INTERRUPT, names.AT_WAITING
AT_STEPS, AT_STEPS_LEFT, AT_ITEMS = names.AT_STEPS, names.AT_STEPS_LEFT, names.AT_ITEMS
AT_ACHIEVED, AT_NEAR = names.AT_ACHIEVED, names.AT_NEAR
AT_MATERIALS, AT_OBJECTS = names.AT_MATERIALS, names.AT_OBJECTS
AT_BITS, WINDOW_BYTES = names.AT_BITS, names.WINDOW_BYTES
MEMORY_WIDTH, PLANES = names.MEMORY_WIDTH, names.PLANES
AT_MASK = names.SENSES
"""After the packed senses: one byte per action, 1 if it is legal."""
SENSES_SIZE = AT_MASK + len(names.ACTIONS)
CELLS = WIDTH * HEIGHT
SAPLING_CODE = names.OBJECTS.index("sapling")
MATERIALS = len(names.MATERIALS)
REMEMBERED = len(names.REMEMBERED)
PLANT_CODE = names.REMEMBERED.index("plant")
LAST_STEP = 10_000
"""The daylight of steps 0 to this one is tabulated, see `simulation.daylight`."""

F_WINDOW = 0
F_INVENTORY = F_WINDOW + CELLS
F_VITALS = F_INVENTORY + 12
F_FACING = F_VITALS + 4
F_SLEEPING = F_FACING + 4
F_DAYLIGHT = F_SLEEPING + 1
F_TIME_LEFT = F_DAYLIGHT + 1
F_NEAR = F_TIME_LEFT + 1
F_REMEMBERED = F_NEAR + 2
F_CREATURES = F_REMEMBERED + 3 * (REMEMBERED - 1)
F_MILESTONES = F_CREATURES + 3 * 5
FEATURES_SIZE = F_MILESTONES + len(names.ACHIEVEMENTS)


@compiled
def object_code(objects: Array, row: int) -> int:
    """Code in `names.OBJECTS` of the object in that row of `objects`."""
    kind = objects[row, KIND]
    if kind == COW:
        return 1
    if kind == ZOMBIE:
        return 2
    if kind == SKELETON:
        return 3
    if kind == ARROW:
        return int(4 + objects[row, HEADING])
    return int(SAPLING_CODE + (objects[row, TIMER] > RIPE))


@compiled
def renew_senses(
    state: Array,
    material: Array,
    occupant: Array,
    objects: Array,
    memory: Array,
    planes: Array,
    senses: Array,
    light: float,
) -> None:
    """Compute window, map memory, interrupt, novelty and action mask from the present state of the world."""
    x0 = objects[0, X]
    y0 = objects[0, Y]
    enemy = 0
    waiting = state[SLEEPING]
    senses[AT_BITS : AT_BITS + PLANES * WINDOW_BYTES] = 0
    for j in range(HEIGHT):
        for i in range(WIDTH):
            x = x0 + i - REACH_X
            y = y0 + j - REACH_Y
            cell = OUTSIDE
            code = 0
            if inside(x, y):
                cell = material[x, y]
                if occupant[x, y] > 1:
                    code = object_code(objects, occupant[x, y] - 1)
                    if 2 <= code <= 7 and abs(x - x0) + abs(y - y0) == 1:
                        enemy = 1
                    if code == SAPLING_CODE and abs(x - x0) <= 2 and abs(y - y0) <= 2:
                        waiting = 1
                row = y + REACH_Y
                column = x + REACH_X
                if memory[row, column] == 0:
                    state[NOVELTY] += 1
                    state[LEFT] = min(state[LEFT], column)
                    state[RIGHT] = max(state[RIGHT], column)
                    state[TOP] = min(state[TOP], row)
                    state[BOTTOM] = max(state[BOTTOM], row)
                memory_code = PLANT_CODE if code >= SAPLING_CODE else cell
                if memory[row, column] != memory_code:
                    memory[row, column] = memory_code
                    bit = row * MEMORY_WIDTH + column
                    for plane in range(PLANES):
                        planes[plane, bit >> 3] &= 255 - (1 << (bit & 7))
                        planes[plane, bit >> 3] |= (memory_code >> plane & 1) << (bit & 7)
                bit = j * MEMORY_WIDTH + i
                for plane in range(PLANES):
                    senses[AT_BITS + plane * WINDOW_BYTES + (bit >> 3)] |= (memory_code >> plane & 1) << (bit & 7)
            senses[AT_MATERIALS + j * WIDTH + i] = cell
            senses[AT_OBJECTS + j * WIDTH + i] = code
    state[INTERRUPT] = state[LIFE] < state[REWARDED_HEALTH] or (enemy and not state[ENEMY_NEAR])
    state[ENEMY_NEAR] = enemy
    senses[AT_X] = x0
    senses[AT_Y] = y0
    senses[AT_FACING] = state[FACING]
    senses[AT_SLEEPING] = state[SLEEPING]
    senses[AT_DAYLIGHT] = int(255 * light)
    senses[AT_INTERRUPT] = state[INTERRUPT]
    senses[AT_WAITING] = waiting
    steps_left = max(0, state[HORIZON] - state[STEP])
    senses[AT_STEPS] = state[STEP] & 255
    senses[AT_STEPS + 1] = state[STEP] >> 8
    senses[AT_STEPS_LEFT] = steps_left & 255
    senses[AT_STEPS_LEFT + 1] = steps_left >> 8
    for item in range(16):
        count = state[ITEM + item]
        senses[AT_ITEMS + item] = count
        if item >= 4 and count > state[MAX_COUNT + item]:
            state[MAX_COUNT + item] = count
            state[NOVELTY] += 1
    senses[AT_NEAR] = is_near(material, x0, y0, TABLE) + 2 * is_near(material, x0, y0, FURNACE)
    x = x0 + names.DIRECTIONS[state[FACING]][0]
    y = y0 + names.DIRECTIONS[state[FACING]][1]
    asleep = state[SLEEPING] != 0 and state[ENERGY] < 9
    for action in range(len(names.ACTIONS)):
        legal = action == 0 or not asleep
        if legal and SET_STONE <= action <= SET_PLANT:
            legal = can_place(state, material, occupant, action, x, y)
        elif legal and action >= MAKE:
            legal = can_make(state, material, objects, action)
        senses[AT_MASK + action] = legal


@compiled
def mark_achievements(state: Array, senses: Array) -> bool:
    """Mark newly unlocked achievements; whether there were any."""
    any_new = False
    for index in range(22):
        at = AT_ACHIEVED + index // 8
        bit = 1 << index % 8
        if state[ACHIEVED_TIMES + index] > 0 and senses[at] & bit == 0:
            senses[at] |= bit
            state[NOVELTY] += 1
            any_new = True
    return any_new


@entry
def advance(
    state: Array,
    material: Array,
    occupant: Array,
    objects: Array,
    memory: Array,
    planes: Array,
    senses: Array,
    lights: Array,
    action: int,
) -> tuple[float, bool]:
    """One env step. Returns Crafter's own reward, and whether the episode is over: dead, out of time, or
    the goal unlocked."""
    light = lights[min(state[STEP] + 1, LAST_STEP)]
    step(state, material, occupant, objects, light, action)
    reward = (state[LIFE] - state[REWARDED_HEALTH]) / 10
    if mark_achievements(state, senses):
        reward += 1.0
    renew_senses(state, material, occupant, objects, memory, planes, senses, light)
    state[REWARDED_HEALTH] = state[LIFE]
    over = state[LIFE] <= 0 or state[STEP] >= state[HORIZON]
    if state[GOAL] >= 0 and state[ACHIEVED_TIMES + state[GOAL]] > 0:
        over = True
    return reward, over


@entry
def perceive(
    state: Array,
    material: Array,
    occupant: Array,
    objects: Array,
    memory: Array,
    planes: Array,
    senses: Array,
    lights: Array,
) -> None:
    """Compute the senses at the start of an episode, without an interrupt."""
    renew_senses(state, material, occupant, objects, memory, planes, senses, lights[min(state[STEP], LAST_STEP)])
    state[INTERRUPT] = 0
    senses[AT_INTERRUPT] = 0


@compiled
def write_direction(out: Array, at: int, dx: int, dy: int) -> None:
    """Direction (dx, dy) / L1 distance, and closeness 8 / (8 + distance)."""
    distance = abs(dx) + abs(dy)
    out[at] = dx / max(distance, 1)
    out[at + 1] = dy / max(distance, 1)
    out[at + 2] = 8 / (8 + distance)


@entry
def describe(state: Array, memory: Array, senses: Array, out: Array) -> None:
    """Fill `out` float32 [FEATURES_SIZE] with every feature, in the order of the F_ offsets."""
    out[F_INVENTORY:] = 0
    creature = np.full(5, 1000)
    for cell in range(CELLS):
        code = senses[AT_OBJECTS + cell]
        out[F_WINDOW + cell] = MATERIALS - 1 + code if code else senses[AT_MATERIALS + cell]
        if code:
            kind = 0 if code == 1 else 1 if code == 2 else 2 if code == 3 else 3 if code <= 7 else 4
            dx = cell % WIDTH - REACH_X
            dy = cell // WIDTH - REACH_Y
            if abs(dx) + abs(dy) < creature[kind]:
                creature[kind] = abs(dx) + abs(dy)
                write_direction(out, F_CREATURES + 3 * kind, dx, dy)
    for item in range(12):
        out[F_INVENTORY + item] = senses[AT_ITEMS + 4 + item] / 9
    for vital in range(4):
        out[F_VITALS + vital] = senses[AT_ITEMS + vital] / 9
    out[F_FACING + state[FACING]] = 1
    out[F_SLEEPING] = state[SLEEPING]
    out[F_DAYLIGHT] = senses[AT_DAYLIGHT] / 255
    out[F_TIME_LEFT] = max(0, state[HORIZON] - state[STEP]) / state[HORIZON]
    out[F_NEAR] = senses[AT_NEAR] & 1
    out[F_NEAR + 1] = senses[AT_NEAR] >> 1
    column = int(senses[AT_X]) + REACH_X
    row = int(senses[AT_Y]) + REACH_Y
    nearest = np.full(REMEMBERED, 1000)
    for y in range(state[TOP], state[BOTTOM] + 1):
        dy = y - row
        for x in range(state[LEFT], state[RIGHT] + 1):
            cell = memory[y, x]
            distance = abs(x - column) + abs(dy)
            if distance < nearest[cell] and cell:
                nearest[cell] = distance
                write_direction(out, F_REMEMBERED + 3 * (cell - 1), x - column, dy)
    for index in range(22):
        out[F_MILESTONES + index] = senses[AT_ACHIEVED + index // 8] >> index % 8 & 1


@entry
def progress_key(state: Array, senses: Array) -> int:
    """Cell, facing and inventory in one exact 62-bit number."""
    value = state[FACING] << 12 | int(senses[AT_X]) << 6 | int(senses[AT_Y])
    for item in range(12):
        value |= state[ITEM + 4 + item] << 14 + 4 * item
    return int(value)

"""What the player does and needs (`crafter/objects.py`, `Player`)."""

from __future__ import annotations

from rlgpt.training.worlds.crafter.compiled import compiled
from rlgpt.training.worlds.crafter.ground import DX, DY, add, inside, move
from rlgpt.training.worlds.crafter.layout import (
    AREA,
    COAL,
    COW,
    DIAMOND,
    FACING,
    FATIGUE,
    FURNACE,
    GRASS,
    HEALTH,
    HUNGER2,
    HURT_BY,
    IRON,
    ITEM,
    KIND,
    LAST_HEALTH,
    LAVA,
    PATH,
    PLANT,
    PLAYER,
    RECOVER2,
    RIPE,
    SAND,
    SKELETON,
    SLEEPING,
    STONE,
    TABLE,
    THIRST2,
    TIMER,
    TREE,
    WATER,
    ZOMBIE,
    Array,
    X,
    Y,
)
from rlgpt.training.worlds.crafter.random_stream import uniform
from rlgpt.training.worlds.crafter.words import (
    BY_FATIGUE,
    BY_HUNGER,
    BY_LAVA,
    BY_THIRST,
    COALS,
    COLLECT_COAL,
    COLLECT_DIAMOND,
    COLLECT_DRINK,
    COLLECT_IRON,
    COLLECT_SAPLING,
    COLLECT_STONE,
    COLLECT_WOOD,
    DEFEAT_SKELETON,
    DEFEAT_ZOMBIE,
    DIAMONDS,
    DO,
    DRINK,
    EAT_COW,
    EAT_PLANT,
    ENERGY,
    FOOD,
    IRON_PICKAXE,
    IRON_SWORD,
    IRONS,
    LIFE,
    MAKE,
    MAKE_ACHIEVEMENTS,
    PLACE_FURNACE,
    PLACE_PLANT,
    PLACE_STONE,
    PLACE_TABLE,
    SAPLING,
    SET_FURNACE,
    SET_PLANT,
    SET_STONE,
    SET_TABLE,
    SLEEP,
    STONE_PICKAXE,
    STONE_SWORD,
    STONES,
    WAKE_UP,
    WOOD,
    WOOD_PICKAXE,
    WOOD_SWORD,
)


@compiled
def act_on_object(state: Array, objects: Array, row: int) -> None:
    damage = 1
    if state[WOOD_SWORD]:
        damage = 2
    if state[STONE_SWORD]:
        damage = 3
    if state[IRON_SWORD]:
        damage = 5
    kind = objects[row, KIND]
    if kind == PLANT:
        if objects[row, TIMER] > RIPE:
            objects[row, TIMER] = 0
            state[FOOD] += 4
            state[EAT_PLANT] += 1
    elif kind in (ZOMBIE, SKELETON, COW):
        objects[row, HEALTH] = max(0, objects[row, HEALTH] - damage)
        if objects[row, HEALTH] == 0:
            if kind == ZOMBIE:
                state[DEFEAT_ZOMBIE] += 1
            elif kind == SKELETON:
                state[DEFEAT_SKELETON] += 1
            else:
                state[FOOD] += 6
                state[EAT_COW] += 1
                state[HUNGER2] = 0


@compiled
def act_on_material(state: Array, material: Array, x: int, y: int) -> None:
    cell = material[x, y]
    if cell == WATER:
        state[THIRST2] = 0
        uniform(state)
        state[DRINK] += 1
        state[COLLECT_DRINK] += 1
    elif cell == GRASS:
        if uniform(state) <= 0.1:
            state[SAPLING] += 1
            state[COLLECT_SAPLING] += 1
    elif cell == TREE:
        material[x, y] = GRASS
        uniform(state)
        state[WOOD] += 1
        state[COLLECT_WOOD] += 1
    elif cell == STONE and state[WOOD_PICKAXE] >= 1:
        material[x, y] = PATH
        uniform(state)
        state[STONES] += 1
        state[COLLECT_STONE] += 1
    elif cell == COAL and state[WOOD_PICKAXE] >= 1:
        material[x, y] = PATH
        uniform(state)
        state[COALS] += 1
        state[COLLECT_COAL] += 1
    elif cell == IRON and state[STONE_PICKAXE] >= 1:
        material[x, y] = PATH
        uniform(state)
        state[IRONS] += 1
        state[COLLECT_IRON] += 1
    elif cell == DIAMOND and state[IRON_PICKAXE] >= 1:
        material[x, y] = PATH
        uniform(state)
        state[DIAMONDS] += 1
        state[COLLECT_DIAMOND] += 1


@compiled
def can_place(state: Array, material: Array, occupant: Array, action: int, x: int, y: int) -> bool:
    """Whether `place_*` on cell (x, y) would do something."""
    if not inside(x, y) or occupant[x, y] != 0:
        return False
    cell = material[x, y]
    land = cell in (GRASS, SAND, PATH)
    if action == SET_STONE:
        return state[STONES] >= 1 and (land or cell in (WATER, LAVA))
    if action == SET_TABLE:
        return state[WOOD] >= 2 and land
    if action == SET_FURNACE:
        return state[STONES] >= 4 and land
    return bool(state[SAPLING] >= 1 and cell == GRASS)


@compiled
def place(state: Array, material: Array, occupant: Array, objects: Array, action: int, x: int, y: int) -> None:
    if not can_place(state, material, occupant, action, x, y):
        return
    if action == SET_STONE:
        state[STONES] -= 1
        material[x, y] = STONE
        state[PLACE_STONE] += 1
    elif action == SET_TABLE:
        state[WOOD] -= 2
        material[x, y] = TABLE
        state[PLACE_TABLE] += 1
    elif action == SET_FURNACE:
        state[STONES] -= 4
        material[x, y] = FURNACE
        state[PLACE_FURNACE] += 1
    else:
        state[SAPLING] -= 1
        add(state, occupant, objects, PLANT, x, y, 1, 0)
        state[PLACE_PLANT] += 1


@compiled
def is_near(material: Array, x: int, y: int, target: int) -> bool:
    """Within the 3x3 cells around (x, y). In the first row and column stock's slice is empty: never."""
    if x == 0 or y == 0:
        return False
    for i in range(x - 1, min(x + 2, AREA)):
        for j in range(y - 1, min(y + 2, AREA)):
            if material[i, j] == target:
                return True
    return False


@compiled
def can_make(state: Array, material: Array, objects: Array, action: int) -> bool:
    """Whether `make_*` would do something here."""
    grade = (action - MAKE) % 3
    if state[WOOD] < 1:
        return False
    if grade == 1 and state[STONES] < 1:
        return False
    if grade == 2 and (state[COALS] < 1 or state[IRONS] < 1):
        return False
    x = objects[0, X]
    y = objects[0, Y]
    return is_near(material, x, y, TABLE) and (grade < 2 or is_near(material, x, y, FURNACE))


@compiled
def make(state: Array, material: Array, objects: Array, action: int) -> None:
    if not can_make(state, material, objects, action):
        return
    grade = (action - MAKE) % 3
    state[WOOD] -= 1
    if grade == 1:
        state[STONES] -= 1
    elif grade == 2:
        state[COALS] -= 1
        state[IRONS] -= 1
    state[WOOD_PICKAXE + action - MAKE] += 1
    state[MAKE_ACHIEVEMENTS[action - MAKE]] += 1


@compiled
def update_needs(state: Array) -> None:
    """Hunger, thirst, fatigue and what they do to health."""
    asleep = state[SLEEPING] != 0
    state[HUNGER2] += 1 if asleep else 2
    if state[HUNGER2] > 50:
        state[HUNGER2] = 0
        state[FOOD] -= 1
    state[THIRST2] += 1 if asleep else 2
    if state[THIRST2] > 40:
        state[THIRST2] = 0
        state[DRINK] -= 1
    if asleep:
        state[FATIGUE] = min(state[FATIGUE] - 1, 0)
    else:
        state[FATIGUE] += 1
    if state[FATIGUE] < -10:
        state[FATIGUE] = 0
        state[ENERGY] += 1
    if state[FATIGUE] > 30:
        state[FATIGUE] = 0
        state[ENERGY] -= 1
    if state[FOOD] > 0 and state[DRINK] > 0 and (state[ENERGY] > 0 or asleep):
        state[RECOVER2] += 4 if asleep else 2
    else:
        state[RECOVER2] -= 1 if asleep else 2
    if state[RECOVER2] > 50:
        state[RECOVER2] = 0
        state[LIFE] += 1
    if state[RECOVER2] < -30:
        state[RECOVER2] = 0
        if state[LIFE] > 0:
            state[HURT_BY] = BY_THIRST if state[DRINK] <= 0 else BY_HUNGER if state[FOOD] <= 0 else BY_FATIGUE
        state[LIFE] = max(0, state[LIFE] - 1)


@compiled
def update_player(state: Array, material: Array, occupant: Array, objects: Array, action: int) -> None:
    facing = state[FACING]
    x = objects[0, X] + DX[facing]
    y = objects[0, Y] + DY[facing]
    if state[SLEEPING]:
        if state[ENERGY] < 9:
            action = SLEEP
        else:
            state[SLEEPING] = 0
            state[WAKE_UP] += 1
    if 1 <= action <= 4:
        state[FACING] = action - 1
        move(state, material, occupant, objects, 0, PLAYER, DX[action - 1], DY[action - 1])
        if material[objects[0, X], objects[0, Y]] == LAVA:
            state[LIFE] = 0
            state[HURT_BY] = BY_LAVA
    elif action == DO:
        if inside(x, y):
            if occupant[x, y]:
                act_on_object(state, objects, occupant[x, y] - 1)
            else:
                act_on_material(state, material, x, y)
    elif action == SLEEP:
        if state[ENERGY] < 9:
            state[SLEEPING] = 1
    elif SET_STONE <= action <= SET_PLANT:
        place(state, material, occupant, objects, action, x, y)
    elif action >= MAKE:
        make(state, material, objects, action)
    update_needs(state)
    for item in range(16):
        state[ITEM + item] = max(0, min(state[ITEM + item], 9))
    if state[LIFE] < state[LAST_HEALTH]:
        state[SLEEPING] = 0
    state[LAST_HEALTH] = state[LIFE]

"""The rules of Crafter 1.8.3 (`crafter/env.py`, `objects.py`, `engine.py`, `data.yaml`) on flat arrays.

Every random draw happens where stock Crafter makes it. The one liberty: the objects of a chunk and the
chunks themselves are ordered by arrival, where stock iterates over a set of addresses.
An object that dies in its own update still finishes that update, as in stock.
"""

from __future__ import annotations

from numpy.typing import NDArray

from rlgpt.training.worlds.crafter.compiled import compiled
from rlgpt.training.worlds.crafter.layout import (
    ACTIVE,
    AREA,
    ARROW,
    CAME,
    CHUNK,
    CHUNK_KNOWN,
    CHUNK_ORDER,
    CHUNK_ROWS,
    CHUNKS,
    COAL,
    COW,
    DEAD,
    DIAMOND,
    DONE_TIMES,
    ENTERED,
    FACING,
    FATIGUE,
    FIELDS,
    FURNACE,
    GRASS,
    HEADING,
    HEALTH,
    HUNGER2,
    IRON,
    ITEM,
    KIND,
    LAST_HEALTH,
    LAVA,
    NOBODY,
    OUTSIDE,
    PATH,
    PLANT,
    PLAYER,
    POPULATION,
    RECOVER2,
    RIPE,
    ROWS,
    SAND,
    SKELETON,
    SLEEPING,
    STEP,
    STONE,
    TABLE,
    THIRST2,
    TIMER,
    TREE,
    WATER,
    ZOMBIE,
    X,
    Y,
)
from rlgpt.training.worlds.crafter.names import ACHIEVEMENTS, ACTIONS, ITEMS
from rlgpt.training.worlds.crafter.random_stream import below, uniform

FOOD = ITEM + ITEMS.index("food")
DRINK = ITEM + ITEMS.index("drink")
ENERGY = ITEM + ITEMS.index("energy")
SAPLING = ITEM + ITEMS.index("sapling")
WOOD = ITEM + ITEMS.index("wood")
STONES = ITEM + ITEMS.index("stone")
COALS = ITEM + ITEMS.index("coal")
IRONS = ITEM + ITEMS.index("iron")
DIAMONDS = ITEM + ITEMS.index("diamond")
WOOD_PICKAXE = ITEM + ITEMS.index("wood_pickaxe")
STONE_PICKAXE = ITEM + ITEMS.index("stone_pickaxe")
IRON_PICKAXE = ITEM + ITEMS.index("iron_pickaxe")
WOOD_SWORD = ITEM + ITEMS.index("wood_sword")
STONE_SWORD = ITEM + ITEMS.index("stone_sword")
IRON_SWORD = ITEM + ITEMS.index("iron_sword")
LIFE = ITEM + ITEMS.index("health")

COLLECT_COAL = DONE_TIMES + ACHIEVEMENTS.index("collect_coal")
COLLECT_DIAMOND = DONE_TIMES + ACHIEVEMENTS.index("collect_diamond")
COLLECT_DRINK = DONE_TIMES + ACHIEVEMENTS.index("collect_drink")
COLLECT_IRON = DONE_TIMES + ACHIEVEMENTS.index("collect_iron")
COLLECT_SAPLING = DONE_TIMES + ACHIEVEMENTS.index("collect_sapling")
COLLECT_STONE = DONE_TIMES + ACHIEVEMENTS.index("collect_stone")
COLLECT_WOOD = DONE_TIMES + ACHIEVEMENTS.index("collect_wood")
DEFEAT_SKELETON = DONE_TIMES + ACHIEVEMENTS.index("defeat_skeleton")
DEFEAT_ZOMBIE = DONE_TIMES + ACHIEVEMENTS.index("defeat_zombie")
EAT_COW = DONE_TIMES + ACHIEVEMENTS.index("eat_cow")
EAT_PLANT = DONE_TIMES + ACHIEVEMENTS.index("eat_plant")
PLACE_FURNACE = DONE_TIMES + ACHIEVEMENTS.index("place_furnace")
PLACE_PLANT = DONE_TIMES + ACHIEVEMENTS.index("place_plant")
PLACE_STONE = DONE_TIMES + ACHIEVEMENTS.index("place_stone")
PLACE_TABLE = DONE_TIMES + ACHIEVEMENTS.index("place_table")
WAKE_UP = DONE_TIMES + ACHIEVEMENTS.index("wake_up")
# The six recipes in the order of the actions, of the items and of the achievements.
MADE_PICKAXE = (
    DONE_TIMES + ACHIEVEMENTS.index("make_wood_pickaxe"),
    DONE_TIMES + ACHIEVEMENTS.index("make_stone_pickaxe"),
    DONE_TIMES + ACHIEVEMENTS.index("make_iron_pickaxe"),
    DONE_TIMES + ACHIEVEMENTS.index("make_wood_sword"),
    DONE_TIMES + ACHIEVEMENTS.index("make_stone_sword"),
    DONE_TIMES + ACHIEVEMENTS.index("make_iron_sword"),
)
DO = ACTIONS.index("do")
SLEEP = ACTIONS.index("sleep")
SET_STONE = ACTIONS.index("place_stone")
SET_TABLE = ACTIONS.index("place_table")
SET_FURNACE = ACTIONS.index("place_furnace")
SET_PLANT = ACTIONS.index("place_plant")
MAKE = ACTIONS.index("make_wood_pickaxe")
DX = (-1, 1, 0, 0)
DY = (0, 0, -1, 1)


# --- the map -------------------------------------------------------------------------------------------


@compiled
def inside(x: int, y: int) -> bool:
    return 0 <= x < AREA and 0 <= y < AREA


@compiled
def chunk_of(x: int, y: int) -> int:
    return (x // CHUNK) * CHUNK_ROWS + y // CHUNK


@compiled
def enter_chunk(state: NDArray, objects: NDArray, row: int, chunk: int) -> None:
    if state[CHUNK_KNOWN + chunk] == 0:
        state[CHUNK_KNOWN + chunk] = 1
        state[CHUNK_ORDER + state[CHUNKS]] = chunk
        state[CHUNKS] += 1
    objects[row, CAME] = state[ENTERED]
    state[ENTERED] += 1


@compiled
def add(
    state: NDArray, occupant: NDArray, objects: NDArray, kind: int, x: int, y: int, health: int, heading: int
) -> None:
    row = state[ROWS]
    state[ROWS] = row + 1
    objects[row, KIND] = kind
    objects[row, X] = x
    objects[row, Y] = y
    objects[row, HEALTH] = health
    objects[row, TIMER] = 0
    objects[row, HEADING] = heading
    occupant[x, y] = row + 1
    enter_chunk(state, objects, row, chunk_of(x, y))


@compiled
def remove(state: NDArray, occupant: NDArray, objects: NDArray, row: int) -> None:
    objects[row, KIND] = NOBODY
    occupant[objects[row, X], objects[row, Y]] = 0
    state[DEAD] += 1


@compiled
def bury(state: NDArray, occupant: NDArray, objects: NDArray) -> None:
    """Drop dead rows, keeping the order of the living."""
    kept = 0
    for row in range(state[ROWS]):
        if objects[row, KIND] != NOBODY:
            if kept != row:
                for field in range(FIELDS):
                    objects[kept, field] = objects[row, field]
                occupant[objects[kept, X], objects[kept, Y]] = kept + 1
            kept += 1
    state[ROWS] = kept
    state[DEAD] = 0


@compiled
def walkable(kind: int, material: int) -> bool:
    if material in (GRASS, SAND, PATH):
        return True
    if kind == ARROW:
        return material in (WATER, LAVA)
    return kind == PLAYER and material == LAVA


@compiled
def is_free(material: NDArray, occupant: NDArray, kind: int, x: int, y: int) -> bool:
    return inside(x, y) and occupant[x, y] == 0 and walkable(kind, material[x, y])


@compiled
def move(
    state: NDArray,
    material: NDArray,
    occupant: NDArray,
    objects: NDArray,
    row: int,
    kind: int,
    dx: int,
    dy: int,
) -> bool:
    """True if the way was free, also for the dead, who stay where they are."""
    old_x = objects[row, X]
    old_y = objects[row, Y]
    x = old_x + dx
    y = old_y + dy
    if not is_free(material, occupant, kind, x, y):
        return False
    if objects[row, KIND] == NOBODY:
        return True
    occupant[x, y] = row + 1
    occupant[old_x, old_y] = 0
    objects[row, X] = x
    objects[row, Y] = y
    chunk = chunk_of(x, y)
    if chunk != chunk_of(old_x, old_y):
        enter_chunk(state, objects, row, chunk)
    return True


@compiled
def distance_to_player(objects: NDArray, x: int, y: int) -> int:
    return abs(objects[0, X] - x) + abs(objects[0, Y] - y)


@compiled
def sign(value: int) -> int:
    return (value > 0) - (value < 0)


@compiled
def heading_to_player(objects: NDArray, row: int, long_axis: bool) -> int:
    """-2, -1, 1, 2: left, up, right, down; 0 when the chosen axis has no offset."""
    dx = objects[0, X] - objects[row, X]
    dy = objects[0, Y] - objects[row, Y]
    horizontal = abs(dx) > abs(dy) if long_axis else abs(dx) <= abs(dy)
    return 2 * sign(dx) if horizontal else sign(dy)


@compiled
def move_along(
    state: NDArray,
    material: NDArray,
    occupant: NDArray,
    objects: NDArray,
    row: int,
    kind: int,
    heading: int,
) -> bool:
    """Move by a heading of `heading_to_player`."""
    dx = heading // 2 if abs(heading) == 2 else 0
    dy = heading if abs(heading) == 1 else 0
    return move(state, material, occupant, objects, row, kind, dx, dy)


@compiled
def move_anywhere(state: NDArray, material: NDArray, occupant: NDArray, objects: NDArray, row: int, kind: int) -> None:
    way = below(state, 4)
    move(state, material, occupant, objects, row, kind, DX[way], DY[way])


# --- the player ----------------------------------------------------------------------------------------


@compiled
def do_object(state: NDArray, objects: NDArray, row: int) -> None:
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
def do_material(state: NDArray, material: NDArray, x: int, y: int) -> None:
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
def can_place(state: NDArray, material: NDArray, occupant: NDArray, action: int, x: int, y: int) -> bool:
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
    return state[SAPLING] >= 1 and cell == GRASS


@compiled
def place(state: NDArray, material: NDArray, occupant: NDArray, objects: NDArray, action: int, x: int, y: int) -> None:
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
def is_near(material: NDArray, x: int, y: int, wanted: int) -> bool:
    """Within the 3x3 cells around (x, y). In the first row and column stock's slice is empty: never."""
    if x == 0 or y == 0:
        return False
    for i in range(x - 1, min(x + 2, AREA)):
        for j in range(y - 1, min(y + 2, AREA)):
            if material[i, j] == wanted:
                return True
    return False


@compiled
def can_make(state: NDArray, material: NDArray, objects: NDArray, action: int) -> bool:
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
def make(state: NDArray, material: NDArray, objects: NDArray, action: int) -> None:
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
    state[MADE_PICKAXE[action - MAKE]] += 1


@compiled
def live(state: NDArray) -> None:
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
        state[LIFE] = max(0, state[LIFE] - 1)


@compiled
def update_player(state: NDArray, material: NDArray, occupant: NDArray, objects: NDArray, action: int) -> None:
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
    elif action == DO:
        if inside(x, y):
            if occupant[x, y]:
                do_object(state, objects, occupant[x, y] - 1)
            else:
                do_material(state, material, x, y)
    elif action == SLEEP:
        if state[ENERGY] < 9:
            state[SLEEPING] = 1
    elif SET_STONE <= action <= SET_PLANT:
        place(state, material, occupant, objects, action, x, y)
    elif action >= MAKE:
        make(state, material, objects, action)
    live(state)
    for item in range(16):
        state[ITEM + item] = max(0, min(state[ITEM + item], 9))
    if state[LIFE] < state[LAST_HEALTH]:
        state[SLEEPING] = 0
    state[LAST_HEALTH] = state[LIFE]


# --- the others ----------------------------------------------------------------------------------------


@compiled
def hurt_player(state: NDArray, damage: int) -> None:
    state[LIFE] = max(0, state[LIFE] - damage)


@compiled
def update_cow(state: NDArray, material: NDArray, occupant: NDArray, objects: NDArray, row: int) -> None:
    if objects[row, HEALTH] <= 0:
        remove(state, occupant, objects, row)
    if uniform(state) < 0.5:
        move_anywhere(state, material, occupant, objects, row, COW)


@compiled
def update_zombie(state: NDArray, material: NDArray, occupant: NDArray, objects: NDArray, row: int) -> None:
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
            hurt_player(state, 7 if state[SLEEPING] else 2)
            objects[row, TIMER] = 5


@compiled
def shoot(state: NDArray, material: NDArray, occupant: NDArray, objects: NDArray, row: int, heading: int) -> None:
    if objects[row, TIMER] > 0 or heading == 0:
        return
    way = (heading + 2) // 4 if abs(heading) == 2 else 2 + (heading + 1) // 2
    x = objects[row, X] + DX[way]
    y = objects[row, Y] + DY[way]
    if is_free(material, occupant, ARROW, x, y):
        add(state, occupant, objects, ARROW, x, y, 0, way)
        objects[row, TIMER] = 4


@compiled
def update_skeleton(state: NDArray, material: NDArray, occupant: NDArray, objects: NDArray, row: int) -> None:
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
def update_arrow(state: NDArray, material: NDArray, occupant: NDArray, objects: NDArray, row: int) -> None:
    way = objects[row, HEADING]
    x = objects[row, X] + DX[way]
    y = objects[row, Y] + DY[way]
    cell = OUTSIDE
    hit = 0
    if inside(x, y):
        cell = material[x, y]
        hit = occupant[x, y]
    if hit == 1:
        hurt_player(state, 2)
        remove(state, occupant, objects, row)
    elif hit:
        objects[hit - 1, HEALTH] = max(0, objects[hit - 1, HEALTH] - 2)
        remove(state, occupant, objects, row)
    elif not walkable(ARROW, cell):
        remove(state, occupant, objects, row)
        if cell in (TABLE, FURNACE):
            material[x, y] = PATH
    else:
        move(state, material, occupant, objects, row, ARROW, DX[way], DY[way])


@compiled
def update_plant(state: NDArray, occupant: NDArray, objects: NDArray, row: int) -> None:
    objects[row, TIMER] += 1
    for way in range(4):
        x = objects[row, X] + DX[way]
        y = objects[row, Y] + DY[way]
        if inside(x, y) and occupant[x, y]:
            kind = objects[occupant[x, y] - 1, KIND]
            if kind in (ZOMBIE, SKELETON, COW):
                objects[row, HEALTH] = max(0, objects[row, HEALTH] - 1)
                break
    if objects[row, HEALTH] <= 0:
        remove(state, occupant, objects, row)


@compiled
def update_objects(state: NDArray, material: NDArray, occupant: NDArray, objects: NDArray, action: int) -> None:
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


# --- births and deaths far from the eye ----------------------------------------------------------------


@compiled
def find_cell(material: NDArray, chunk: int, wanted: int, index: int) -> int:
    """The `index`-th cell of that material in the chunk, as x * AREA + y; with index -1, their number."""
    found = 0
    left = chunk // CHUNK_ROWS * CHUNK
    top = chunk % CHUNK_ROWS * CHUNK
    for x in range(left, min(left + CHUNK, AREA)):
        for y in range(top, min(top + CHUNK, AREA)):
            if material[x, y] == wanted:
                if found == index:
                    return x * AREA + y
                found += 1
    return found


@compiled
def find_creature(state: NDArray, objects: NDArray, chunk: int, kind: int, index: int) -> int:
    """Row of the creature that came `index`-th into the chunk, among those of its kind there now."""
    last = -1
    row_of_next = -1
    for _ in range(index + 1):
        row_of_next = -1
        for row in range(state[ROWS]):
            if objects[row, KIND] != kind or objects[row, CAME] <= last:
                continue
            if chunk_of(objects[row, X], objects[row, Y]) != chunk:
                continue
            if row_of_next < 0 or objects[row, CAME] < objects[row_of_next, CAME]:
                row_of_next = row
        last = objects[row_of_next, CAME]
    return row_of_next


@compiled
def balance(
    state: NDArray,
    material: NDArray,
    occupant: NDArray,
    objects: NDArray,
    chunk: int,
    kind: int,
    fewest: int,
    most: int,
    birth_distance: int,
    death_distance: int,
    birth: float,
    death: float,
) -> None:
    """Bring the number of one kind in one chunk towards [fewest, most]."""
    living = state[POPULATION + chunk * 3 + (0 if kind == ZOMBIE else 1 if kind == SKELETON else 2)]
    ground = PATH if kind == SKELETON else GRASS
    if living < fewest and uniform(state) < birth:
        cell = find_cell(material, chunk, ground, below(state, find_cell(material, chunk, ground, -1)))
        x = cell // AREA
        y = cell % AREA
        if occupant[x, y] == 0 and distance_to_player(objects, x, y) >= birth_distance:
            add(state, occupant, objects, kind, x, y, 5 if kind == ZOMBIE else 3, 0)
    elif living > most and uniform(state) < death:
        row = find_creature(state, objects, chunk, kind, below(state, living))
        if distance_to_player(objects, objects[row, X], objects[row, Y]) >= death_distance:
            remove(state, occupant, objects, row)


@compiled
def balance_chunks(state: NDArray, material: NDArray, occupant: NDArray, objects: NDArray, light: float) -> None:
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


@compiled
def step(state: NDArray, material: NDArray, occupant: NDArray, objects: NDArray, light: float, action: int) -> None:
    """One env step of stock Crafter, without its picture. `light` is the daylight of the new step."""
    if state[DEAD] > 32:
        bury(state, occupant, objects)
    state[STEP] += 1
    update_objects(state, material, occupant, objects, action)
    if state[STEP] % 10 == 0:
        balance_chunks(state, material, occupant, objects, light)

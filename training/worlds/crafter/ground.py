"""The map and the objects on it: adding, removing and moving them, and the chunk that each is in."""

from __future__ import annotations

from rlgpt.training.worlds.crafter.compiled import compiled
from rlgpt.training.worlds.crafter.layout import (
    AREA,
    ARRIVAL,
    ARRIVALS,
    ARROW,
    CHUNK,
    CHUNK_ORDER,
    CHUNK_ROWS,
    CHUNK_USED,
    CHUNKS,
    DEAD,
    FIELDS,
    GRASS,
    HEADING,
    HEALTH,
    KIND,
    LAVA,
    NOBODY,
    PATH,
    PLAYER,
    ROWS,
    SAND,
    TIMER,
    WATER,
    Array,
    X,
    Y,
)
from rlgpt.training.worlds.crafter.random_stream import below

DX = (-1, 1, 0, 0)
DY = (0, 0, -1, 1)


@compiled
def inside(x: int, y: int) -> bool:
    return 0 <= x < AREA and 0 <= y < AREA


@compiled
def chunk_of(x: int, y: int) -> int:
    return (x // CHUNK) * CHUNK_ROWS + y // CHUNK


@compiled
def enter_chunk(state: Array, objects: Array, row: int, chunk: int) -> None:
    if state[CHUNK_USED + chunk] == 0:
        state[CHUNK_USED + chunk] = 1
        state[CHUNK_ORDER + state[CHUNKS]] = chunk
        state[CHUNKS] += 1
    objects[row, ARRIVAL] = state[ARRIVALS]
    state[ARRIVALS] += 1


@compiled
def add(state: Array, occupant: Array, objects: Array, kind: int, x: int, y: int, health: int, heading: int) -> None:
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
def remove(state: Array, occupant: Array, objects: Array, row: int) -> None:
    objects[row, KIND] = NOBODY
    occupant[objects[row, X], objects[row, Y]] = 0
    state[DEAD] += 1


@compiled
def drop_dead_rows(state: Array, occupant: Array, objects: Array) -> None:
    """Remove the rows of dead objects; the others keep their order."""
    next_row = 0
    for row in range(state[ROWS]):
        if objects[row, KIND] != NOBODY:
            if next_row != row:
                for field in range(FIELDS):
                    objects[next_row, field] = objects[row, field]
                occupant[objects[next_row, X], objects[next_row, Y]] = next_row + 1
            next_row += 1
    state[ROWS] = next_row
    state[DEAD] = 0


@compiled
def walkable(kind: int, material: int) -> bool:
    if material in (GRASS, SAND, PATH):
        return True
    if kind == ARROW:
        return material in (WATER, LAVA)
    return kind == PLAYER and material == LAVA


@compiled
def is_free(material: Array, occupant: Array, kind: int, x: int, y: int) -> bool:
    return inside(x, y) and occupant[x, y] == 0 and walkable(kind, material[x, y])


@compiled
def move(
    state: Array,
    material: Array,
    occupant: Array,
    objects: Array,
    row: int,
    kind: int,
    dx: int,
    dy: int,
) -> bool:
    """Move an object by one cell. True if that cell was free. A dead object does not move, but gets the same answer, as
    in stock."""
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
def distance_to_player(objects: Array, x: int, y: int) -> int:
    return int(abs(objects[0, X] - x) + abs(objects[0, Y] - y))


@compiled
def sign(value: int) -> int:
    return int(value > 0) - int(value < 0)


@compiled
def heading_to_player(objects: Array, row: int, long_axis: bool) -> int:
    """-2: left, 2: right, -1: up, 1: down; 0 when the chosen axis has no offset."""
    dx = objects[0, X] - objects[row, X]
    dy = objects[0, Y] - objects[row, Y]
    horizontal = abs(dx) > abs(dy) if long_axis else abs(dx) <= abs(dy)
    return 2 * sign(dx) if horizontal else sign(dy)


@compiled
def move_along(
    state: Array,
    material: Array,
    occupant: Array,
    objects: Array,
    row: int,
    kind: int,
    heading: int,
) -> bool:
    """Move by a heading of `heading_to_player`."""
    dx = heading // 2 if abs(heading) == 2 else 0
    dy = heading if abs(heading) == 1 else 0
    return move(state, material, occupant, objects, row, kind, dx, dy)


@compiled
def move_anywhere(state: Array, material: Array, occupant: Array, objects: Array, row: int, kind: int) -> None:
    direction = below(state, 4)
    move(state, material, occupant, objects, row, kind, DX[direction], DY[direction])

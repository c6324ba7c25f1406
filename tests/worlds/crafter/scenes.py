"""Late-game states, and a stock world put into any of ours: rules that random play never reaches."""

from __future__ import annotations

import numpy as np
from crafter import objects

from rlgpt.training.worlds.crafter import layout
from rlgpt.training.worlds.crafter.ground import add, chunk_of
from rlgpt.training.worlds.crafter.names import ACHIEVEMENTS, DIRECTIONS, ITEMS
from rlgpt.training.worlds.crafter.simulation import Simulation
from tests.worlds.crafter.stock import KINDS, TIMERS, OrderedSet, StockEnv

CLASSES = {kind: cls for cls, kind in KINDS.items()}


def stock_like(simulation: Simulation) -> StockEnv:
    """A stock env in exactly the state of ours."""
    state, rows = simulation.state, simulation.objects[: simulation.state[layout.ROWS]].tolist()
    env = StockEnv(0)
    world = env._world
    world.reset(seed=0)
    player = env._player = objects.Player(world, (32, 32))
    env._episode = 1
    world._mat_map[...] = simulation.material
    world._obj_map[...] = 0
    world._objects = [None]
    world._chunks.clear()
    for chunk in state[layout.CHUNK_ORDER : layout.CHUNK_ORDER + state[layout.CHUNKS]].tolist():
        x, y = chunk // 6 * 12, chunk % 6 * 12
        world._chunks[(x, min(x + 12, 64), y, min(y + 12, 64))] = OrderedSet()
    arrivals = []
    for kind, x, y, health, timer, heading, came in rows:
        if kind == layout.NOBODY:
            continue
        if kind == layout.PLAYER:
            thing = player
        elif kind in (layout.ZOMBIE, layout.SKELETON):
            thing = CLASSES[kind](world, (x, y), player)
        elif kind == layout.ARROW:
            thing = objects.Arrow(world, (x, y), np.array(DIRECTIONS[heading]))
        else:
            thing = CLASSES[kind](world, (x, y))
        thing.pos = np.array((x, y))
        if kind in TIMERS:
            setattr(thing, TIMERS[kind], timer)
        if kind != layout.PLAYER:
            thing.health = health
        world._obj_map[x, y] = len(world._objects)
        world._objects.append(thing)
        arrivals.append((came, thing))
    for _, thing in sorted(arrivals, key=lambda pair: pair[0]):
        world._chunks[world.chunk_key(thing.pos)].add(thing)
    world.random.set_state(("MT19937", state[:624].astype(np.uint32), int(state[layout.RANDOM_AT]), 0, 0.0))
    player.inventory = dict(zip(ITEMS, state[layout.ITEM : layout.ITEM + 16].tolist(), strict=True))
    counts = state[layout.ACHIEVED_TIMES : layout.ACHIEVED_TIMES + 22].tolist()
    player.achievements = dict(zip(ACHIEVEMENTS, counts, strict=True))
    player.facing = DIRECTIONS[state[layout.FACING]]
    player.sleeping = bool(state[layout.SLEEPING])
    player._last_health = int(state[layout.LAST_HEALTH])
    player._hunger, player._thirst = state[layout.HUNGER2] / 2, state[layout.THIRST2] / 2
    player._fatigue, player._recover = int(state[layout.FATIGUE]), state[layout.RECOVER2] / 2
    env._step = int(state[layout.STEP])
    env._last_health = int(state[layout.REWARDED_HEALTH])
    env._unlocked = {name for name, times in player.achievements.items() if times}
    return env


def late_game(seed: int) -> Simulation:
    """A rich, crowded and dangerous moment: full hands, low needs, every kind of neighbour close by."""
    draw = np.random.RandomState(seed)
    simulation = Simulation()
    simulation.reset(seed, 10_000, -1)
    state = simulation.state
    state[layout.STEP] = draw.randint(100, 4000)
    state[layout.ITEM + 4 : layout.ITEM + 16] = draw.randint(0, 10, 12) * (draw.rand(12) < 0.8)
    state[layout.ITEM : layout.ITEM + 4] = draw.randint(1, 10, 4)
    state[layout.ITEM] = draw.randint(4, 10)
    state[layout.LAST_HEALTH] = state[layout.REWARDED_HEALTH] = state[layout.ITEM]
    state[layout.HUNGER2], state[layout.THIRST2] = draw.randint(0, 51), draw.randint(0, 41)
    state[layout.FATIGUE], state[layout.RECOVER2] = draw.randint(-10, 31), draw.randint(-30, 51)
    state[layout.SLEEPING] = draw.rand() < 0.3
    x0, y0 = (int(v) for v in simulation.objects[0, [layout.X, layout.Y]])
    if seed % 3 == 0:
        x0, y0 = _to_the_edge(simulation, draw)
    for dx in range(-4, 5):
        for dy in range(-4, 5):
            x, y = x0 + dx, y0 + dy
            if (dx or dy) and 0 <= x < 64 and 0 <= y < 64 and not simulation.occupant[x, y]:
                _furnish(simulation, draw, x, y)
    simulation.look()
    return simulation


def _to_the_edge(simulation: Simulation, draw: np.random.RandomState) -> tuple[int, int]:
    x, y = [(0, 5), (5, 0), (63, 30), (30, 63)][draw.randint(4)]
    rows = simulation.objects[: simulation.state[layout.ROWS]]
    if simulation.occupant[x, y]:
        rows[simulation.occupant[x, y] - 1, layout.KIND] = layout.NOBODY
        simulation.state[layout.DEAD] += 1
    old = rows[0, [layout.X, layout.Y]]
    simulation.occupant[old[0], old[1]] = 0
    rows[0, [layout.X, layout.Y]] = x, y
    simulation.occupant[x, y] = 1
    simulation.material[x, y] = layout.GRASS
    chunk = chunk_of(x, y)
    if not simulation.state[layout.CHUNK_USED + chunk]:
        simulation.state[layout.CHUNK_USED + chunk] = 1
        simulation.state[layout.CHUNK_ORDER + simulation.state[layout.CHUNKS]] = chunk
        simulation.state[layout.CHUNKS] += 1
    return x, y


def _furnish(simulation: Simulation, draw: np.random.RandomState, x: int, y: int) -> None:
    """A random material, and on some cells somebody."""
    simulation.material[x, y] = draw.choice(
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
        p=[0.06, 0.3, 0.08, 0.25, 0.05, 0.05, 0.03, 0.04, 0.04, 0.04, 0.03, 0.03],
    )
    if draw.rand() < 0.75 or simulation.material[x, y] not in (layout.GRASS, layout.PATH, layout.SAND):
        return
    kind = int(draw.choice([layout.COW, layout.ZOMBIE, layout.SKELETON, layout.ARROW, layout.PLANT]))
    health = {layout.COW: 3, layout.ZOMBIE: 5, layout.SKELETON: 3, layout.ARROW: 0, layout.PLANT: 1}[kind]
    heading = int(draw.randint(4)) if kind == layout.ARROW else 0
    add(simulation.state, simulation.occupant, simulation.objects, kind, x, y, health, heading)
    row = simulation.state[layout.ROWS] - 1
    if kind == layout.PLANT:
        simulation.objects[row, layout.TIMER] = draw.choice([5, 299, 400])
    elif draw.rand() < 0.5 and kind != layout.ARROW:
        simulation.objects[row, layout.HEALTH] = 1

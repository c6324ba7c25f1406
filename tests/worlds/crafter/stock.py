"""The oracle: `crafter.Env` as published, with ordered chunks and no picture per step (its night noise
would draw from the game's random stream)."""

from __future__ import annotations

import collections

import crafter
import numpy as np
from crafter import engine, objects

from rlgpt.training.worlds.crafter import layout
from rlgpt.training.worlds.crafter.names import ACHIEVEMENTS, DIRECTIONS, ITEMS
from rlgpt.training.worlds.crafter.simulation import Simulation

KINDS = {
    objects.Player: layout.PLAYER,
    objects.Cow: layout.COW,
    objects.Zombie: layout.ZOMBIE,
    objects.Skeleton: layout.SKELETON,
    objects.Arrow: layout.ARROW,
    objects.Plant: layout.PLANT,
}
TIMERS = {layout.ZOMBIE: "cooldown", layout.SKELETON: "reload", layout.PLANT: "grown"}


class OrderedSet(dict):
    """What a chunk holds, in the order it came."""

    def add(self, item):
        self[item] = None

    def remove(self, item):
        del self[item]


class OrderedWorld(engine.World):
    def reset(self, seed=None):
        super().reset(seed)
        self._chunks = collections.defaultdict(OrderedSet)


class StockEnv(crafter.Env):
    def __init__(self, seed):
        super().__init__(seed=seed)
        self._world.__class__ = OrderedWorld

    def _obs(self):
        return None


def picture_of_stock(env):
    """Everything that decides the future of a stock world, as plain values."""
    player = env._player
    rows = []
    for thing in env._world.objects:
        kind = KINDS[type(thing)]
        timer = getattr(thing, TIMERS[kind]) if kind in TIMERS else 0
        heading = DIRECTIONS.index(tuple(int(d) for d in thing.facing)) if kind == layout.ARROW else 0
        health = 0 if kind == layout.PLAYER else thing.health
        rows.append((kind, int(thing.pos[0]), int(thing.pos[1]), int(health), int(timer), heading))
    _, words, at = env._world.random.get_state()[:3]
    chunks = [(xmin // 12) * 6 + ymin // 12 for xmin, _, ymin, _ in env._world._chunks]
    return {
        "map": env._world._mat_map.tobytes(),
        "objects": rows,
        "items": [player.inventory[name] for name in ITEMS],
        "achievements": [player.achievements[name] for name in ACHIEVEMENTS],
        "facing": DIRECTIONS.index(tuple(player.facing)),
        "sleeping": bool(player.sleeping),
        "needs": (2 * player._hunger, 2 * player._thirst, player._fatigue, 2 * player._recover),
        "step": env._step,
        "chunks": chunks,
        "random": (words.astype(np.int64).tobytes(), at),
    }


def picture_of_ours(simulation: Simulation):
    state = simulation.state
    rows = simulation.objects[: state[layout.ROWS], :6].tolist()
    return {
        "map": simulation.material.tobytes(),
        "objects": [tuple(row) for row in rows if row[0] != layout.NOBODY],
        "items": state[layout.ITEM : layout.ITEM + 16].tolist(),
        "achievements": state[layout.ACHIEVED_TIMES : layout.ACHIEVED_TIMES + 22].tolist(),
        "facing": int(state[layout.FACING]),
        "sleeping": bool(state[layout.SLEEPING]),
        "needs": tuple(int(state[at]) for at in (layout.HUNGER2, layout.THIRST2, layout.FATIGUE, layout.RECOVER2)),
        "step": int(state[layout.STEP]),
        "chunks": state[layout.CHUNK_ORDER : layout.CHUNK_ORDER + state[layout.CHUNKS]].tolist(),
        "random": (state[:624].tobytes(), int(state[layout.RANDOM_AT])),
    }

"""Finds coded actions that behave alike: equal first yields on a set of states (method.md, "Slots")."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rlgpt.training.host.api import Ask, Host, Programs
from rlgpt.training.options.slots import CodedAction, Slot, build_slots
from rlgpt.training.seeds import episode_seed
from rlgpt.training.worlds.packed import packed_view
from rlgpt.training.worlds.protocol import World

STATES = 64
STRIDE = 4
"""Random env steps between two states of a walk."""


def walk_views(world: World, task: str, seed: int) -> list[bytes]:
    """Whole views along random walks from `seed` and from other seeds of training; their env steps, at most
    STATES * STRIDE, are charged to nothing."""
    draw = np.random.default_rng(seed)
    env = world.make(task)
    env.reset(seed)
    edges = np.cumsum([0, *world.action_nvec])
    views: list[bytes] = []
    walks = 0
    while len(views) < STATES:
        views.append(packed_view(env, True))
        for _ in range(STRIDE):
            legal = env.action_masks()
            action = [int(draw.choice(legal[a:b].nonzero()[0])) for a, b in pairwise(edges)]
            result = env.step(world.native_action(action))
            if result.terminated or result.truncated:
                walks += 1
                env.reset(episode_seed(seed, "train", walks))
                break
    env.close()
    return views


def find_similar(host: Host, options: Sequence[CodedAction], views: Sequence[bytes]) -> dict[str, str]:
    """Slot key -> name of the first slot with the same yields. Needs at least one state in which it acts."""
    slots, actions = build_slots(options, [], max_option_steps=1, follow_plan=False)
    host.load(Programs({option.source_hash: option.source for option in options}, actions))
    first: dict[tuple[object, ...], Slot] = {}
    alike: dict[str, str] = {}
    for slot in slots:
        if slot is None:
            continue
        answers = [host.tick([Ask(0, view, open=slot.program, episode_start=True)])[0] for view in views[:STATES]]
        behaviour = tuple((answer.command, answer.end) for answer in answers)
        if not any(command for command, _ in behaviour):
            continue
        other = first.setdefault(behaviour, slot)
        if other is not slot:
            alike[slot.key] = other.name
    return alike

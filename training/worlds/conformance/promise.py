"""What a promise is checked with: random episodes of legal commands, and the sentence of what is broken."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

from rlgpt.training.worlds.protocol import Env, NativeAction, World

STEPS = 120
"""Of a random episode."""


class Broken(Exception):
    """The sentence is the argument."""


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)


def longest_task(world: World) -> str:
    """The longest task: it leaves most room to look around."""
    return max(world.tasks.values(), key=lambda task: task.horizon).id


def walk(world: World, env: Env, seed: int, steps: int = STEPS) -> Iterator[NativeAction]:
    """Legal random commands, as long as the episode lasts."""
    draw = random.Random(seed)
    for _ in range(steps):
        command = world.native_action(legal_action(world, env, draw))
        yield command
        result = env.step(command)
        if result.terminated or result.truncated:
            return


def legal_action(world: World, env: Env, draw: random.Random) -> list[int]:
    mask, action, at = env.action_masks(), [], 0
    for size in world.action_nvec:
        action.append(draw.choice(np.flatnonzero(mask[at : at + size]).tolist()))
        at += size
    return action


def trace(world: World, env: Env, seed: int) -> list[tuple[object, ...]]:
    """What one episode of random commands showed."""
    draw = random.Random(seed)
    shown: list[tuple[object, ...]] = []
    for _ in range(STEPS):
        command = world.native_action(legal_action(world, env, draw))
        result = env.step(command)
        shown.append((command, *result, env.observe().tobytes(), env.view(False), env.frame(), env.novelty()))
        if result.terminated or result.truncated:
            break
    return shown

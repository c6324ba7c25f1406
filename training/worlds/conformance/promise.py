"""Tools for checking promises: random episodes of legal commands, and `Broken` with the sentence on what is broken."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

from rlgpt.training.worlds.protocol import Env, NativeAction, World

STEPS = 120
"""Env steps of a random episode at most."""


class Broken(Exception):
    """The sentence is the argument."""


def expect(holds: bool, sentence: str) -> None:
    if not holds:
        raise Broken(sentence)


def is_line(value: object) -> bool:
    """Whether it is text of one line that a terminal can show."""
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def longest_task(world: World) -> str:
    """Id of the task with the longest horizon, whose episodes show most of the world."""
    return max(world.tasks.values(), key=lambda task: task.horizon).id


def walk(world: World, env: Env, seed: int, steps: int = STEPS) -> Iterator[NativeAction]:
    """Step through an episode with random legal commands; yields each command before its step."""
    random_stream = random.Random(seed)
    for _ in range(steps):
        command = world.native_action(legal_action(world, env, random_stream))
        yield command
        result = env.step(command)
        if result.terminated or result.truncated:
            return


def legal_action(world: World, env: Env, random_stream: random.Random) -> list[int]:
    mask, action, start = env.action_masks(), [], 0
    for size in world.action_nvec:
        action.append(random_stream.choice(np.flatnonzero(mask[start : start + size]).tolist()))
        start += size
    return action


def trace(world: World, env: Env, seed: int) -> list[tuple[object, ...]]:
    """Play random legal commands; returns for each step the command, its result and what the env shows after it."""
    random_stream = random.Random(seed)
    steps: list[tuple[object, ...]] = []
    for _ in range(STEPS):
        command = world.native_action(legal_action(world, env, random_stream))
        result = env.step(command)
        steps.append((command, *result, env.observe().tobytes(), env.view(False), env.frame(), env.novelty()))
        if result.terminated or result.truncated:
            break
    return steps

"""Tools for checking promises: random episodes of legal commands, and `Broken` with the sentence on what is broken."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import numpy as np

from rlgpt.training.worlds.protocol import Env, NativeAction, StepResult, World

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
        result = step(env, command)
        if result.terminated or result.truncated:
            return


def step(env: Env, command: NativeAction) -> StepResult:
    result = env.step(command)
    parts = all(hasattr(result, part) for part in StepResult._fields)
    expect(parts, f"step() gives {result!r:.60}; a StepResult(reward, terminated, truncated) was expected")
    return result


def legal_action(world: World, env: Env, random_stream: random.Random) -> list[int]:
    mask, action, start = env.action_masks(), [], 0
    for size in world.action_nvec:
        legal = np.flatnonzero(mask[start : start + size]).tolist()
        expect(bool(legal), f"action_masks() is {mask!r:.60}: a head of {size} actions has no legal one")
        action.append(random_stream.choice(legal))
        start += size
    return action


def trace(world: World, env: Env, seed: int, beside: Iterable[NativeAction] = ()) -> list[tuple[object, ...]]:
    """Play random legal commands, a step of the walk `beside` before each; returns for each step the command, its
    result and what the env shows after it."""
    random_stream, walking = random.Random(seed), iter(beside)
    steps: list[tuple[object, ...]] = []
    for _ in range(STEPS):
        next(walking, None)
        command = world.native_action(legal_action(world, env, random_stream))
        result = step(env, command)
        # as text, because NaN is not equal to itself: another promise says that a reward is no number
        shown = np.asarray(env.observe()).tobytes(), env.view(False), env.frame(), env.novelty()
        steps.append((command, repr(tuple(result)), *shown))
        if result.terminated or result.truncated:
            break
    return steps

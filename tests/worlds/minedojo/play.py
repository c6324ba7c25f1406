"""Runs the script book in this process, for tests that measure it: `follow_plan` without PPO, and a random policy."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any

from rlgpt.training.worlds.minedojo import host_side
from rlgpt.training.worlds.minedojo.env import MineDojoEnv
from rlgpt.training.worlds.minedojo.world import MineDojoWorld
from rlgpt.training.worlds.protocol import Command, Script

CAP = 16
"""Env steps of one option."""


def compiled(script: Script, rung: int = 0) -> tuple[Any, Any]:
    """(generator function, done_when(start, view)) of one rung."""
    space: dict[str, Any] = dict(host_side.LIBRARY)
    exec(script.sources[min(rung, len(script.sources) - 1)], space)
    test = eval(f"lambda start, view: bool({script.done_when})", space)
    return space[script.name], test


def code_alone(env: MineDojoEnv, scripts: tuple[Script, ...], seed: int, rung: int = 0) -> bool:
    """One episode of the plan as a stateless sequence: always the first item whose done_when is false."""
    plan = [compiled(script, rung) for script in scripts]
    decoder = host_side.decoder()
    env.reset(seed)
    start = view = decoder.view(env.view(True))
    ever = [False] * len(plan)
    env.ever = ever  # type: ignore[attr-defined]
    while True:
        ever[:] = [was or done(start, view) for was, (_, done) in zip(ever, plan, strict=True)]
        call: Generator[Command, Any, Any] | None = None
        for action, done in plan:
            if not done(start, view):
                call = action(view)
                break
        for turn in range(CAP):
            try:
                command = (next(call) if turn == 0 else call.send(view)) if call else host_side.NOOP
            except (StopIteration, ValueError):
                if turn:
                    break
                command, call = host_side.NOOP, None
            result = env.step(host_side.encode(command))
            view = decoder.view(env.view(False))
            if result.terminated or result.truncated:
                return env.succeeded()
            if call is None:
                break


def at_random(env: MineDojoEnv, world: MineDojoWorld, seed: int) -> bool:
    """One episode of uniform random actions of the two heads."""
    rng = random.Random(seed)
    env.reset(seed)
    while True:
        result = env.step(world.command([rng.randrange(size) for size in world.heads]))
        if result.terminated or result.truncated:
            return env.succeeded()

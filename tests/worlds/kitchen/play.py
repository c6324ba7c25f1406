"""Play the script book as a plan, in process: the first sub-action whose `done_when` is false, again and again.

`python -m tests.worlds.kitchen.play [--tasks a,b] [--episodes 20]` prints how often the code alone wins, with the
first versions and with the last ones.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

from rlgpt.training.worlds import registry
from rlgpt.training.worlds.kitchen.host_side import LIBRARY, decoder, encode
from rlgpt.training.worlds.kitchen.view import View

LAST = 99
IDLE = 5
"""Calls in a row that return without a command, after which the plan is stuck."""
FIRST_SEED = 700_000


class Item(NamedTuple):
    name: str
    done_when: Any
    action: Callable[[View], Generator[Any, View, None]]


class Played(NamedTuple):
    success: bool
    commands: list[tuple[int, ...]]
    milestones: frozenset[str]


def action_of(source: str) -> Callable[[View], Generator[Any, View, None]]:
    """The last function of a source of our own script book, outside the action host."""
    functions = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    names: dict[str, Any] = dict(LIBRARY)
    exec(compile(source, functions[-1], "exec"), names)
    made: Callable[[View], Generator[Any, View, None]] = names[functions[-1]]
    return made


def plan_of(task: str, version: int = LAST) -> list[Item]:
    """The scripts of a task, each in this version or its last one before it."""
    scripts = registry.get("kitchen").scripts(task)
    return [
        Item(
            script.name, compile(script.done_when, script.name, "eval"),
            action_of(script.sources[min(version, len(script.sources)) - 1]),
        )
        for script in scripts
    ]  # fmt: skip


def play(env: Any, seed: int, plan: Sequence[Item], max_option_steps: int = 200) -> Played:
    """One episode; `max_option_steps`: env steps after which a call is cut, as an option is."""
    env.reset(seed)
    view = decoder().view(env.view(True))
    start, commands, idle = view, [], 0
    while idle < IDLE:
        names = {**LIBRARY, "start": start, "view": view}
        item = next((item for item in plan if not eval(item.done_when, names)), None)
        if item is None:
            break
        action, steps = item.action(view), 0
        for command in action:
            while True:
                commands.append(encode(command))
                over = env.step(commands[-1]).terminated
                view, steps = decoder().view(env.view(True)), steps + 1
                if over:
                    return Played(env.succeeded(), commands, env.milestones())
                if steps >= max_option_steps or eval(item.done_when, {**names, "view": view}):
                    action.close()
                    break
                try:
                    command = action.send(view)
                except StopIteration:
                    break
        idle = 0 if steps else idle + 1
    return Played(False, commands, env.milestones())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", default="")
    parser.add_argument("--episodes", type=int, default=20)
    chosen = parser.parse_args()
    world = registry.get("kitchen")
    for task in chosen.tasks.split(",") if chosen.tasks else world.tasks:
        env, counts = world.make(task), []
        for version in (1, LAST):
            plan = plan_of(task, version)
            wins = sum(play(env, FIRST_SEED + n, plan).success for n in range(chosen.episodes))
            counts.append(f"{wins:3}/{chosen.episodes}")
        print(f"{task:26} first versions {counts[0]}   last versions {counts[1]}", flush=True)


if __name__ == "__main__":
    main()

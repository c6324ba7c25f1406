"""Run one coded action of a file as the fast agent's would be run: admission, then a trial.

`python -P -m rlgpt.training.service.try_action FILE [--world crafter] [--task ID] [--action NAME] [--seed 0]
[--steps 200] [--mode locked] [--allow-process] [--json]` prints one JSON object on one line; without --json the
same over several lines. Exit status 0 if the action was admitted, 1 if it was refused, 2 with {"error": sentence}.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rlgpt.training.host.api import Action, Admission, Ask, Host, Programs
from rlgpt.training.host.client.errors import HostError
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.rollouts.dry_views import dry_views
from rlgpt.training.seeds import episode_seed
from rlgpt.training.worlds import registry
from rlgpt.training.worlds.protocol import UnknownTask, World, WorldFailed

LONGEST_FILE = 1 << 20


def tried(world: World, host: Host, source: str, name: str, task: str, seed: int, steps: int) -> dict[str, Any]:
    """{admitted, rule, line, message, outcome, yields, env_steps, enforced, host_deaths}.

    `outcome` is refused, an end of the host (return, error, bad_yield, budget, killed), alarm, episode or steps.
    The arguments of the action take their first values. `name` empty takes whatever action the file defines.
    """
    admission = host.admit("action", source, [])
    if admission.admitted:  # only then are views worth the time that it takes to play for them
        admission = host.admit("action", source, dry_views(world, task, seed))
    report: dict[str, Any] = {
        "admitted": admission.admitted,
        "rule": admission.rule,
        "line": admission.line,
        "message": admission.message,
        "outcome": "refused",
        "yields": [],
        "env_steps": 0,
    }
    if admission.admitted and name and admission.name != name:
        told = f"the file's action is `{admission.name}`, not `{name}`"
        report |= {"admitted": False, "rule": "name", "line": 1, "message": told}
    elif admission.admitted:
        report |= _trial(world, host, admission, source, task, seed, steps)
    return report | {"enforced": dict(host.enforced), "host_deaths": host.deaths}


def _trial(
    world: World, host: Host, admission: Admission, source: str, task: str, seed: int, steps: int
) -> dict[str, Any]:
    """One call on a trial seed, until it ends, the alarm sounds or the steps are used up."""
    name = admission.source_hash
    arguments = tuple((argument, values[0]) for argument, values in admission.arguments.items())
    host.load(Programs(sources={name: source}, actions=(Action(name, arguments),)))
    env = world.make(task)
    try:
        env.reset(episode_seed(seed, "trial", 0))
        ask = Ask(0, env.view(True), open=0, episode_start=True)
        yields: list[object] = []
        while True:
            answer = host.tick([ask])[0]
            if answer.command is None:
                outcome = str(answer.end)
                message = answer.message
                break
            result = env.step(answer.command)
            single = len(answer.command) == 1
            yields.append(world.primitives[answer.command[0]].name if single else list(answer.command))
            message = "the world broke the episode off" if result.truncated else ""
            if result.terminated or result.truncated:
                outcome = "episode"
                break
            if env.alarm() and not admission.ignore_alarm:
                outcome = "alarm"
                break
            if len(yields) == steps:
                outcome = "steps"
                break
            ask = Ask(0, env.view(False), resume=True, step=env.steps)
    finally:
        env.close()
    return {"outcome": outcome, "message": message, "yields": yields, "env_steps": len(yields)}


def main(argv: list[str]) -> int:
    """Print the report; returns the exit status."""
    parser = argparse.ArgumentParser(prog="rlgpt.training.service.try_action")
    parser.add_argument("file", type=Path)
    parser.add_argument("--world", default="crafter")
    parser.add_argument("--task", default="", help="default: the world's first")
    parser.add_argument("--action", default="", help="the name that the action must have")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=200, help="env steps at most")
    parser.add_argument("--mode", default="locked", choices=("locked", "wasm", "process", "trusted"))
    parser.add_argument("--allow-process", action="store_true", help="needed for --mode process")
    parser.add_argument("--json", action="store_true", help="one line")
    words = parser.parse_args(argv)
    try:
        source = _read(words.file)
        world = registry.get(words.world)
        host = open_host(world, lanes=1, mode=words.mode, seed=words.seed, allow_process=words.allow_process)
        try:
            task = words.task or next(iter(world.tasks))
            report = tried(world, host, source, words.action, task, words.seed, words.steps)
        finally:
            host.close()
    except (OSError, ValueError, HostError, registry.UnknownWorld, UnknownTask, WorldFailed) as error:
        print(json.dumps({"error": str(error.args[0] if isinstance(error, UnknownTask) else error)}))
        return 2
    print(json.dumps(report, indent=None if words.json else 2))
    return 0 if report["admitted"] else 1


def _read(file: Path) -> str:
    """The text of a file of at most a megabyte; raises ValueError for what is no text."""
    with file.open("rb") as opened:
        content = opened.read(LONGEST_FILE + 1)
    if len(content) > LONGEST_FILE:
        raise ValueError(f"{file} is larger than a megabyte")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{file} is no text in UTF-8") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

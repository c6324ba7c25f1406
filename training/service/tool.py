"""What the console needs a world for, as commands with one JSON object out.

`python -P -m rlgpt.training.service.tool tasks|describe|create|world-check ...`. Exit code 0, or that of the command
line with {"error": sentence, "exit_code": code}.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Mapping
from typing import Any

from rlgpt.store.settings import Settings
from rlgpt.training.worlds import registry
from rlgpt.training.worlds.protocol import UnknownTask, World, WorldFailed, check_machine

PACKAGES = (
    "rlgpt", "torch", "stable-baselines3", "numpy", "opensimplex", "numba", "crafter", "gymnasium", "openai",
)  # fmt: skip


USAGE, UNAVAILABLE = 2, 5
"""Exit codes of the command line: a word that means nothing; something that this machine lacks."""


class Sentence(Exception):
    """An error the operator can act on."""

    def __init__(self, sentence: str, code: int = USAGE) -> None:
        super().__init__(sentence)
        self.code = code


def _world(name: str) -> World:
    try:
        return registry.get(name)
    except registry.UnknownWorld as error:
        raise Sentence(str(error.args[0])) from error


def task_info(world: World, task_id: str) -> dict[str, Any]:
    """What the session row keeps of its task. Raises Sentence for an unknown one."""
    task = world.tasks.get(task_id)
    if task is None:
        close = [t for t in world.tasks if task_id.split("_")[-1] in t][:5]
        hint = f"; did you mean {', '.join(close)}?" if close else f"; `rlgpt tasks --world {world.name}` lists them"
        raise Sentence(f"the world {world.name} has no task {task_id!r}{hint}")
    return {
        "id": task.id,
        "prompt": task.prompt,
        "horizon": task.horizon,
        "milestones": list(task.milestones),
        "kind": task.kind,
        "long_horizon": task.long_horizon,
        "sub_tasks": list(task.sub_tasks),
        "primitives": [p.name for p in world.primitives],
        "targets": list(world.targets),
        "frame_format": world.frame_format,
    }


def tasks(arguments: argparse.Namespace) -> dict[str, Any]:
    world = _world(arguments.world)
    return {
        "world": world.name,
        "version": world.version,
        "tasks": [
            {
                "id": t.id,
                "prompt": t.prompt,
                "horizon": t.horizon,
                "kind": t.kind,
                "long_horizon": t.long_horizon,
            }
            for t in world.tasks.values()
        ],
    }


def worlds(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"worlds": list(registry.names())}


def versions() -> dict[str, Any]:
    found: dict[str, Any] = {"python": platform.python_version(), "machine": platform.machine()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def create(arguments: argparse.Namespace) -> dict[str, Any]:
    """Make a session from the flags (a settings tree) on standard input; no worker is started."""
    return make(json.load(sys.stdin))


def make(flags: Mapping[str, Any]) -> dict[str, Any]:
    """{id, name, folder} of a new session with these settings. Raises Sentence."""
    from rlgpt.store import artifacts, creation, skills
    from rlgpt.store.errors import BadPlace, DiskFull, StoreError
    from rlgpt.store.home import home
    from rlgpt.store.settings import Refused, settle

    try:
        settings = settle(flags)
    except Refused as error:
        raise Sentence(str(error)) from error
    _check_models(settings)
    world = _world(settings.world)
    info = task_info(world, settings.task)
    check_machine(world)
    try:
        snapshot = skills.snapshot(settings.skills, world.name)
        told = versions() | {"skills": artifacts.digest(snapshot)}
        made = creation.create(settings, task_info=info, world_version=world.version, versions=told)
        artifacts.put(made.artifacts, snapshot)
    except (BadPlace, DiskFull) as error:
        raise Sentence(str(error), UNAVAILABLE) from error
    except StoreError as error:
        raise Sentence(str(error)) from error
    except OSError as error:
        why = f"{error.filename}: {error.strerror}"
        sentence = f"{home()} cannot keep sessions: {why}; set RLGPT_HOME to another folder"
        raise Sentence(sentence, UNAVAILABLE) from error
    return {"id": made.id, "name": made.name, "folder": str(made.path)}


def _check_models(settings: Settings) -> None:
    """Raises Sentence where the key of a well-known server is missing, or a budget in USD could not hold."""
    from rlgpt.agents.endpoint import endpoints, redacted_url
    from rlgpt.agents.errors import MissingKey, Unclear

    if settings.llm.kind != "openai":
        return
    try:
        roles = endpoints(settings.llm.model_dump(), os.environ)
    except MissingKey as error:
        if settings.llm.base_url:  # the worker may have the key of a server of the operator's own
            return
        local = "a server of your own needs none: name it with --base-url"
        raise Sentence(f"{str(error).rstrip('.')}; {local}", UNAVAILABLE) from error
    except Unclear as error:
        raise Sentence(str(error)) from error
    asked = "cost" in settings.budget.model_fields_set and settings.budget.cost is not None
    unknown = next((e for e in roles.values() if e.price is None and not e.tells_cost), None)
    if asked and unknown is not None:
        raise Sentence(
            f"a budget of {settings.budget.cost:g} USD cannot hold, because no price of {unknown.model} at "
            f"{redacted_url(unknown.base_url)} is known: give --price-in and --price-out in USD per million tokens "
            "(0 for a server of your own), or leave --max-cost out and keep to --max-tokens"
        )


def world_check(arguments: argparse.Namespace) -> dict[str, Any]:
    from rlgpt.training.worlds.conformance import check

    findings = check(_world(arguments.world))
    return {
        "world": arguments.world,
        "ok": all(f.ok for f in findings),
        "findings": [{"ok": f.ok, "what": f.what, "why": f.why} for f in findings],
    }


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="rlgpt.training.service.tool")
    verbs = parser.add_subparsers(required=True)
    for name, act in (("tasks", tasks), ("worlds", worlds), ("create", create), ("world-check", world_check)):
        verb = verbs.add_parser(name)
        verb.add_argument("--world", default="crafter")
        verb.set_defaults(act=act)
    arguments = parser.parse_args(words)
    try:
        answer = arguments.act(arguments)
    except (Sentence, UnknownTask, WorldFailed) as error:
        code = UNAVAILABLE if isinstance(error, WorldFailed) else getattr(error, "code", USAGE)
        print(json.dumps({"error": str(error.args[0]), "exit_code": code}))
        return code
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))

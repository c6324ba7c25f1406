"""What the console asks about sources and prices, as commands with one JSON object in and out.

`python -P -m rlgpt.training.service.questions admit|try|prices [--world NAME]`, standard input as JSON. Nothing is
stored.
Exit code 0, or 2 with {"error": sentence}. `admit` answers again and again, a line in and a line out, until its
standard input ends: the world and the action host are made once, before the first question comes.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from rlgpt.training.service.tool import Sentence


class Admitting:
    """Answers {kind: action | done_when | reward, source, task, seed} with {ok, name, rule, line, message}, as a
    worker would. Holds a world and an action host until it is closed."""

    def __init__(self, world_name: str) -> None:
        from rlgpt.training.host.client.open_host import open_host
        from rlgpt.training.service.tool import _world

        self._world = _world(world_name)
        self._host = open_host(self._world, lanes=1)
        self._views: dict[tuple[str, int], list[list[bytes]]] = {}

    def answer(self, given: dict[str, Any]) -> dict[str, Any]:
        from rlgpt.training.rollouts.dry_views import dry_views

        key = (str(given["task"]), int(given["seed"]))
        if key not in self._views:
            self._views[key] = dry_views(self._world, *key)
        found = self._host.admit(given["kind"], given["source"], self._views[key])
        told = {"name": found.name, "rule": found.rule, "line": found.line, "message": found.message}
        return {"ok": found.admitted, **told}

    def close(self) -> None:
        self._host.close()


def admit(world_name: str) -> None:
    """Answers each line of standard input until there is no more."""
    admitting = Admitting(world_name)
    try:
        for given in sys.stdin:
            try:
                answer = admitting.answer(json.loads(given))
            except (RuntimeError, ValueError, LookupError) as error:
                answer = {"error": str(error)}
            print(json.dumps(answer), flush=True)
    finally:
        admitting.close()


def try_skill(world_name: str, given: dict[str, Any]) -> dict[str, Any]:
    """{name, source, done_when, task, max_steps} -> {outcome, episodes, successes, env_steps, error}: trials."""
    from rlgpt.training.host.api import Action, source_hash
    from rlgpt.training.host.client.open_host import open_host
    from rlgpt.training.rollouts.dry_views import dry_views
    from rlgpt.training.rollouts.trials import MAX_TRIALS, try_item
    from rlgpt.training.seeds import episode_seed
    from rlgpt.training.service.tool import _world

    world = _world(world_name)
    source, done_when, task = given["source"], given["done_when"], given["task"]
    host = open_host(world, lanes=MAX_TRIALS)
    try:
        views = dry_views(world, task, 0)
        for kind, text in (("action", source), ("done_when", done_when)):
            found = host.admit(kind, text, views)  # type: ignore[arg-type]
            if not found.admitted:
                why = f"line {found.line}: {found.message}"
                return {"outcome": "refused", "episodes": 0, "successes": 0, "env_steps": 0, "error": why}
        name = source_hash(source)
        result = try_item(
            world,
            task,
            prefix=(),
            action=Action(name),
            done_when=done_when,
            sources={name: source},
            host=host,
            seeds=[episode_seed(0, "trial", index) for index in range(MAX_TRIALS)],
            max_steps=int(given.get("max_steps", 300)),
        )
    finally:
        host.close()
    return {
        "outcome": result.outcome,
        "episodes": result.episodes,
        "successes": result.successes,
        "env_steps": result.env_steps,
        "error": result.error,
    }


def prices() -> dict[str, Any]:
    """{model: [USD per million tokens in, out]}."""
    from rlgpt.agents.prices import LISTED

    return {model: [price.tokens_in, price.tokens_out] for model, price in LISTED.items()}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="rlgpt.training.service.questions")
    parser.add_argument("verb", choices=("admit", "try", "prices"))
    parser.add_argument("--world", default="crafter")
    arguments = parser.parse_args(words)
    try:
        if arguments.verb == "admit":
            admit(arguments.world)
            return 0
        answer = prices() if arguments.verb == "prices" else try_skill(arguments.world, json.load(sys.stdin))
    except (Sentence, RuntimeError, ValueError) as error:
        print(json.dumps({"error": str(error)}))
        return 2
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

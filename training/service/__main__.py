"""What the console asks a child process: one JSON object a line in, one a line out.

`python -P -m rlgpt.training.service` reads `{"ask": question, argument: value, ...}` and answers `{"ok": ...}`, or
`{"error": sentence, "exit_code": code}`, line by line, until its standard input ends. `questions.QUESTIONS` lists what
can be asked.
"""

from __future__ import annotations

import inspect
import json
import os
import traceback
from collections.abc import Callable
from typing import Any, TextIO, get_origin, get_type_hints

from rlgpt.training import leaving
from rlgpt.training.service.questions import QUESTIONS
from rlgpt.training.session.creation import USAGE
from rlgpt.training.session.refusals import Refusal, refusal_of
from rlgpt.training.worlds import registry
from rlgpt.training.worlds.faults import one_line, world_fault
from rlgpt.training.worlds.protocol import UnknownTask, WorldFailed
from rlgpt.training.worlds.registry import UnknownWorld

UNEXPECTED = 1
"""Exit code of the command line; the traceback is on standard error."""


def answer(line: str) -> dict[str, Any]:
    """The answer to one line; it never raises."""
    arguments: dict[str, Any] = {}
    try:
        ask, arguments = _parsed(line)
        return {"ok": ask(**arguments)}
    except (Exception, SystemExit) as error:  # a world of somebody else may raise anything
        refusal = _of_the_world(error, arguments) or refusal_of(error)
        if refusal is None and isinstance(error, ValueError):
            refusal = Refusal(str(error), USAGE)
        if refusal is None:
            traceback.print_exc()
            refusal = Refusal(one_line(error), UNEXPECTED)
        return {"error": refusal.sentence, "exit_code": refusal.exit_code}


def _of_the_world(error: BaseException, arguments: dict[str, Any]) -> Refusal | None:
    """Of an exception that the code of the world asked about has let out: whatever its type, it is no mistake of the
    operator's, who reads where it happened. None for any other, and for those by which a world says something."""
    name = _world_in(arguments)
    if isinstance(error, (UnknownWorld, UnknownTask, WorldFailed)) or not name:
        return None
    try:
        world = registry.get(name)
    except UnknownWorld:
        return None
    sentence = world_fault(error, world)
    return Refusal(sentence, UNEXPECTED) if sentence else None


def _world_in(arguments: dict[str, Any]) -> str:
    """The name of the world that a question is about; empty where it is about none."""
    request = arguments.get("request")
    settings = (request if isinstance(request, dict) else arguments).get("settings")
    if isinstance(settings, dict) and settings:
        return str(settings.get("world", "crafter"))
    return str(arguments.get("world", ""))


def _parsed(line: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A question of the table and its arguments. Raises ValueError for what is none."""
    request = json.loads(line)
    if not isinstance(request, dict) or str(request.get("ask")) not in QUESTIONS:
        raise ValueError(f"not a question: {line.strip():.80}; there are {', '.join(QUESTIONS)}")
    ask = QUESTIONS[str(request.pop("ask"))]
    try:
        bound = inspect.signature(ask).bind(**request)
    except TypeError as error:
        raise ValueError(f"{ask.__name__}: {error}") from None
    types = get_type_hints(ask)
    for name, value in request.items():
        if not isinstance(value, get_origin(types[name]) or types[name]):
            raise ValueError(f"{ask.__name__}: {name} cannot be {value!r:.40}")
    bound.apply_defaults()  # `try_action` need not name its world
    return ask, dict(bound.arguments)


def _private_streams() -> tuple[TextIO, TextIO]:
    """Where requests come from and where answers go, kept from everything else in this process and from its children:
    what a world or a library prints goes to standard error, and standard input is empty for them."""
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return requests, answers


def main() -> int:
    os.umask(0o077)
    requests, answers = _private_streams()
    try:
        for line in requests:
            print(json.dumps(answer(line)), file=answers, flush=True)
    except (BrokenPipeError, KeyboardInterrupt):  # nobody waits for an answer any more
        os._exit(130)
    return 0


if __name__ == "__main__":
    leaving.run(main)

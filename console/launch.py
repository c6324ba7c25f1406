"""Asking child processes for what the console must not import, in threads, with their sentence when they fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rlgpt.console.commands import children
from rlgpt.console.commands.failure import Failure

if TYPE_CHECKING:
    from rlgpt.console.app import ConsoleApp

CLI = "console.cli"
"""Module of the `rlgpt` command: whatever it does, `--json` answers."""
_answers: dict[str, Any] = {}


def run(
    app: ConsoleApp,
    module: str,
    *arguments: str,
    given: Any = None,
    cached: bool = False,
    then: Callable[[Any], None] | None = None,
    failed: Callable[[str], None] | None = None,
) -> None:
    """Run `python -m rlgpt.<module> <arguments>`; `then` gets its answer on the UI loop, `failed` its sentence.

    `cached`: the answer cannot change while the console runs (a world's tasks).
    """
    key = json.dumps([module, arguments, given])
    if cached and key in _answers:
        if then:
            then(_answers[key])
        return

    def work() -> None:
        try:
            answer = children.ask(module, *arguments, given=given)
        except (Failure, OSError) as error:
            app.call_from_thread(failed or _tell(app), str(error))
            return
        if cached:
            _answers[key] = answer
        if then:
            app.call_from_thread(then, answer)

    app.run_worker(work, thread=True, exit_on_error=False)


def _tell(app: ConsoleApp) -> Callable[[str], None]:
    return lambda sentence: app.tell(sentence, "error")


def resume(app: ConsoleApp, ident: str) -> None:
    """Start a worker again for a dead or stopped session."""
    run(app, CLI, "resume", ident, "--json", then=lambda _: app.tell(f"{ident}: a worker was started"))

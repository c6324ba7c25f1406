"""Asking child processes for what the console must not import, in threads, with their sentence when they fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rlgpt.console import answers
from rlgpt.console.commands import children
from rlgpt.console.commands.failure import Failure

if TYPE_CHECKING:
    from rlgpt.console.shell import Shell

CLI = "console.cli"
"""Module of the `rlgpt` command: whatever it does, `--json` answers."""
FIRST_WORLD = "crafter"
_answers: dict[str, Any] = {}


def run(
    app: Shell,
    module: str,
    *arguments: str,
    given: Any = None,
    cached: bool = False,
    kept: bool = False,
    then: Callable[[Any], None] | None = None,
    failed: Callable[[str], None] | None = None,
) -> None:
    """Run `python -m rlgpt.<module> <arguments>`; `then` gets its answer on the UI loop, `failed` its sentence.

    `cached`: the answer cannot change while the console runs (a world's tasks).
    `kept`: it is remembered on disk; `then` gets what was remembered at once, and again what the child, which is asked
    nevertheless, answers.
    """
    key = json.dumps([module, arguments, given])
    if cached and key in _answers:
        if then:
            then(_answers[key])
        return
    file = answers.place(app.home, (module, *arguments))
    remembered = answers.remembered(file) if kept else None
    if remembered is not None and then:
        then(remembered)

    def work() -> None:
        try:
            answer = children.ask(module, *arguments, given=given)
        except (Failure, OSError) as error:
            app.call_from_thread(failed or _tell(app), str(error))
            return
        if cached:
            _answers[key] = answer
        if kept and answer != remembered:
            answers.remember(file, answer)
        if then:
            app.call_from_thread(then, answer)

    app.run_worker(work, thread=True, exit_on_error=False)


def tasks(app: Shell, world: str, then: Callable[[Any], None], failed: Callable[[str], None]) -> None:
    """`then` gets {world, version, tasks}, at once if they were ever asked for on this machine."""
    run(app, *answers.TASKS, world, cached=True, kept=True, then=then, failed=failed)


def foresee(app: Shell) -> None:
    """Ask for what a new session starts with, if nobody ever did: it takes seconds."""
    if not answers.place(app.home, (*answers.TASKS, FIRST_WORLD)).is_file():
        tasks(app, FIRST_WORLD, lambda _: None, lambda _: None)


def _tell(app: Shell) -> Callable[[str], None]:
    return lambda sentence: app.tell(sentence, "error")


def resume(app: Shell, ident: str, failed: Callable[[], None] = lambda: None) -> None:
    """Start a worker again for a dead or stopped session; `failed` is called behind the sentence that says why not."""

    def tell(sentence: str) -> None:
        app.tell(sentence, "error")
        failed()

    run(app, CLI, "resume", ident, "--json", then=lambda _: app.tell(f"{ident}: a worker was started"), failed=tell)

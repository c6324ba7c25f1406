"""Runs child processes in threads for what the console must not import, and shows their sentence on failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rlgpt.console import answers
from rlgpt.console.commands import children
from rlgpt.console.commands.failure import Failure

if TYPE_CHECKING:
    from rlgpt.console.shell import Shell

FIRST_WORLD = "crafter"
Answered = Callable[[Any], None] | None
Failed = Callable[[str], None] | None
_answers: dict[tuple[str, ...], Any] = {}


def ask(
    app: Shell,
    question: str,
    arguments: Mapping[str, Any] = MappingProxyType({}),
    *,
    cached: bool = False,
    kept: bool = False,
    then: Answered = None,
    failed: Failed = None,
) -> None:
    """Ask the service; `then` gets its answer on the UI loop, `failed` its sentence.

    `cached`: the answer cannot change while the console runs (a world's tasks).
    `kept`: it is remembered on disk; `then` gets what was remembered at once, and again what the child, which is asked
    nevertheless, answers.
    """
    words = (question, *map(str, arguments.values()))
    _start(app, words, lambda: children.ask(question, arguments), cached, kept, then, failed)


def run(app: Shell, *words: str, kept: bool = False, then: Answered = None, failed: Failed = None) -> None:
    """Run another `rlgpt` command; `then` gets its JSON document."""
    _start(app, words, lambda: children.run(*words), False, kept, then, failed)


def _start(
    app: Shell,
    words: tuple[str, ...],
    ask: Callable[[], Any],
    cached: bool,
    kept: bool,
    then: Answered,
    failed: Failed,
) -> None:
    if cached and words in _answers:
        if then:
            then(_answers[words])
        return
    file = answers.place(app.home, words)
    remembered = answers.remembered(file) if kept else None
    if remembered is not None and then:
        then(remembered)

    def work() -> None:
        try:
            answer = ask()
        except (Failure, OSError, ValueError) as error:  # ValueError: a null byte in a word
            app.call_from_thread(failed or _tell(app), str(error))
            return
        if cached:
            _answers[words] = answer
        if kept and answer != remembered:
            answers.remember(file, answer)
        if then:
            app.call_from_thread(then, answer)

    app.run_worker(work, thread=True, exit_on_error=False)


def tasks(app: Shell, world: str, then: Callable[[Any], None], failed: Callable[[str], None]) -> None:
    """`then` gets {world, version, tasks}, at once if they were ever asked for on this machine."""
    ask(app, "tasks", {"world": world}, cached=True, kept=True, then=then, failed=failed)


def foresee(app: Shell) -> None:
    """Ask for what the screen of a new session needs, if it was never asked for: the answer takes seconds."""
    if not answers.place(app.home, ("tasks", FIRST_WORLD)).is_file():
        tasks(app, FIRST_WORLD, lambda _: None, lambda _: None)


def _tell(app: Shell) -> Callable[[str], None]:
    return lambda sentence: app.tell(sentence, "error")


def resume(app: Shell, ident: str, failed: Callable[[], None] = lambda: None) -> None:
    """Start a worker again for a dead or stopped session; `failed` is called behind the sentence that says why not."""

    def tell(sentence: str) -> None:
        app.tell(sentence, "error")
        failed()

    run(app, "resume", ident, then=lambda _: app.tell(f"{ident}: a worker was started"), failed=tell)

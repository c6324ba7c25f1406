"""Starting what the console must not import: the `rlgpt` commands as child processes with JSON out.

Runs in worker threads; results are cached by what was asked where the answer cannot change.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlgpt.console.app import ConsoleApp

TIMEOUT = 120.0
_answers: dict[tuple[str, ...], Any] = {}


class CommandFailed(Exception):
    """The sentence for the operator is the argument."""


def command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-P", "-m", "rlgpt.console.cli", *arguments]


def ask(arguments: Sequence[str], *, cached: bool = False, timeout: float = TIMEOUT, stdin: str | None = None) -> Any:
    """The JSON a command prints (the last object if it prints one per line). Blocks. Raises CommandFailed."""
    key = tuple(arguments)
    if cached and key in _answers:
        return _answers[key]
    try:
        done = subprocess.run(
            command(arguments), capture_output=True, text=True, timeout=timeout, input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(f"`rlgpt {' '.join(arguments)}` took longer than {timeout:.0f} s") from error
    except OSError as error:
        raise CommandFailed(f"`rlgpt {' '.join(arguments)}` could not be started: {error}") from error
    if done.returncode != 0:
        raise CommandFailed(_sentence(arguments, done))
    found = _parse(done.stdout)
    if cached:
        _answers[key] = found
    return found


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            return json.loads(lines[-1]) if lines else None
        except ValueError as error:
            raise CommandFailed(f"the answer is no JSON: {lines[-1][:200]}") from error


def _sentence(arguments: Sequence[str], done: subprocess.CompletedProcess[str]) -> str:
    """The error the command wrote: its JSON `error`, else the last line it said."""
    try:
        found = json.loads(done.stdout.strip().splitlines()[-1])
        if isinstance(found, dict) and found.get("error"):
            return str(found["error"])
    except (ValueError, IndexError):
        pass
    said = [line for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
    return said[-1].strip() if said else f"`rlgpt {' '.join(arguments)}` ended with code {done.returncode}"


def run(
    app: ConsoleApp, arguments: Sequence[str], then: Callable[[Any], None] | None = None, *, cached: bool = False,
    failed: Callable[[str], None] | None = None, stdin: str | None = None, timeout: float = TIMEOUT,
) -> None:  # fmt: skip
    """Run a command in a thread; `then` gets its answer on the UI loop, `failed` (or a notification) its sentence."""

    def work() -> None:
        try:
            answer = ask(arguments, cached=cached, stdin=stdin, timeout=timeout)
        except CommandFailed as error:
            sentence = str(error)
            app.call_from_thread(failed or (lambda s: app.tell(s, "error")), sentence)
            return
        if then:
            app.call_from_thread(then, answer)

    app.run_worker(work, thread=True, exit_on_error=False)


def resume(app: ConsoleApp, ident: str) -> None:
    """Start a worker again for a dead or stopped session."""
    run(app, ["resume", ident, "--json"], lambda _: app.tell(f"{ident}: a worker was started"))

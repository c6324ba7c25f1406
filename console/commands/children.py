"""Asks child processes, which answer in JSON, for all that needs a world, torch or generated code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.limits import need_room
from rlgpt.store import address, foreign
from rlgpt.store.folder import DATABASE, check_place
from rlgpt.store.home import GAMES_ON
from rlgpt.store.placing import placed_on
from rlgpt.store.row_types import JsonObject
from rlgpt.store.soundness import torn

SERVICE = "training.service"
"""Module that answers questions, one line each: see its `questions`."""
SUPERVISOR, CLUSTER = "training.supervisor", "training.cluster"
"""Modules that run a session: here, or on the cluster that its folder names."""
CLI = "console.cli"
"""Module of the `rlgpt` command."""
_TRACEBACK = "Traceback (most recent call last):"
START_PATIENCE = 20.0
"""Seconds that a new session's worker may take to hold the session."""


def command(module: str, *arguments: str) -> list[str]:
    """The command line of a module of ours: never the working folder's modules (`-P`)."""
    return [sys.executable, "-P", "-m", f"rlgpt.{module}", *arguments]


def question(name: str, arguments: Mapping[str, Any]) -> str:
    """The line that asks the service."""
    return json.dumps({"ask": name, **arguments}) + "\n"


def answered(line: str) -> Any:
    """The answer in the service's line. Raises Failure with its sentence, ValueError for a line that is no answer."""
    answer = json.loads(line)
    if "error" in answer:
        raise Failure(str(answer["error"]), Exit(answer["exit_code"]))
    return answer["ok"]


def ask(name: str, arguments: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """The answer of a service that is started for this question. Raises Failure with its sentence."""
    code, said, errors = _ran(command(SERVICE), question(name, arguments))
    try:
        return answered(said)
    except ValueError:
        raise Failure(last_words(errors, SERVICE, code), Exit.ERROR) from None


def run(*words: str) -> Any:
    """The JSON document of another `rlgpt` command. Raises Failure with its sentence."""
    code, said, errors = _ran(command(CLI, *words, "--json"))
    try:
        document = json.loads(said)
    except ValueError:
        raise Failure(last_words(errors, CLI, code), Exit.ERROR) from None
    if isinstance(document, dict) and set(document) == {"error", "exit_code"}:
        raise Failure(str(document["error"]), Exit(document["exit_code"]))
    return document


def _ran(words: Sequence[str], told: str = "") -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a child process, when it has ended. They are files: a process
    that a world has started may outlive the child, and a pipe has no end while such a process holds it."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        done = subprocess.run(words, input=told.encode(), stdout=output, stderr=errors, check=False)
        output.seek(0)
        errors.seek(0)
        return done.returncode, output.read().decode(errors="replace"), errors.read().decode(errors="replace")


def hand_over(module: str, *arguments: str) -> int:
    """Run with this terminal's input and output; returns the exit code."""
    return subprocess.run(command(module, *arguments), check=False).returncode


def play_games_on(place: str, on: str = "") -> None:
    """From now on, what is started plays the games of its slow world there (training/worlds/away). Raises Failure where
    the session itself is to run `on` a cluster."""
    if place and on:
        raise Failure("--on runs the whole session on a node, --games-on its games: choose one.", Exit.USAGE)
    if place:
        os.environ[GAMES_ON] = place


def check_start() -> str:
    """What holds for every session that this process could start, asked before one is made: a session whose worker is
    refused would lie in the store, for `resume --all` to start it. Returns the address of the team's store, or "".

    Raises Failure, StoreError.
    """
    need_room()
    if address.is_shared(store := address.named()):
        address.need_extra()
    return store


def need_trust(folder: Path, settings: JsonObject | None = None) -> None:
    """Raises Failure where what somebody else has set, or `settings` in its place, reaches what is the operator's own.
    Asked before the world is: that of such a session may be any function here."""
    if why := foreign.danger(folder, settings):
        raise Failure(f"{why}.", Exit.REFUSED)


def start_worker(folder: Path) -> int:
    """Start the session's supervisor, or what follows it on a cluster: it outlives this process and holds no descriptor
    of it. Returns its pid.

    Its output goes to the worker's log, so a session that cannot start still says why.

    Raises Failure, StoreError (BadPlace, Damaged).
    """
    check_place(folder)
    store = check_start()
    if damage := torn(folder / DATABASE):
        raise damage
    need_trust(folder)
    module = CLUSTER if placed_on(folder) else SUPERVISOR
    log = os.open(folder / "worker.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        child = subprocess.Popen(
            command(module, str(folder)),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            close_fds=True,
            env=os.environ | ({address.VARIABLE: store} if store else {}),
        )
    finally:
        os.close(log)
    return child.pid


def last_words(errors: str, module: str, code: int) -> str:
    """The sentence on a child that ended without an answer, from what it left on its standard error. The last line of a
    traceback is the reason; a world that ends the process of the service may have printed anything before."""
    lines: Sequence[str] = errors.strip().splitlines()
    if lines and (module != SERVICE or (code == Exit.ERROR and _TRACEBACK in errors)):
        return lines[-1]
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    said = f"; the last line that it printed: {lines[-1]}" if lines else " and said nothing"
    return f"rlgpt.{module} {how}{said}; a world can end its process like that"

"""What needs a world, torch or generated code is asked of a child process that answers in JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.limits import need_room
from rlgpt.store.folder import check_place


def command(module: str, *arguments: str) -> list[str]:
    """The command line of a module of ours: never the working folder's modules (`-P`)."""
    return [sys.executable, "-P", "-m", f"rlgpt.{module}", *arguments]


def ask(module: str, *arguments: str, given: Any = None) -> Any:
    """The JSON document that `python -m rlgpt.<module> <arguments>` prints. Raises Failure with its sentence.

    `given` is its standard input as JSON. A child says what is wrong as {"error": sentence}, or on its last
    line of standard error.
    """
    done = subprocess.run(
        command(module, *arguments), input=json.dumps(given), capture_output=True, text=True, check=False
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    if isinstance(answer, dict) and "error" in answer and set(answer) <= {"error", "exit_code"}:
        raise Failure(str(answer["error"]), Exit(answer.get("exit_code", Exit.USAGE)))
    if done.returncode != 0 and answer is None:
        raise Failure(last_words(done.stderr, module, done.returncode), Exit.ERROR)
    return answer


def hand_over(module: str, *arguments: str) -> int:
    """Run with this terminal's input and output; returns the exit code."""
    return subprocess.run(command(module, *arguments), check=False).returncode


def start_worker(folder: Path) -> int:
    """Start the session's supervisor, which outlives this process and holds no descriptor of it; its pid.

    Its own words go where the trainer's go, so a session that cannot start still says why. Raises BadPlace, Failure.
    """
    check_place(folder)
    need_room()
    log = os.open(folder / "worker.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        child = subprocess.Popen(
            command("training.supervisor", str(folder)),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            close_fds=True,
        )
    finally:
        os.close(log)
    return child.pid


def last_words(errors: str, module: str, code: int) -> str:
    """The sentence that a failed child left on its standard error."""
    lines: Sequence[str] = errors.strip().splitlines()
    return lines[-1] if lines else f"rlgpt.{module} ended with {code} and said nothing"

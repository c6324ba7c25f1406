"""Completion in a real bash on a terminal: the keys a person presses, and the line that they get."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlgpt.store.folder import SessionFolder

sys.path.insert(0, str(Path(__file__).parents[1] / "console"))

from terminal import Terminal

PROMPT = "ready> "


@pytest.fixture
def bash(tmp_path: Path) -> Iterator[Terminal]:
    """With the completion that `rlgpt --show-completion` writes, as the README says."""
    found = shutil.which("bash")
    if not found:
        pytest.skip("there is no bash")
    commands = tmp_path / "bin"
    commands.mkdir()
    script = commands / "rlgpt"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m rlgpt.console.cli "$@"\n')
    script.chmod(0o755)
    environment = {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "PS1": PROMPT, "INPUTRC": os.devnull}
    with Terminal([found, "--noprofile", "--norc", "-i"], (120, 24), environment) as terminal:
        terminal.until(PROMPT.rstrip())
        terminal.press('eval "$(rlgpt --show-completion)" && echo lo""aded\r')
        terminal.until("loaded\n")
        yield terminal


def complete(bash: Terminal, typed: str, wanted: str) -> None:
    """Press Tab behind `typed`; wait until the screen ends with the line `wanted`; then drop the line."""
    bash.press(f"{typed}\t")
    bash.until(lambda text: text.rstrip().endswith(f"{PROMPT}{wanted}".rstrip()))
    assert "Traceback" not in bash.text() and "needs a terminal" not in bash.text()
    bash.press("\x15")


def test_commands_session_ids_names_and_tasks_are_completed(bash: Terminal, finished: SessionFolder) -> None:
    complete(bash, "rlgpt sess", "rlgpt sessions")
    complete(bash, f"rlgpt show {finished.id[:8]}", f"rlgpt show {finished.id}")
    complete(bash, f"rlgpt attach {finished.id[:8]}", f"rlgpt attach {finished.id}")
    complete(bash, f"rlgpt resume {finished.id[:8]}", f"rlgpt resume {finished.id}")
    complete(bash, "rlgpt logs -f wo", "rlgpt logs -f wood")
    complete(bash, "rlgpt run eat_pl", "rlgpt run eat_plant")
    complete(bash, "rlgpt run --max-c", "rlgpt run --max-cost")


def test_every_command_is_offered(bash: Terminal) -> None:
    bash.press("rlgpt \t")
    bash.read(0.2)
    bash.press("\t")
    for command in ("run", "demo", "logs", "stop-training", "minedojo"):
        bash.until(f"{command}")
    bash.press("\x15")


def test_a_home_that_cannot_be_read_completes_nothing_and_says_nothing(bash: Terminal, home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    home.write_text("a file")
    bash.press("rlgpt show 2\t")
    bash.press("x\r")  # the shell answers only after the completion
    said = bash.until("rlgpt: ")
    assert f"{PROMPT}rlgpt show 2x" in said and said.count("rlgpt: ") == 1

"""The console as an operator has it: the real command in a pseudo-terminal, on a real store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

from rlgpt.console.preferences import Preferences
from rlgpt.store.history import History
from rlgpt.store.lease import owner
from tests.console.terminal import Terminal
from tests.end_to_end.conftest import Running

RLGPT = (sys.executable, "-P", "-m", "rlgpt.console.cli")
ESCAPE, ENTER, SPACE, TAB, SHIFT_TAB, BACKSPACE, DELETE = "\x1b", "\r", " ", "\t", "\x1b[Z", "\x7f", "\x1b[3~"
DOWN, RIGHT, END, CTRL_HOME, CTRL_S, CTRL_U = "\x1b[B", "\x1b[C", "\x1b[F", "\x1b[1;5H", "\x13", "\x15"
F4, F7 = "\x1bOS", "\x1b[18~"


def console(home: str | Path, *words: str, size: tuple[int, int] = (120, 40), **environment: str) -> Terminal:
    """`rlgpt <words>` in a terminal of that size, for a person who has seen the tour."""
    seen = Preferences.load(Path(home))
    seen.toured = True
    seen.save(Path(home))
    return Terminal([*RLGPT, *words], size, {"RLGPT_HOME": str(home), **environment})


def attached(session: Running, *words: str, size: tuple[int, int] = (120, 40), **environment: str) -> Terminal:
    """The console on a session, with its first moment drawn."""
    t = console(session.environment["RLGPT_HOME"], "attach", session.folder.id, *words, size=size, **environment)
    t.until(lambda text: "1 Plan" in text and ("iteration" in text or "not started" in text) and "reading" not in text)
    return t


def filtered(t: Terminal, words: str) -> None:
    """Type into the filter of a list and keep it."""
    before = t.text()
    t.keys("/")
    t.until(lambda text: text != before)
    t.keys(CTRL_U, words, ENTER)


def command(session: Running, *words: str) -> dict[str, Any]:
    """What `rlgpt <words> --json` says: the headless twin."""
    done = subprocess.run([*RLGPT, *words, "--json"], env=session.environment, capture_output=True, check=False)
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def worker_of(folder: Path) -> psutil.Process:
    """The supervisor that holds the session's lock."""
    held = owner(folder)
    assert held is not None, "no worker"
    return psutil.Process(held.pid)


def freeze(session: Running) -> list[int]:
    """SIGSTOP everything of a session; the pids, for `thaw`."""
    worker = worker_of(session.folder.path)
    pids = [p.pid for p in (worker, *worker.children(recursive=True))]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    return pids


def thaw(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def training(history: History) -> bool:
    return any(run.state == "running" and run.updates >= 1 for run in history.runs.values())


def states(history: History, kind: str) -> list[str]:
    """What became of the commands of that kind, oldest first."""
    return [c.state for c in history.commands.values() if c.kind == kind]

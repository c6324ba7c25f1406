"""Whole sessions whose game, or who themselves, are killed: they go on or say why, and no game is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from rlgpt.store import catalog
from rlgpt.store.folder import SessionFolder
from rlgpt.store.lease import owner
from rlgpt.store.reader import Reader
from tests.patience import PATIENCE
from tests.worlds.minedojo.conftest import DOUBLE

MILK = "harvest_milk_with_empty_bucket_and_cow"
GONE_AFTER = 5.0 * PATIENCE
RLGPT = str(Path(sys.executable).with_name("rlgpt"))
Launching = Callable[[str], SessionFolder]


@pytest.fixture
def launching(client_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launching]:
    """Starts a detached session whose game is started by the client: `script` is the game's start script."""
    malmo = tmp_path / "Malmo" / "Minecraft"
    malmo.mkdir(parents=True)
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RLGPT_MINEDOJO_PYTHON", str(client_python))
    monkeypatch.setenv("RLGPT_MINEDOJO_MALMO", str(malmo))
    monkeypatch.setenv("RLGPT_MINEDOJO_IMAGE", "32x48")
    monkeypatch.setenv("RLGPT_MINEDOJO_GAMES", "1")

    started: list[SessionFolder] = []

    def start(script: str) -> SessionFolder:
        file = malmo / "launchClient.sh"
        file.write_text(f"#!/bin/bash\n{script}\n")
        file.chmod(0o755)
        told = rlgpt("run", MILK, "--world", "minedojo", "--llm", "rules", "--iterations", "0", "--detach", "--json")
        started.append(catalog.find(json.loads(told)["id"]))
        return started[-1]

    yield start
    for session in started:  # a test that failed has not stopped it
        if owner(session.path) is not None:
            rlgpt("stop", "--now", session.id)
    for process in games():
        process.kill()


def rlgpt(*words: str) -> str:
    done = subprocess.run([RLGPT, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def games() -> list[psutil.Process]:
    """Everything that the client or its game runs: a bridge gives it a folder in this test's home for its files."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR", "").startswith(os.environ["RLGPT_HOME"]):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return [process for process in found if runs(process)]


def runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_for(what: Callable[[], Any], patience: float) -> bool:
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if what():
            return True
        time.sleep(0.05)
    return bool(what())


def nothing_left() -> bool:
    return wait_for(lambda: not games(), GONE_AFTER)


def went_on_or_said_why(session: SessionFolder) -> bool:
    """Whether a trial was measured, or the session has ended with a sentence."""
    with Reader(session) as reader:
        history = reader.history_at()
        return bool(history.counts.get("trial")) or (history.status == "ended" and bool(history.reason))


def faults(session: SessionFolder) -> list[str]:
    with Reader(session) as reader:
        return [row["fields"]["sentence"] for row in reader.rows("log") if row["event"] == "fault"]


@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    "step", [2, 30, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 41) if n not in (2, 30))]
)
def test_a_session_goes_on_when_its_first_game_dies_at_an_env_step(
    launching: Launching, tmp_path: Path, step: int
) -> None:
    session = launching(
        f'if mkdir {tmp_path}/begun 2>/dev/null; then exec {sys.executable} {DOUBLE} --die-after {step} "$@"\n'
        f'else exec {sys.executable} {DOUBLE} "$@"; fi'
    )
    assert wait_for(lambda: went_on_or_said_why(session), 240)
    assert len(faults(session)) == 1 and "game" in faults(session)[0].lower()
    assert owner(session.path) is not None and games(), "the session goes on"
    assert "are gone" in rlgpt("stop", "--now", session.id)
    assert games() == [], "what the command says is true when it says so"


def launch_begins() -> None:
    assert wait_for(lambda: any("sleep" in process.name() for process in games()), 120)


def test_stop_now_during_a_launch_leaves_nothing_and_says_so(launching: Launching, tmp_path: Path) -> None:
    session = launching("setsid sleep 600 & sleep 600")
    launch_begins()
    assert "are gone" in rlgpt("stop", "--now", session.id)
    assert games() == [] and owner(session.path) is None


@pytest.mark.parametrize("whom", ["supervisor", "trainer", "child", "child by SIGTERM"])
def test_a_kill_during_a_launch_leaves_no_game(launching: Launching, tmp_path: Path, whom: str) -> None:
    session = launching("setsid sleep 600 & sleep 600")
    launch_begins()
    held = owner(session.path)
    assert held is not None
    supervisor = psutil.Process(held.pid)
    trainer = next(p for p in supervisor.children() if "rlgpt.training.worker" in p.cmdline())
    child = next(p for p in trainer.children() if any("minedojo/child.py" in word for word in p.cmdline()))
    launched = games()
    if whom == "supervisor":
        supervisor.kill()
        assert nothing_left()
        return
    if whom == "trainer":
        trainer.kill()
    else:
        child.send_signal(signal.SIGKILL if whom == "child" else signal.SIGTERM)
    assert wait_for(lambda: not any(map(runs, launched)), GONE_AFTER), [p for p in launched if runs(p)]
    rlgpt("stop", "--now", session.id)
    assert games() == []


def test_a_game_killed_during_its_launch_is_launched_again(launching: Launching, tmp_path: Path) -> None:
    session = launching(
        f'if mkdir {tmp_path}/begun 2>/dev/null; then exec sleep 600; else exec {sys.executable} {DOUBLE} "$@"; fi'
    )
    launch_begins()
    for process in games():
        if "sleep" in process.name():
            os.kill(process.pid, signal.SIGKILL)
    assert wait_for(lambda: went_on_or_said_why(session), 240)
    assert faults(session) and owner(session.path) is not None
    rlgpt("stop", "--now", session.id)
    assert games() == []

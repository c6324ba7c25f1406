"""Real sessions in real processes: a store of its own for every test, nothing left running behind it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from rlgpt.store.folder import SessionFolder
from rlgpt.store.history import History
from rlgpt.store.reader import Reader
from tests.patience import PATIENCE
from tests.shaking import halting

SMALL = {"dev_first": 4, "dev_more": 0, "test_episodes": 6}
"""Evaluations small enough for a test."""


@dataclass
class Running:
    """One session with its supervisor."""

    folder: SessionFolder
    environment: dict[str, str]
    supervisor: subprocess.Popen[bytes] | None = None
    seen: list[int] = field(default_factory=list)

    def start(self) -> Running:
        self.supervisor = subprocess.Popen(
            [sys.executable, "-P", "-m", "rlgpt.training.supervisor", str(self.folder.path)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def halting(self, state: str) -> Running:
        """Start it with a trainer that halts in this state (tests/shaking/halting.py)."""
        paths = [str(Path(halting.__file__).parent), *filter(None, [self.environment.get("PYTHONPATH")])]
        self.environment = self.environment | {halting.HALT: state, "PYTHONPATH": os.pathsep.join(paths)}
        return self.start()

    def halted(self, timeout: float = 100) -> psutil.Process:
        """The trainer, once it has halted; it goes on when it is resumed."""
        deadline = time.monotonic() + timeout * PATIENCE
        while not (self.folder.path / halting.MARK).exists():
            assert time.monotonic() < deadline, f"it has not halted after {timeout * PATIENCE} s"
            assert self.supervisor is not None and self.supervisor.poll() is None, self.history().reason
            time.sleep(0.02)
        trainer = self.trainer()
        while trainer.status() != psutil.STATUS_STOPPED:
            time.sleep(0.01)
        return trainer

    def finish(self, timeout: float = 100) -> History:
        assert self.supervisor is not None
        self.supervisor.wait(timeout * PATIENCE)
        return self.history()

    def history(self) -> History:
        with Reader(self.folder) as reader:
            return reader.history_at(None)

    def rows(self, table: str) -> list[dict[str, Any]]:
        with Reader(self.folder) as reader:
            return reader.rows(table)

    def until(self, what: Callable[[History], object], timeout: float = 60) -> History:
        """The first history for which `what` holds. Fails when the session is over, or after `timeout` seconds of
        an idle machine."""
        deadline = time.monotonic() + timeout * PATIENCE
        while True:
            history = self.history()
            if what(history):
                return history
            assert time.monotonic() < deadline, f"still {history.status}, {history.phase} after {timeout * PATIENCE} s"
            assert history.status != "ended", f"the session ended: {history.reason}"
            time.sleep(0.02)

    def trainer(self) -> psutil.Process:
        """The trainer's process, waiting for it to start."""
        assert self.supervisor is not None
        for _ in range(500 * PATIENCE):
            for child in psutil.Process(self.supervisor.pid).children():
                if "rlgpt.training.worker" in child.cmdline():
                    return child
            time.sleep(0.02)
        raise AssertionError("there is no trainer")

    def processes(self) -> list[psutil.Process]:
        """Everything of this session that still lives."""
        found = []
        for process in psutil.process_iter():
            try:
                here = process.environ().get("RLGPT_HOME") == self.environment["RLGPT_HOME"]
                named = any(str(self.folder.path) in word for word in process.cmdline())
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue
            if (here or named) and process.pid != os.getpid():
                found.append(process)
        return found

    def kill(self) -> None:
        if self.supervisor is not None and self.supervisor.poll() is None:
            os.killpg(self.supervisor.pid, signal.SIGKILL)
            self.supervisor.wait(100)


Make = Callable[..., Running]


@contextmanager
def sessions_in(home: Path) -> Iterator[Make]:
    """Create sessions in a store (settings as keyword arguments); those that still run are killed at the end."""
    made: list[Running] = []
    environment = os.environ | {"RLGPT_HOME": str(home)}

    def create(task: str, loop: dict[str, Any] | None = None, start: bool = True, **settings: Any) -> Running:
        flags = {"task": task, "seed": 1, "skills": "none", "loop": SMALL | (loop or {}), **settings}
        answer = subprocess.run(
            [sys.executable, "-P", "-m", "rlgpt.training.service"],
            input=json.dumps({"ask": "create", "settings": flags}).encode(),
            env=environment,
            capture_output=True,
            check=True,
        )
        running = Running(SessionFolder(Path(json.loads(answer.stdout)["ok"]["folder"])), environment)
        made.append(running)
        return running.start() if start else running

    yield create
    for running in made:
        running.kill()
        for left in running.processes():  # a worker that a console or a command started
            left.kill()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Sessions in a store of the test's own."""
    with sessions_in(tmp_path / "home") as create:
        yield create


@pytest.fixture(scope="module")
def make_shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    """Sessions in a store that all tests of a module share."""
    with sessions_in(tmp_path_factory.mktemp("shared") / "home") as create:
        yield create

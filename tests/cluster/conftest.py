"""Sessions that are placed on machines of a cluster of the tests' own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from rlgpt.store.address import source_of
from rlgpt.store.lease import Lease
from rlgpt.store.placing import place
from tests.end_to_end.conftest import Make, Running, make, sessions_in
from tests.patience import PATIENCE
from tests.ray_cluster import Machines

__all__ = ["make"]


class Away(Running):
    """A session, and the process here that follows it."""

    def start(self) -> Away:
        self.supervisor = subprocess.Popen(
            [sys.executable, "-P", "-m", "rlgpt.training.cluster", str(self.folder.path)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def leave(self) -> None:
        """Stop following."""
        assert self.supervisor is not None
        self.supervisor.send_signal(signal.SIGTERM)
        assert self.supervisor.wait(300) == 0

    def there(self) -> list[psutil.Process]:
        """What runs of it on any node."""
        found = []
        for process in psutil.process_iter():
            try:
                words = process.cmdline()
                mark = process.environ().get("RLGPT_SESSION_FOLDER", "")
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue
            on_a_node = [word for word in (*words, mark) if f"/sessions/{self.folder.id}" in word and "/seats/" in word]
            if on_a_node and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        return found


def until(what: Callable[[], Any], patience: float) -> Any:
    """What it says at last."""
    deadline = time.monotonic() + patience
    while not (found := what()):
        assert time.monotonic() < deadline, f"not within {patience} s"
        time.sleep(0.05)
    return found


def nothing_left(session: Away, before: list[psutil.Process]) -> None:
    """Within five seconds on an idle machine."""
    assert before, "nothing ran"
    _, alive = psutil.wait_procs(before, timeout=5 * PATIENCE)
    assert not alive, f"still there: {alive}"


def home_again(session: Away) -> None:
    """It is a session of this machine."""
    assert not Lease.held(session.folder.path) and not source_of(session.folder.path)
    assert not session.there()


class Adding:
    """Adds a machine with one CPU and a disk of its own."""

    def __init__(self, machines: Machines, disks: Path) -> None:
        self._machines, self._disks = machines, disks
        self._added: list[tuple[Any, Path]] = []

    def __call__(self) -> Any:
        disk = Path(tempfile.mkdtemp(dir=self._disks))
        added = self._machines.add(env_vars={"RLGPT_HOME": str(disk)})
        self._added.append((added, disk))
        return added

    def of(self, session: Away) -> Any:
        """The machine that has the newest seat of the session; None where none has one."""
        seats = {path: machine for machine, disk in self._added for path in disk.glob(f"seats/{session.folder.id}.*")}
        return seats[max(seats, key=lambda path: int(path.suffix[1:]))] if seats else None

    def seats(self) -> list[Path]:
        """What seats have on any disk."""
        return list(self._disks.glob("*/seats/*"))


@pytest.fixture(scope="module")
def machine(machines: Machines) -> Iterator[Adding]:
    with tempfile.TemporaryDirectory(prefix="rlgpt-nodes-") as disks:
        yield Adding(machines, Path(disks))


@pytest.fixture
def away(machines: Machines, tmp_path: Path) -> Iterator[Make]:
    """Sessions placed on the machines."""
    made: list[Away] = []
    with sessions_in(tmp_path / "home") as make:

        def create(task: str, start: bool = True, **settings: Any) -> Away:
            here = make(task, start=False, **settings)
            made.append(Away(here.folder, here.environment))
            place(here.folder.path, machines.address)
            return made[-1].start() if start else made[-1]

        yield create
        for session in made:
            session.kill()
            for process in session.there():
                process.kill()


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RLGPT_STORE", raising=False)
    assert os.environ["RLGPT_HOME"]

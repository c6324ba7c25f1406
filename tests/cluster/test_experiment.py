"""`rlgpt experiment --on`: before a session is made, the nodes must have what it needs, and who has it counts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlgpt.store.folder import SessionFolder
from rlgpt.store.history import History
from rlgpt.store.lease import Lease
from rlgpt.store.placing import placed_on
from rlgpt.store.reader import Reader
from rlgpt.training.cluster import connect
from tests.cluster.conftest import until
from tests.patience import PATIENCE
from tests.ray_cluster import NEEDS_RAY, Machines

pytestmark = NEEDS_RAY


class Answer:
    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.said = done.returncode, done.stderr
        self.records: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]


class Rlgpt:
    """`rlgpt experiment` of an operator, against a server that would take a key."""

    def __init__(self, address: str, home: Path) -> None:
        self._address, self.home = address, home

    def __call__(self, *words: str, world: str = "crafter", **variables: str) -> Answer:
        begun = self.begin(*words, world=world, **variables)
        out, said = begun.communicate()
        return Answer(subprocess.CompletedProcess(begun.args, begun.returncode, out, said))

    def begin(self, *words: str, world: str = "crafter", **variables: str) -> subprocess.Popen[str]:
        """The command and its children are a process group."""
        line = [sys.executable, "-P", "-m", "rlgpt.console.cli", "experiment", "critic"]
        line += ["collect_wood" if world == "crafter" else "microwave", "--seeds", "2", "--env-steps", "2000"]
        line += ["--world", world, "--on", self._address, "--json", *words]
        environment = os.environ | {"RLGPT_HOME": str(self.home)} | variables
        pipe = subprocess.PIPE
        return subprocess.Popen(line, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)

    def sessions(self) -> list[Path]:
        return list(self.home.glob("sessions/[!.]*"))  # without one that is being made


@pytest.fixture
def rlgpt(machines: Machines, tmp_path: Path) -> Rlgpt:
    return Rlgpt(machines.address, tmp_path / "home")


@pytest.fixture
def nodes(machines: Machines) -> Iterator[Any]:
    """Adds machines, which are gone after the test."""
    added: list[Any] = []

    def add(**variables: str) -> None:
        added.append(machines.add(env_vars=variables))

    yield add
    for node in added:
        machines.lose(node)


MODEL = ("--llm", "openai", "--model", "m", "--base-url", "https://models.example/v1", "--max-cost", "1")
KEY = {"RLGPT_LLM__API_KEY_ENV": "THEIR_KEY"}


@pytest.mark.timeout(900)
def test_a_node_that_lacks_the_key_is_left_out_and_not_counted(rlgpt: Rlgpt, nodes: Any) -> None:
    nodes(THEIR_KEY="secret")
    nodes()
    answer = rlgpt(*MODEL, "--dry-run", **KEY)
    assert answer.code == 0, answer.said
    assert answer.records[0]["jobs"] == 1
    assert "is left out: keys are never sent" in answer.said and "set THEIR_KEY" in answer.said
    assert answer.said.count("is left out") == 1 and "secret" not in answer.said


@pytest.mark.timeout(900)
def test_a_key_that_only_the_operator_has_starts_nothing(rlgpt: Rlgpt, nodes: Any) -> None:
    """Also where the operator says how many sessions run at once."""
    nodes(OPENAI_API_KEY="of another provider")
    answer = rlgpt(*MODEL, "--yes", "--jobs", "2", **KEY, THEIR_KEY="secret")
    assert answer.code and not rlgpt.sessions()
    assert "set THEIR_KEY" in answer.said and "can run a session" in str(answer.records)
    assert "secret" not in answer.said + str(answer.records)


@pytest.mark.timeout(900)
def test_a_node_without_the_extra_of_the_world_plays_nothing(rlgpt: Rlgpt, nodes: Any, tmp_path: Path) -> None:
    """Nor does one without rlgpt; the sentence says what is to be installed."""
    shadows = {name: tmp_path / name for name in ("mujoco", "rlgpt")}
    for name, folder in shadows.items():
        folder.mkdir()
        words = f"raise ModuleNotFoundError(\"No module named '{name}'\", name='{name}')\n"
        (folder / f"{name}.py").write_text(words)
    nodes(PYTHONPATH=str(shadows["mujoco"]))
    nodes(PYTHONPATH=str(shadows["rlgpt"]))
    answer = rlgpt("--yes", "--jobs", "2", world="kitchen")
    assert answer.code and not rlgpt.sessions()
    assert "pip install 'rlgpt[kitchen]'" in answer.said and "rlgpt does not run there" in answer.said


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_killed_grid_begins_no_session_twice(machines: Machines, rlgpt: Rlgpt, nodes: Any, tmp_path: Path) -> None:
    """Its first session ends while nobody follows it; the same command brings that one home and runs the others."""
    nodes(RLGPT_HOME=str(tmp_path / "node"))
    grid = rlgpt.begin("--yes", "--iterations", "0", "--test-episodes", "4", "--dev-episodes", "4")
    ray = connect.connect(machines.address)

    def history(path: Path) -> History:
        with Reader(SessionFolder(path)) as reader:
            return reader.history_at()

    until(lambda: any(history(path).phase.name == "Trial" for path in rlgpt.sessions()), 300 * PATIENCE)
    os.killpg(grid.pid, signal.SIGKILL)
    grid.communicate()
    (left,) = rlgpt.sessions()
    assert not Lease.held(left) and history(left).status != "ended"
    (there,) = (tmp_path / "node").glob(f"seats/*/sessions/{left.name}")
    until(lambda: history(there).status == "ended", 300 * PATIENCE)
    again = rlgpt("--yes", "--iterations", "0", "--test-episodes", "4", "--dev-episodes", "4")
    assert again.code == 0, again.said
    assert len(rlgpt.sessions()) == 4
    for path in rlgpt.sessions():
        assert (history(path).result, history(path).incarnation) in (("finished", 1), ("succeeded", 1))
        assert not placed_on(path)
    assert not ray.util.list_named_actors() and not list((tmp_path / "node").glob("seats/*"))

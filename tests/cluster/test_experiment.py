"""`rlgpt experiment --on`: before a session is made, the nodes must have what it needs, and who has it counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
        line = [sys.executable, "-P", "-m", "rlgpt.console.cli", "experiment", "critic"]
        line += ["collect_wood" if world == "crafter" else "microwave", "--seeds", "2", "--env-steps", "2000"]
        line += ["--world", world, "--on", self._address, "--json", *words]
        environment = os.environ | {"RLGPT_HOME": str(self.home)} | variables
        return Answer(subprocess.run(line, env=environment, capture_output=True, text=True, check=False))

    def sessions(self) -> list[Path]:
        return list(self.home.glob("sessions/*"))


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

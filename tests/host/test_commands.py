"""`try_action` and `doctor` as an operator's command line meets them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlgpt.training.host.client import doctor
from rlgpt.training.service import try_action

ROOT = Path(__file__).resolve().parents[2]


FOREVER = "def a(view):\n    while True:\n        yield 'left'"
CORRIDOR = ("--world", "tests.worlds.corridor:make_world")


def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, source: str | bytes, *words: str
) -> tuple[int, dict[str, Any]]:
    file = tmp_path / "action.py"
    file.write_bytes(source.encode() if isinstance(source, str) else source)
    status = try_action.main([str(file), "--json", *CORRIDOR, *words])
    (line,) = capsys.readouterr().out.splitlines()
    return status, json.loads(line)


def test_try_is_a_command_with_one_line_of_json(tmp_path: Path) -> None:
    file = tmp_path / "action.py"
    file.write_text("def right(view):\n    yield 'right'")
    command = [sys.executable, "-m", "rlgpt.training.service.try_action", str(file), "--json", *CORRIDOR]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout.count("\n")) == (0, 1), done.stderr
    assert json.loads(done.stdout)["yields"] == ["right"]


def test_try_runs_an_action_on_a_trial_seed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source = "def right(view):\n    for _ in range(3):\n        view = yield 'right'"
    status, told = run(capsys, tmp_path, source, "--action", "right", "--seed", "3")
    assert status == 0
    enforced = told.pop("enforced")
    assert enforced["seccomp"] == "enforced"
    assert told == {
        "admitted": True,
        "rule": "",
        "line": 0,
        "message": "",
        "outcome": "return",
        "yields": ["right", "right", "right"],
        "env_steps": 3,
        "host_deaths": 0,
    }


@pytest.mark.parametrize(
    ("source", "words", "status", "expected"),
    [
        ("import os\n", (), 1, {"admitted": False, "rule": "top level", "line": 1, "outcome": "refused"}),
        ("def a(view):\n    yield 'left'", ("--action", "b"), 1, {"admitted": False, "rule": "name"}),
        (
            "def a(view):\n    while True:\n        yield 'left'",
            ("--steps", "5"),
            0,
            {"outcome": "steps", "env_steps": 5},
        ),
        ("def a(view):\n    yield 'left'", ("--mode", "process"), 2, {}),
        ("def a(view):\n    yield 'left'", ("--mode", "wasm"), 2, {}),
        ("def a(view):\n    yield 'left'", ("--task", "nowhere"), 2, {}),
        (b"\xff\xfe", (), 2, {}),
    ],
)
def test_try_says_what_happened(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    source: str | bytes,
    words: tuple[str, ...],
    status: int,
    expected: dict[str, Any],
) -> None:
    got, told = run(capsys, tmp_path, source, *words)
    assert got == status, told
    assert {name: told[name] for name in expected} == expected
    assert ("error" in told) == (status == 2)


def test_doctor_prints_one_line_per_protection(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        doctor.Line("tcp", "cannot connect by TCP", True, "killed"),
        doctor.Line("udp", "cannot send", False, "sent"),
    ]
    monkeypatch.setattr(doctor, "table", lambda: lines)
    assert doctor.main([]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "enforced      cannot connect by TCP: killed",
        "NOT ENFORCED  cannot send: sent",
    ]
    assert doctor.main(["--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lines"][1] == {
        "name": "udp", "protection": "cannot send", "enforced": False, "how": "sent",
    }  # fmt: skip


def test_doctor_says_where_there_is_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    lines = doctor.table()
    assert lines and not any(line.enforced for line in lines)
    assert all("needs Linux" in line.how for line in lines)

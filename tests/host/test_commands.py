"""The service's answers about sources and about the protections of the action host."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from rlgpt.training.host.client import doctor
from rlgpt.training.service.__main__ import answer

FOREVER = "def a(view):\n    while True:\n        yield 'left'"


def ask(tmp_path: Path, source: str | bytes, **arguments: Any) -> dict[str, Any]:
    file = tmp_path / "action.py"
    file.write_bytes(source.encode() if isinstance(source, str) else source)
    asked = {"ask": "try_action", "file": str(file), "world": "tests.worlds.corridor:make_world"}
    return answer(json.dumps(asked | arguments))


def test_try_runs_an_action_on_a_trial_seed(tmp_path: Path) -> None:
    source = "def right(view):\n    for _ in range(3):\n        view = yield 'right'"
    told = ask(tmp_path, source, action="right", seed=3)["ok"]
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
    ("source", "arguments", "expected"),
    [
        ("import os\n", {}, {"admitted": False, "rule": "top level", "line": 1, "outcome": "refused"}),
        ("def a(view):\n    yield 'left'", {"action": "b"}, {"admitted": False, "rule": "name"}),
        ("def a(view):\n    x = [][0]\n    yield 'left'", {}, {"admitted": False, "rule": "dry run", "line": 2}),
        (FOREVER, {"steps": 5}, {"outcome": "steps", "env_steps": 5}),
    ],
)
def test_try_says_what_happened(
    tmp_path: Path, source: str, arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    told = ask(tmp_path, source, **arguments)["ok"]
    assert {name: told[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("source", "arguments", "sentence"),
    [
        (FOREVER, {"mode": "process"}, "allow"),
        (FOREVER, {"mode": "nowhere"}, "nowhere"),
        (FOREVER, {"task": "nowhere"}, "nowhere"),
        (FOREVER, {"world": "nowhere"}, "nowhere"),
        (FOREVER, {"file": "nowhere.py"}, "nowhere.py"),
        (b"\xff\xfe", {}, "no text in UTF-8"),
    ],
)
def test_what_cannot_be_tried_is_a_sentence(
    tmp_path: Path, source: str | bytes, arguments: dict[str, Any], sentence: str
) -> None:
    told = ask(tmp_path, source, **arguments)
    assert told["exit_code"] == 2 and sentence in told["error"], told


def test_each_protection_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [doctor.Line("udp", "cannot send", False, "sent")]
    monkeypatch.setattr(doctor, "table", lambda: lines)
    assert answer('{"ask": "protections"}')["ok"]["lines"] == [
        {"name": "udp", "protection": "cannot send", "enforced": False, "how": "sent"}
    ]


def test_doctor_says_where_there_is_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    lines = doctor.table()
    assert lines and not any(line.enforced for line in lines)
    assert all("needs Linux" in line.how for line in lines)

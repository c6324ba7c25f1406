"""The service: whatever comes in on a line, one answer goes out on a line, and nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rlgpt.training.options.slots import primitive_names
from rlgpt.training.service import questions
from rlgpt.training.service.__main__ import answer
from rlgpt.training.service.sources import tried
from rlgpt.training.worlds import registry
from rlgpt.training.worlds.packed import VIEW_CAP
from rlgpt.training.worlds.protocol import NativeAction, WorldFailed
from tests.options.fake_host import FakeHost
from tests.worlds import corridor_host
from tests.worlds.corridor import CorridorEnv, CorridorWorld
from tests.worlds.failing import FAILS

NOISY_WORLD = """
import os, subprocess, sys
print("the client greets you")
os.system("echo so does its child; cat")
left = sys.stdin.read()
def make_world():
    raise ImportError(f"read {left!r} from the console")
"""

UNDECLARED = {"kind": "x", "name": "", "tasks": [], "seeds": [], "settings": {}}


def service(lines: list[str], *, folder: Path | None = None) -> list[dict[str, Any]]:
    environment = os.environ | ({"PYTHONPATH": str(folder)} if folder else {})
    command = [sys.executable, "-P", "-m", "rlgpt.training.service"]
    done = subprocess.run(
        command, input="".join(f"{line}\n" for line in lines), env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ("[1, 2]", "not a question: [1, 2]"),
        ("{}", "not a question"),
        ('{"ask": "no such thing"}', "not a question"),
        ('{"ask": ["tasks"]}', "not a question"),
        ('{"ask": "tasks"}', "tasks: missing a required argument: 'world'"),
        ('{"ask": "tasks", "world": "crafter", "wide": 1}', "unexpected keyword argument 'wide'"),
        ('{"ask": "tasks", "world": 7}', "tasks: world cannot be 7"),
        ('{"ask": "create", "settings": "all"}', "create: settings cannot be 'all'"),
        ('{"ask": "tasks", "world": "nowhere"}', "no world called 'nowhere'"),
        ('{"ask": "create", "settings": {"task": "fly"}}', "has no task 'fly'"),
        ('{"ask": "create", "settings": {"host_mode": "paper"}}', "host_mode"),
        (f'{{"ask": "experiment_bill", "request": {json.dumps(UNDECLARED)}}}', "no experiment 'x'"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(line: str, sentence: str) -> None:
    told = answer(line)
    assert set(told) == {"error", "exit_code"} and told["exit_code"] == 2 and sentence in told["error"], told


def test_an_unexpected_error_is_told_and_the_next_question_answered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise KeyError("a defect of ours")

    monkeypatch.setitem(questions.QUESTIONS, "broken", broken)  # type: ignore[arg-type]
    assert answer('{"ask": "broken"}') == {"error": "KeyError: 'a defect of ours'", "exit_code": 1}
    assert "Traceback" in capsys.readouterr().err
    assert "crafter" in answer('{"ask": "worlds"}')["ok"]["worlds"]


@pytest.mark.parametrize(("fails", "sentence"), [("raises", "ValueError: the door is stuck"), ("leaves", "SystemExit")])
def test_an_error_of_a_world_is_no_mistake_of_who_asks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fails: str, sentence: str
) -> None:
    monkeypatch.setenv(FAILS, fails)
    action = tmp_path / "a.py"
    action.write_text("def a(view):\n    yield 'left'\n")
    question = {"ask": "try_action", "world": "tests.worlds.failing:make_failing", "task": "open_door"}
    told = answer(json.dumps(question | {"file": str(action)}))
    assert told["exit_code"] == 1 and re.search(rf"failed in failing\.py, line \d+: {sentence}", told["error"]), told
    assert answer(json.dumps(question | {"file": str(tmp_path / "none.py")}))["exit_code"] == 2


FAILING_WORLD = "tests.worlds.failing:make_failing"
OF_A_WORLD = {"world": FAILING_WORLD, "task": "open_door"}


@pytest.mark.parametrize(
    "question",
    [
        {"ask": "experiment_bill", "request": {"kind": "x", "settings": OF_A_WORLD}},
        {"ask": "experiment_bill", "request": {"kind": "x", "settings": {"task": "open_door"}}},
        {"ask": "cluster", "on": "here", "settings": OF_A_WORLD},
        {"ask": "try_action", "file": "a.py"},
        {"ask": "create", "settings": {"task": "open_door"}},
    ],
)
def test_an_error_of_a_world_is_told_as_its_own_wherever_a_question_names_it(
    monkeypatch: pytest.MonkeyPatch, question: dict[str, Any]
) -> None:
    """Where none is named it is the usual one, which a world of somebody else stands in for here."""
    known = registry.get
    monkeypatch.setenv(FAILS, "raises")
    monkeypatch.setattr(registry, "get", lambda name: known(FAILING_WORLD if name == "crafter" else name))

    def asked(*_: object) -> None:
        registry.get(FAILING_WORLD).make("open_door").reset(0)

    for place in ("experiments.requests.bill_of", "cluster.nodes.describe_nodes", "service.sources.try_file"):
        monkeypatch.setattr(f"rlgpt.training.{place}", asked)
    monkeypatch.setattr("rlgpt.training.session.creation.create", asked)
    told = answer(json.dumps(question))
    sentence = r"^The world \w+ failed in failing\.py, line \d+: ValueError: the door is stuck and so is the window$"
    assert told["exit_code"] == 1 and re.search(sentence, told["error"]), told


@pytest.mark.parametrize("settings", [7, [], None])
def test_a_request_of_another_form_is_answered_too(settings: object) -> None:
    told = answer(json.dumps({"ask": "experiment_bill", "request": {"settings": settings}}))
    assert set(told) == {"error", "exit_code"}


class FromOne(CorridorWorld):
    """Its actions begin at 1, as those of gymnasium's `Discrete(3, start=1)`."""

    def decode(self, command: NativeAction) -> tuple[int, bool]:
        return super().decode((command[0] - 1,))

    def native_action(self, action: Sequence[int]) -> NativeAction:
        return (action[0] + 1,)


def test_what_was_tried_is_told_by_the_names_of_the_primitives(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = corridor_host.encode
    monkeypatch.setattr(corridor_host, "encode", lambda yielded: (encode(yielded)[0] + 1,))
    source = 'def all_three(view):\n    yield "right"\n    yield "left"\n    yield "use"\n'
    told = tried(FromOne(), FakeHost(FromOne().host_module), source, "", "take_coin", 0, 10)
    assert told["yields"] == ["right", "left", "use"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (None, "view() gave None at step 0 of an episode of take_coin; bytes were expected."),
        (bytes(VIEW_CAP + 1), "view() gave 2,097,153 bytes at step 0 of an episode of take_coin; at most 2,097,152"),
    ],
)
def test_what_is_no_view_is_a_sentence_before_a_source_is_judged_by_it(
    monkeypatch: pytest.MonkeyPatch, given: object, sentence: str
) -> None:
    monkeypatch.setattr(CorridorEnv, "view", lambda env, whole: given)
    source = 'def walk(view):\n    yield "right"\n'
    with pytest.raises(WorldFailed, match=re.escape(sentence)):
        tried(CorridorWorld(), FakeHost(CorridorWorld().host_module), source, "", "take_coin", 0, 10)


def test_a_command_that_is_a_list_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CorridorWorld, "native_action", lambda world, action: list(action))
    with pytest.raises(WorldFailed, match=r"corridor cannot be played: native_action\(\) gives \[0\]; a tuple"):
        primitive_names(CorridorWorld())


def test_lines_are_answered_one_by_one_in_their_order() -> None:
    told = service(['{"ask": "worlds"}', "nonsense", '{"ask": "prices"}'])
    assert ["error" in each for each in told] == [False, True, False]
    assert all(len(price) == 2 for price in told[2]["ok"].values())


def test_what_a_world_prints_or_reads_stays_out_of_the_conversation(tmp_path: Path) -> None:
    (tmp_path / "noisy_world.py").write_text(NOISY_WORLD)
    asked = ['{"ask": "tasks", "world": "noisy_world:make_world"}', '{"ask": "worlds"}']
    first, second = service(asked, folder=tmp_path)
    assert "read '' from the console" in first["error"] and "crafter" in second["ok"]["worlds"]


def test_refusing_a_source_imports_neither_torch_nor_a_compiled_game(tmp_path: Path) -> None:
    file = tmp_path / "action.py"
    file.write_text("def a(view:\n    yield")
    code = (
        "import json, sys; from rlgpt.training.service.__main__ import answer\n"
        f"told = answer(json.dumps({{'ask': 'try_action', 'file': {str(file)!r}}}))\n"
        "assert told['ok']['rule'] == 'syntax', told\n"
        "print(*sorted({'torch', 'numba', 'stable_baselines3', 'openai', 'sqlmodel'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr + done.stdout

"""A model whose code, predicates and rewards break whatever runs them: the session ends by itself, with true rows."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import threading
import time
from typing import Any

import psutil
import pytest

from rlgpt.agents.rules import question
from rlgpt.agents.rules.model import respond
from rlgpt.store.history import History
from tests.agents.chat_server import ChatServer
from tests.end_to_end.conftest import Make, Running

LATER = "view.drink < 9 or view.food < 9"
"""False on the recorded views, true after some 25 env steps."""
BREAKS_CODE = (
    'def {name}(view):\n    view = yield "noop"\n    a = [0] * 100000000',
    'def {name}(view):\n    view = yield "noop"\n    raise ValueError("x" * 5000)',
    'def {name}(view):\n    view = yield "noop"\n    "%999999999d" % 5',
    'def {name}(view)\n    yield "noop"\n',
    '```python\ndef {name}(view):\n    yield "noop"\n```',
    'def {name}(view):\n    view = yield "noop"\n    x = 3\n    for _ in range(60):\n        x = x * x',
    'def {name}(view):\n    while True:\n        view = yield "noop"\n        a = [0] * (100000000 if LATER else 1)',
    'def {name}(view):\n    while not (LATER):\n        view = yield "noop"\n    raise KeyError("x" * 5000)',
    'def {name}(view):\n    x = ()\n    while True:\n        view = yield "noop"\n        for _ in range(40000):\n'
    "            x = (x,)\n        if LATER:\n            x = {x: 1}",
)
BREAKS_TEST = (
    "view.inventory['wood'] = = 3",
    "[0] * 100000000 == view.inventory",
    "LATER and [0] * 100000000 or view.inventory['wood'] >= 1",
    "LATER and (lambda x: [x := x * x for _ in range(60)])(3) or view.inventory['wood'] >= 1",
)
BREAKS_REWARD = (
    "def reward(before, view)\n    return 1",
    "def reward(before, view):\n    a = [0] * 100000000\n    return 1",
    "def reward(before, view):\n    if LATER:\n        a = [0] * 100000000\n    return 0.5",
    "def reward(before, view):\n    x = 3\n    for _ in range(60 if LATER else 1):\n        x = x * x\n    return 0.5",
)
SMALL = {"iterations": 0, "test_episodes": 2}


class Breaking:
    """The rule-based model, but for the sources that it writes. Plans keep every second predicate."""

    def __init__(self) -> None:
        self._code, self._tests, self._rewards = (
            itertools.cycle([text.replace("LATER", LATER) for text in texts])
            for texts in (BREAKS_CODE, BREAKS_TEST, BREAKS_REWARD)
        )

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = respond(request)
        message = answer["choices"][0]["message"]
        content = json.loads(message["content"]) if message["content"] else {}
        if "source" in content:
            name = str(question.read(request)["item"]["name"])
            content["source"] = next(self._code).replace("{name}", name)
        for item in content.get("sub_actions", [])[1::2]:
            item["done_when"] = next(self._tests)
        if "reward" in content:
            content["reward"].append({"term": "generated", "argument": "", "weight": 0.25})
            content["reward_source"] = next(self._rewards)
        message["content"] = json.dumps(content)
        return answer


def ended_well(session: Running, history: History) -> None:
    """By itself, not failed; every refusal and every fault has a rule or an end, and words."""
    assert history.status == "ended" and history.result in ("finished", "succeeded"), history.reason
    events = session.rows("event")
    assert not [row for row in events if row["kind"] == "trainer_died"]
    for row in session.rows("code_version"):
        if not row["admitted"]:
            told = row["admission"]
            assert told["rule"] and told["message"] and "system call" not in told["message"], told
    for row in session.rows("trial"):
        assert row["outcome"] != "failed" or row["successes"] or row["error"] or row["trials"], row
    for row in events:
        if row["kind"] == "host_death":
            assert row["payload"]["source_hash"], row["payload"]
    assert not session.processes()


def settings(server: ChatServer) -> dict[str, Any]:
    return {"llm": {"kind": "openai", "base_url": server.url, "model": "rlgpt-rules"}, "loop": SMALL}


def test_sources_that_break_everything_end_no_session(make: Make) -> None:
    with ChatServer(Breaking()) as server:
        session = make("make_wood_pickaxe", **settings(server), budget={"env_steps": 8_000})
        history = session.finish(350)
    ended_well(session, history)
    refused = [row["admission"] for row in session.rows("code_version") if not row["admitted"]]
    said = {(told["rule"], told["line"]) for told in refused}
    assert {("dry run", 3), ("syntax", 1)} <= said, said
    assert "killed" in {rule for rule, _ in said}  # with its line where a second run ends the same way, else 0
    assert "MemoryError: more memory than an action may use" in refused[0]["message"]
    assert "ValueError: xxx" in refused[1]["message"]
    faults = {trial["end"] for row in session.rows("trial") for trial in row["trials"]}
    assert faults & {"killed", "error"}, faults


def test_rewards_that_break_in_training_end_no_session(make: Make) -> None:
    with ChatServer(Breaking()) as server:
        session = make("collect_wood", **settings(server), method={"arm": "rl"}, budget={"env_steps": 4_096})
        history = session.finish(350)
    ended_well(session, history)
    logged = [row["fields"] for row in session.rows("log") if row["event"] == "generated reward refused"]
    died = [row["payload"]["cause"] for row in session.rows("event") if row["kind"] == "host_death"]
    assert logged or died


@pytest.mark.slow
def test_a_session_that_is_killed_among_such_sources_goes_on(make: Make) -> None:
    with ChatServer(Breaking()) as server:
        session = make("make_wood_pickaxe", **settings(server), budget={"env_steps": 8_000})
        for wanted in (1, 3, 6):
            session.until(lambda h, n=wanted: len(h.attempts) >= n, 200)
            session.kill()
            session.start()
        history = session.finish(350)
    ended_well(session, history)
    assert history.incarnation >= 3


def test_hosts_that_are_killed_from_outside_again_and_again_fail_no_session(make: Make) -> None:
    """It goes on, or stops with a sentence and is resumed."""
    session = make("make_wood_pickaxe", loop=SMALL)
    trainer = session.trainer()
    over = threading.Event()

    def hunt() -> None:
        while not over.is_set():
            try:
                for child in trainer.children():
                    os.kill(child.pid, signal.SIGKILL)
            except (psutil.Error, ProcessLookupError):
                return
            time.sleep(0.01)

    hunter = threading.Thread(target=hunt)
    session.until(lambda h: len(h.attempts) >= 1, 200)
    hunter.start()
    assert session.supervisor is not None
    with contextlib.suppress(subprocess.TimeoutExpired):
        session.supervisor.wait(100)
    over.set()
    hunter.join()
    if session.supervisor.poll() is not None:
        history = session.history()
        assert history.status != "ended" or history.result != "failed", history.reason
        session.start()
    history = session.finish(350)
    assert history.status == "ended" and history.result in ("finished", "succeeded"), history.reason

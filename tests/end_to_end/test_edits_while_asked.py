"""Edits of the plan that come while a model is asked: a model thinks for a minute, an operator types meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rlgpt.agents.rules import question
from rlgpt.agents.rules.model import respond
from rlgpt.store.commands import parse_command
from rlgpt.store.inbox import send
from tests.agents.chat_server import ChatServer
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.sameness import outcome
from tests.patience import PATIENCE

SHORT: dict[str, Any] = {"dev_first": 2, "test_episodes": 1, "inner": 1, "depth": 0}
EDITED = "place_table"
CODE = f"""def {EDITED}(view):
    while True:
        view = yield "noop"
"""


class Thinking:
    """The rule-based model with plans of two coded sub-actions. It leaves EDITED to RL in every plan after the first,
    and the first answer to `ask` of an iteration (of the sub-action `about`) waits until the operator has acted."""

    def __init__(self, ask: str, iteration: int, about: str | None = None) -> None:
        self.held = (ask, iteration, about)
        self.asked, self.edited = threading.Event(), threading.Event()

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        asked = question.read(request)
        iteration, item = asked["request"].get("iteration", 0), asked.get("item")
        if (asked.ask, iteration, item["name"] if item else None) == self.held and not self.asked.is_set():
            self.asked.set()
            assert self.edited.wait(100 * PATIENCE)
        answer = respond(request)
        if asked.ask == "plan":
            message = answer["choices"][0]["message"]
            plan = json.loads(message["content"])
            plan["executor"], plan["sub_actions"] = "sequence", plan["sub_actions"][:2]
            if iteration:
                plan["sub_actions"][1]["mode"] = "rl"
            message["content"] = json.dumps(plan)
        return answer


@contextmanager
def asked(make: Make, model: Thinking) -> Iterator[Running]:
    """A session whose model is in the middle of the answer that `model` holds back, until the block ends. Its last
    iteration is the one of that answer."""
    with ChatServer(model) as server:
        llm = {"kind": "openai", "base_url": server.url, "model": "rlgpt-rules"}
        session = make("collect_diamond", llm=llm, loop=SHORT | {"iterations": model.held[1]})
        assert model.asked.wait(100 * PATIENCE)
        try:
            yield session
        finally:
            model.edited.set()
        session.finish()


def give(session: Running, kind: str, payload: dict[str, Any]) -> None:
    """A command of the operator, until it is applied."""
    revision = session.until(lambda h: h.plan is not None).revision
    command = send(session.folder, parse_command(kind, payload), revision)
    after = session.until(lambda h: command in h.commands and h.commands[command].state != "seen")
    assert after.commands[command].state == "applied", after.commands[command].reason


def edit(session: Running, operation: dict[str, Any]) -> None:
    give(session, "override", {"edits": [operation | {"name": EDITED}], "apply": "now"})


def write_code(session: Running) -> None:
    give(session, "edit_code", {"sub_action": EDITED, "source": CODE, "apply": "now"})


def replayed(make: Make, session: Running) -> None:
    loop = session.history().session["settings"]["loop"]
    again = make("collect_diamond", llm={"kind": f"replay:{session.folder.id}"}, loop=loop)
    again.finish()
    assert again.history().reason == session.history().reason
    rows, repeated = outcome(session.folder), outcome(again.folder)
    for table in rows:
        assert repeated[table] == rows[table], f"{table} differs"


def test_a_pin_holds_that_comes_while_the_slow_agent_writes_the_next_plan(make: Make) -> None:
    with asked(make, Thinking("plan", 1)) as session:
        edit(session, {"op": "pin"})
    history = session.history()
    assert history.result == "finished", history.reason
    (planned,) = [plan for plan in history.plans.values() if plan.author == "slow" and plan.iteration == 1]
    item = planned.item(EDITED)
    assert item is not None and item.pinned and item.mode == "code"
    assert planned.attempted[EDITED] == {"mode": "rl"}
    replayed(make, session)


@pytest.mark.slow
def test_an_edit_that_comes_while_the_critic_judges_is_measured_in_the_same_iteration(make: Make) -> None:
    with asked(make, Thinking("judge_iteration", 0)) as session:
        edit(session, {"op": "set", "goal": "Another goal."})
    history = session.history()
    assert history.result == "finished", history.reason
    first = history.iterations[0]
    assert [e.revision for e in first.evaluations if e.split == "dev"] == [1, 2]
    (verdict,) = [
        row for row in session.rows("verdict") if row["sub_action"] is None and row["iteration"] == first.number
    ]
    assert verdict["revision"] == 2
    replayed(make, session)


def test_code_of_the_operator_is_tried_that_comes_while_the_fast_agent_writes(make: Make) -> None:
    with asked(make, Thinking("write", 0, EDITED)) as session:
        write_code(session)
    versions = session.history().attempts_of(EDITED)
    assert [version.author for version in versions] == ["operator", "fast"]
    assert all(version.trial is not None for version in versions)
    replayed(make, session)


@pytest.mark.slow
def test_code_of_the_operator_is_tried_that_comes_while_the_critic_judges_the_last_iteration(make: Make) -> None:
    with asked(make, Thinking("judge_iteration", 0)) as session:
        write_code(session)
    assert [version.author for version in session.history().attempts_of(EDITED)] == ["fast", "operator"]
    assert all(version.trial is not None for version in session.history().attempts_of(EDITED))
    replayed(make, session)


def test_nothing_is_written_for_a_sub_action_that_was_taken_out_while_the_fast_agent_writes(make: Make) -> None:
    with asked(make, Thinking("write", 0, EDITED)) as session:
        edit(session, {"op": "remove"})
    history = session.history()
    assert history.result == "finished", history.reason
    assert not history.attempts_of(EDITED)
    replayed(make, session)

"""Several drafts of an attempt in whole sessions: the same rows whatever arrives first, nothing paid twice, and a draft
that is rubbish costs only itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rlgpt.agents.rules import question
from rlgpt.agents.rules.model import respond
from rlgpt.store.commands import parse_command
from rlgpt.store.inbox import send
from tests.agents.chat_server import ChatServer
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.sameness import every_row, outcome
from tests.end_to_end.side_by_side import kill_while_answers_wait
from tests.end_to_end.test_side_by_side import LastFirst

TASK = "make_wood_pickaxe"
LOOP = {"iterations": 0, "candidates": 3, "dev_first": 4, "test_episodes": 2}


def session_at(make: Make, server: ChatServer, parallel: int, **more: Any) -> Running:
    llm = {"kind": "openai", "base_url": server.url, "model": "rlgpt-rules", "parallel": parallel}
    return make(TASK, llm=llm, loop=LOOP, critic="model", **more)


def drafted(request: dict[str, Any]) -> int:
    """Number of the draft that is asked for, 0 for every other question."""
    asked = question.read(request)["request"]
    return int(asked.get("draft", 0))


def mixed(request: dict[str, Any]) -> dict[str, Any]:
    """The rule-based model, but a second draft is no JSON at all, and a third is code that does nothing."""
    answer = respond(request)
    message = answer["choices"][0]["message"]
    if drafted(request) == 2:
        message["content"] = "I would rather talk about something else."
    if drafted(request) == 3:
        name = question.read(request)["item"]["name"]
        message["content"] = json.dumps({"source": f"def {name}(view):\n    yield 'noop'\n", "note": ""})
    return answer


def test_a_rubbish_draft_costs_only_itself_and_every_draft_is_a_row(make: Make) -> None:
    with ChatServer(LastFirst(mixed)) as server:
        together = session_at(make, server, 8)
        history = together.finish(300)
    assert history.result == "succeeded", history.reason
    plan = history.plan
    assert plan is not None
    for item in plan.items:
        versions = history.attempts_of(item.name)
        assert [a.admission["draft"] for a in versions] == [1, 2, 3] and {a.attempt for a in versions} == {1}
        good, rubbish, idle = versions
        assert rubbish.admission["rule"] == "empty" and "no usable answer" in rubbish.note
        assert rubbish.trial and "no usable answer" in rubbish.trial.error and "no code" not in rubbish.trial.error
        assert good.trial and good.trial.outcome == "accepted" and idle.trial and idle.trial.successes == 0
        assert plan.chosen[item.name].version == good.version
    with ChatServer(mixed) as server:
        alone = session_at(make, server, 1)
        alone.finish(300)
    one, other = every_row(alone.folder.path), every_row(together.folder.path)
    for table, rows in one.items():
        assert other[table] == rows, f"{table} differs"
    replayed = make(TASK, llm={"kind": f"replay:{together.folder.id}"}, loop=LOOP)
    replayed.finish(300)
    for table, rows in outcome(together.folder.path).items():
        assert outcome(replayed.folder.path)[table] == rows, f"{table} of the replay differs"


def test_a_draft_that_repeats_another_is_not_tried_again(make: Make) -> None:
    with ChatServer(respond) as server:  # the rule-based model answers every draft alike
        history = session_at(make, server, 8).finish(300)
    assert history.result == "succeeded", history.reason
    told = [(a.admission["draft"], a.admission["rule"], a.trial and a.trial.env_steps > 0) for a in history.attempts]
    assert set(told) == {(1, "", True), (2, "same", False), (3, "same", False)}


def test_a_kill_between_drafts_pays_for_none_twice(make: Make) -> None:
    history = kill_while_answers_wait(
        lambda server: session_at(make, server, 8), lambda server, request: drafted(request) == 1, mixed
    )
    assert history.result == "succeeded", history.reason


@pytest.mark.slow
def test_a_budget_that_ends_between_drafts_ends_the_session_with_its_sentence(make: Make) -> None:
    with ChatServer(mixed) as server:
        whole = session_at(make, server, 8).finish(300)
        until_the_fourth = sum(a.trial.env_steps for a in whole.attempts[:4] if a.trial)
        cut = session_at(make, server, 8, budget={"env_steps": until_the_fourth}).finish(300)
    assert cut.result == "finished" and "budget" in cut.reason, cut.reason
    assert [a.admission["draft"] for a in cut.attempts] == [1, 2, 3, 1], "the second sub-action has one of three drafts"


def test_a_persons_verdict_is_about_the_draft_that_the_session_waits_for(make: Make) -> None:
    def answer(request: dict[str, Any]) -> dict[str, Any]:
        answer = respond(request)
        if drafted(request):
            name = question.read(request)["item"]["name"]
            rest = "    return\n" if drafted(request) > 1 else ""
            source = f"def {name}(view):\n    view = yield 'noop'\n" + rest * drafted(request)
            answer["choices"][0]["message"]["content"] = json.dumps({"source": source, "note": ""})
        return answer

    with ChatServer(answer) as server:
        llm = {"kind": "openai", "base_url": server.url, "model": "rlgpt-rules"}
        session = make(TASK, llm=llm, loop=LOOP, critic="human")
        waiting = session.until(lambda h: h.waiting_for.startswith("your verdict"), 200)
        name = waiting.attempts[0].sub_action
        assert [a.admission["draft"] for a in waiting.attempts_of(name)] == [1, 2, 3]
        send(session.folder, parse_command("verdict", {"success": False, "cause": "it waits", "sub_action": name}))
        judged = session.until(lambda h: len(h.attempts_of(name)) > 3, 200)
    assert [a.version for a in judged.attempts_of(name) if a.verdict] == [1], "the best of three that did nothing"

"""Functions of other accepted code, put in front of a source that calls them."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from rlgpt.agents import fast
from rlgpt.agents.client import make_client
from rlgpt.agents.contracts import unfenced
from rlgpt.agents.errors import UselessReply
from rlgpt.agents.linking import FRONT, link, signature
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.steps.admission import admit
from rlgpt.training.worlds import registry
from tests.agents.chat_server import ChatServer, completion
from tests.agents.histories import Told, context
from tests.agents.toys import Ledger
from tests.training.opened import opened

WOOD = '''ignore_alarm = True
FAR = (
    3,
    4,
)
NEAR = 2


def available(view):
    return view.health > NEAR


def count(view):
    """Wood at hand."""
    return view.inventory["wood"] + len(FAR)


def around(view):
    for _ in range(NEAR):
        view = yield "noop"
    return view


def get_wood(view):
    while count(view) < 5:
        view = yield from around(view)
'''


def names(source: str) -> list[str]:
    return [getattr(part, "name", "") or ast.unparse(part).split(" ")[0] for part in ast.parse(source).body]


def test_what_is_called_comes_with_what_it_needs_and_nothing_else() -> None:
    mine = "def get_table(view):\n    if count(view) > 1:  # around(view)\n        yield 'place_table'\n"
    source, clash = link(mine, [WOOD])
    assert clash == "" and source.startswith(FRONT) and names(source) == ["FAR", "count", "get_table"]
    source, _ = link("def get_table(view):\n    view = yield from get_wood(view)\n", [WOOD])
    assert names(source) == ["FAR", "NEAR", "count", "around", "get_wood", "get_table"]
    assert link(source, [WOOD]).source == source, "what was put in front is its own by then"


@pytest.mark.parametrize(
    "mine",
    [
        "def get_table(view):\n    yield 'noop'\n",
        "def get_table(view):\n    nothing_like_it(view)\n    yield 'noop'\n",
        "def count(view):\n    return 1\ndef get_table(view):\n    yield str(count(view))\n",
        "def get_table(view):\n    count = lambda v: 1\n    yield str(count(view))\n",
        "def get_table(view):\n    available(view)\n    view.count(3)\n    yield 'noop'\n",
        "",
        "\0 not ( Python",
        "def (((((\n" * 50,
        "a:" * 8_000,
        "def around(view):\n" * 8_000 + "    count(view)\n",
    ],
)
def test_a_source_that_calls_nothing_of_them_stays_as_it_is(mine: str) -> None:
    assert link(mine, [WOOD]) == (mine, "")


def test_a_name_of_the_library_is_the_librarys() -> None:
    mine = "def get_table(view):\n    count(view)\n    yield 'noop'\n"
    assert link(mine, [WOOD], {"count"}).source == mine


def test_two_things_of_one_name_are_told_and_not_mixed() -> None:
    mine = "NEAR = 7\n\n\ndef get_table(view):\n    view = yield from around(view)\n"
    source, clash = link(mine, [WOOD])
    assert source == mine and "around is called, and it needs the NEAR of its own source" in clash
    other = "NEAR = 9\n\n\ndef away(view):\n    return NEAR\n"
    both = "def get_table(view):\n    away(view)\n    view = yield from around(view)\n"
    assert "NEAR" in link(both, [WOOD, other]).clash
    assert link(both, [WOOD, other.replace("9", "2")]).clash == "", "the same twice is no clash"


@pytest.mark.parametrize(
    "line", ["NEAR = 7", "far = dict(NEAR=7)", "for NEAR in range(7):\n        pass", "def NEAR():\n        return 7"]
)
def test_a_name_that_is_bound_inside_of_a_function_only_is_no_clash(line: str) -> None:
    mine = f"def get_table(view):\n    {line}\n    view = yield from around(view)\n"
    source, clash = link(mine, [WOOD])
    assert clash == "" and names(source) == ["NEAR", "around", "get_table"] and source.endswith(mine)


def test_functions_that_call_each_other_come_together() -> None:
    turns = "def ping(view):\n    return pong(view)\n\n\ndef pong(view):\n    return ping(view)\n"
    source, _ = link("def play(view):\n    ping(view)\n    yield 'noop'\n", [turns])
    assert names(source) == ["ping", "pong", "play"]


def test_a_signature_is_that_of_the_last_function() -> None:
    assert signature(WOOD) == "get_wood(view)" and signature("") == "" and signature("x = 3") == ""


def test_a_signature_is_that_of_the_action_whatever_is_written_behind_it() -> None:
    for behind in ("def available(view):\n    return True\n", "def around(view, far):\n    return view\n"):
        source = f"def get_wood(view):\n    view = yield 'do'\n\n\n{behind}"
        assert signature(source, "get_wood") == "get_wood(view)"
        assert fast._offered({"name": "get_wood", "source": source})["call"] == "get_wood(view)"


@pytest.mark.parametrize(
    "text", ['"""Chop.\n\nUntil three.\n    """', '# it is """\n    x = 3', "# chop it\u2028once more"]
)
def test_a_function_is_put_in_front_whole(text: str) -> None:
    chop = f"def chop(view):\n    {text}\n    view = yield 'do'\n    return view"
    rest = "def rest(view):\n    yield 'noop'\n"
    source, _ = link("def play(view):\n    yield from chop(view)\n", [f"{chop}\n\n\n{rest}"])
    assert chop in source and names(source) == ["chop", "play"]


@pytest.mark.parametrize("marks", ["{}", "```python\n{}```", "\ufeff\n```\n{}\n```\n", "~~~ py\r\n{}~~~  ", "\ufeff{}"])
def test_code_is_taken_out_of_the_fence_around_it(marks: str) -> None:
    code = "def dig(view):\n    yield 'noop'\n"
    assert unfenced(marks.format(code)).strip("\n") == code.strip("\n")


@pytest.mark.parametrize("source", ["", "```", "```\n", "Look:\n```\nx\n```", "```\na\n```\nb\n```", "```\na"])
def test_what_is_more_than_a_fence_around_code_stays_and_is_refused(source: str) -> None:
    assert unfenced(source) == source


# ---- in the host, and through a model ---------------------------------------------------------------
@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with opened(tmp_path_factory.mktemp("home")) as session:
        yield session


def test_the_host_takes_linked_code_as_the_action_it_was_written_for(live: SessionRuntime) -> None:
    mine = "def get_table(view):\n    view = yield from get_wood(view)\n    view = yield 'place_table'\n"
    told = admit(live, "action", link(mine, [WOOD]).source)
    assert (told.admitted, told.name) == (True, "get_table"), told.message
    assert not told.uninterruptible and not told.has_available, "those belong to the other action"
    parameters = 'def dig(view, what: Literal["stone", "coal"]):\n    yield "do"\n'
    told = admit(live, "action", link("def go_dig(view):\n    yield from dig(view, 'coal')\n", [parameters]).source)
    assert (told.admitted, told.name, dict(told.arguments)) == (True, "go_dig", {}), told.message


def test_the_host_says_what_is_wrong_with_what_cannot_be_linked(live: SessionRuntime) -> None:
    told = admit(live, "action", link("def get_table(view):\n    yield from fetch(view)\n", [WOOD]).source)
    assert not told.admitted and "fetch" in told.message
    endless = "def ping(view):\n    yield from pong(view)\n\n\ndef pong(view):\n    yield from ping(view)\n"
    told = admit(live, "action", link("def play(view):\n    yield from ping(view)\n", [endless]).source)
    assert not told.admitted and told.message
    long = "def get_long(view):\n" + "    yield 'noop'\n" * 590
    told = admit(
        live, "action", link("def play(view):\n" + "    yield 'do'\n" * 100 + "    get_long(view)\n", [long]).source
    )
    assert not told.admitted and told.rule == "too long"


def answered(*sources: str) -> Any:
    """What the fast agent brings when the model answers with these, one after the other; get_wood is accepted code."""
    world = registry.get("crafter")
    task = world.tasks["collect_diamond"]
    told = (
        Told()
        .iteration()
        .plan("sequence", get_wood="code", get_table="code")
        .code("get_wood", "wood")
        .trial("get_wood")
    )
    told.evaluate(0).verdict().iteration(1).plan("sequence", get_wood="code", get_table="code")
    left = list(sources)

    def answer(request: dict[str, Any]) -> str:
        return json.dumps({"source": left.pop(0), "note": "n"})

    skills = [{"name": "get_table_ready", "goal": "get a table", "done_when": "True", "measured": "5/5",
               "source": "def get_table_ready(view):\n    yield 'place_table'\n"}]  # fmt: skip
    with ChatServer(lambda request: json.loads(completion(answer(request)).body)) as server:
        llm = {"kind": "openai", "model": "m", "base_url": server.url}
        client = make_client(llm, Ledger(), {}, sleep=lambda s: None)
        there = context(told, world.sheet(task.id), task, text=lambda name: WOOD, skills=skills)
        plan = told.history.plan
        assert plan is not None
        reply = fast.write(client, there, plan.items[1], 1)
        return reply, [request["messages"][-1]["content"] for request in server.requests]


def test_a_model_may_call_other_code_and_skills_and_is_told_of_a_clash() -> None:
    clash = "NEAR = 7\n\n\ndef get_table(view):\n    view = yield from around(view)\n"
    good = "def get_table(view):\n    view = yield from get_wood(view)\n    yield from get_table_ready(view)\n"
    reply, asked = answered(clash, good)
    assert "json skills_to_call" in asked[0] and '"call": "get_table_ready(view)"' in asked[0]
    assert "```python other\n" + WOOD.splitlines()[0] in asked[0]
    assert "around is called, and it needs the NEAR of its own source" in asked[1]
    assert names(reply.source) == ["FAR", "NEAR", "count", "around", "get_wood", "get_table_ready", "get_table"]
    with pytest.raises(UselessReply, match="NEAR"):
        answered(clash, clash, clash, clash)

"""Whole sessions of a model that tries before it answers: the same rows side by side, in a replay and after a kill."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import pytest

from rlgpt.store import event_payloads, events
from tests.agents.chat_server import ChatServer
from tests.agents.tool_models import call, offers, source_of, trying, turns
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.sameness import every_row, outcome
from tests.end_to_end.test_side_by_side import LastFirst, about
from tests.patience import PATIENCE

TASK = "make_wood_pickaxe"
LOOP = {"iterations": 0, "dev_first": 4, "test_episodes": 2}
LOOKS = [("look", {"seed": 1, "step": 0}), ("look", {"seed": 2, "step": 30})]


def session_at(make: Make, server: ChatServer, parallel: int = 1, **llm: Any) -> Running:
    told = {"kind": "openai", "base_url": server.url, "model": "rlgpt-rules", "parallel": parallel, "probes": 5}
    return make(TASK, llm=told | llm, loop=LOOP, critic="model")


def looking_and_trying(request: dict[str, Any]) -> list[dict[str, Any]]:
    if not turns(request):
        return [call(name, arguments, f"c{n}", n) for n, (name, arguments) in enumerate(LOOKS)]
    return [call("try_action", {"source": source_of(request)})]


def probes(session: Running) -> list[events.Probed]:
    found = [event_payloads.read_event(row["kind"], row["payload"]) for row in session.rows("event")]
    return [event for event in found if isinstance(event, events.Probed)]


def sound(session: Running) -> None:
    """Every call was paid once and every probe run once."""
    answered = [(row["step"], row["request_hash"]) for row in session.rows("llm_call") if row["state"] == "answered"]
    assert len(answered) == len(set(answered))
    told = [(probe.step, probe.request_hash, probe.number) for probe in probes(session)]
    assert len(told) == len(set(told))


@pytest.mark.timeout(900)
def test_what_is_tried_makes_the_same_rows_side_by_side_and_in_a_replay(make: Make) -> None:
    model = trying(2, looking_and_trying)
    with ChatServer(model) as server:
        alone = session_at(make, server)
        assert alone.finish(300).result == "succeeded"
        asked = Counter(map(about, server.requests))
    told = probes(alone)
    by_step = Counter((probe.step.split("/")[0], probe.tool) for probe in told)
    assert by_step == {("write", "look"): 6, ("write", "try_action"): 3}
    tried = [probe for probe in told if probe.tool == "try_action"]
    assert all(probe.told.startswith("done in 3 of 3 episodes") and probe.env_steps for probe in tried)
    spent = alone.history().spent.env_steps
    assert spent == sum(p.env_steps for p in told) + sum(row["env_steps"] for row in alone.rows("trial"))

    with ChatServer(LastFirst(model)) as server:
        together = session_at(make, server, 8)
        together.finish(300)
        assert Counter(map(about, server.requests)) == asked
    one, other = every_row(alone.folder.path), every_row(together.folder.path)
    for table, rows in one.items():
        assert other[table] == rows, f"{table} differs"
    replayed = make(TASK, llm={"kind": f"replay:{together.folder.id}"}, loop=LOOP)  # no server is left
    assert replayed.finish(300).result == "succeeded"
    assert probes(replayed) == told
    for table, rows in outcome(together.folder.path).items():
        assert outcome(replayed.folder.path)[table] == rows, f"{table} of the replay differs"


@pytest.mark.timeout(900)
def test_a_look_plays_nothing_also_where_code_yields_no_names(make: Make) -> None:
    pytest.importorskip("mujoco")

    def looking_once(request: dict[str, Any]) -> list[dict[str, Any]]:
        return [] if turns(request) else [call("look", {"seed": 1, "step": 5}, "c0", 0)]

    with ChatServer(trying(1, looking_once)) as server:
        told = {"kind": "openai", "base_url": server.url, "model": "rlgpt-rules", "parallel": 1, "probes": 1}
        most = {"env_steps": 20_000}
        session = make("light_switch", world="kitchen", llm=told, loop=LOOP, critic="model", budget=most)
        session.finish(600)
    found = probes(session)
    assert found and all(probe.tool == "look" and probe.env_steps for probe in found)
    assert not any("cannot be looked at" in probe.told for probe in found)


IDLE = 'def {name}(view):\n    while True:\n        n = 0\n        for _ in range(3000):\n            n = n + 1\n' \
       '        view = yield "noop"\n'  # fmt: skip


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "moment", ["when a probe begins", pytest.param("when a probe has ended", marks=pytest.mark.slow)]
)
def test_a_kill_around_a_probe_pays_for_nothing_twice(make: Make, moment: str) -> None:
    def slow_first(request: dict[str, Any]) -> list[dict[str, Any]]:
        name = source_of(request).split("def ")[1].split("(")[0]
        return [call("try_action", {"source": IDLE.format(name=name)}), call("look", {"seed": 0, "step": 0}, "b", 1)]

    model = trying(1, slow_first)
    with ChatServer(model) as server:
        whole = session_at(make, server)
        whole.finish(300)
    with ChatServer(model) as server:
        session = session_at(make, server)
        deadline = time.monotonic() + 200 * PATIENCE
        while not (session.rows("llm_call")[3:] if moment == "when a probe begins" else probes(session)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        session.trainer().kill()
        history = session.finish(300)
        offered = [about(request) for request in server.requests if offers(request) and not turns(request)]
    assert history.result == "succeeded" and history.incarnation > 1
    sound(session)
    assert len(offered) == len(set(offered)), "what was answered was asked for again"
    assert probes(session) == probes(whole)
    for table, rows in outcome(whole.folder.path).items():
        assert outcome(session.folder.path)[table] == rows, f"{table} differs"


HOSTILE = {
    "def {name}(view)\n    yield 'noop'\n": "refused, rule syntax, line 1",
    "import os\ndef {name}(view):\n    os.system('ls')\n    yield 'noop'\n": "refused, rule",
    "def another(view):\n    yield 'noop'\n": "must be called collect_wood, not another",
    "def {name}(view):\n    while True:\n        pass\n    yield 'noop'\n": "",
    "def {name}(view):\n    if view.health < 99:\n        raise ValueError('\\x1b[31m no')\n    yield 'noop'\n": "",
    "def {name}(view):\n    yield 'fly'\n": "",
    "def {name}(view):\n    x = [0] * 10000000\n    while True:\n        x = x + x\n        view = yield 'noop'\n": "",
    "": "refused, rule",
}


@pytest.mark.timeout(900)
def test_sources_that_mean_harm_are_told_what_came_of_them_and_the_session_goes_on(make: Make) -> None:
    def hostile(request: dict[str, Any]) -> list[dict[str, Any]]:
        if "def collect_wood" not in source_of(request):
            return [call("look", {"seed": 0, "step": 0})]
        sources = [source.replace("{name}", "collect_wood") for source in HOSTILE]
        return [call("try_action", {"source": source}, f"c{n}", n) for n, source in enumerate(sources)]

    with ChatServer(trying(1, hostile)) as server:
        session = session_at(make, server, probes=len(HOSTILE))
        history = session.finish(300)
    assert history.result == "succeeded", history.reason
    told = [probe.told for probe in probes(session) if probe.tool == "try_action"]
    assert len(told) == len(HOSTILE)
    for text, wanted in zip(told, HOSTILE.values(), strict=True):
        assert wanted in text and "done in 3" not in text and len(text) <= 6000
    sound(session)


@pytest.mark.timeout(900)
def test_the_budget_of_a_session_ends_the_probes_and_not_the_session(make: Make) -> None:
    with ChatServer(trying(9)) as server:
        session = session_at(make, server, probes=2, probes_per_session=3)
        history = session.finish(300)
        requests = [request for request in server.requests if "fast" in json.dumps(request["messages"][0])[:200]]
    assert history.result == "succeeded", history.reason
    assert len(probes(session)) == 3 and list(history.probes.values()) == [2, 1]
    assert [bool(offers(request)) for request in requests] == [True, True, False, True, False, False]

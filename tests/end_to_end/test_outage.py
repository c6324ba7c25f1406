"""A model that is away: the session waits, says so, can be paused and stopped meanwhile, and goes on afterwards."""

from __future__ import annotations

from typing import Any

from rlgpt.agents.rules.model import respond
from rlgpt.store import commands
from rlgpt.store.inbox import send
from rlgpt.store.states import MODEL
from tests.agents.chat_server import ChatServer, server_error
from tests.end_to_end.conftest import Make, Running

SHORT = {"iterations": 0, "dev_first": 2, "test_episodes": 2}


class Away:
    """The rule-based model, while it is there."""

    def __init__(self) -> None:
        self.there = False

    def __call__(self, request: dict[str, Any]) -> Any:
        return respond(request) if self.there else server_error(503)


def session_at(make: Make, server: ChatServer, **more: Any) -> Running:
    llm = {"kind": "openai", "base_url": server.url, "model": "rlgpt-rules"}
    return make("make_wood_pickaxe", llm=llm | more, loop=SHORT)


def test_a_session_waits_for_the_model_and_takes_commands_meanwhile(make: Make) -> None:
    with ChatServer(away := Away()) as server:
        session = session_at(make, server)
        session.until(lambda h: h.waiting_for == MODEL, 200)
        assert session.history().status == "waiting"
        send(session.folder, commands.Pause())
        session.until(lambda h: h.status == "paused", 60)
        send(session.folder, commands.Resume())
        session.until(lambda h: not h.pause_requested, 60)
        away.there = True
        session.until(lambda h: h.waiting_for == MODEL or h.plans, 100)
        send(session.folder, commands.Resume())  # tries now
        history = session.finish(200)
    assert history.result in ("finished", "succeeded"), history.reason
    events = [row["payload"] for row in session.rows("event") if row["kind"] == "waiting"]
    told = [payload for payload in events if payload["for"] == MODEL]
    assert told and "answered with 503" in told[0]["why"] and told[0]["role"] == "slow"
    assert "the model is back" in [row["event"] for row in session.rows("log")]


def test_a_session_that_waits_for_the_model_stops_at_once(make: Make) -> None:
    with ChatServer(Away()) as server:
        session = session_at(make, server)
        session.until(lambda h: h.waiting_for == MODEL, 200)
        send(session.folder, commands.Stop())
        history = session.finish(60)
    assert (history.result, history.reason) == ("stopped", "stopped by the operator")

"""What a model said is kept: it is answered from again, by a replay, by a replay of that, and after a kill."""

from __future__ import annotations

import pytest

from rlgpt.store.inbox import send
from tests.agents.chat_server import ChatServer, rejects
from tests.end_to_end.conftest import Make
from tests.end_to_end.sameness import every_row


@pytest.mark.timeout(400)
def test_a_replay_and_a_replay_of_the_replay_have_the_rows_of_the_first(make: Make) -> None:
    first = make("make_wood_pickaxe")
    assert first.finish().result == "succeeded"
    expected = every_row(first.folder)
    assert {row["state"] for row in expected["llm_call"]} == {"sent", "answered"}
    last = first
    for _ in range(2):
        last = make("make_wood_pickaxe", llm={"kind": f"replay:{last.folder.id}"})
        assert last.finish().result == "succeeded", last.history().reason
        rows = every_row(last.folder)
        for table in expected:
            assert rows[table] == expected[table], f"{table} differs"


@pytest.mark.timeout(240)
def test_a_parameter_that_the_server_refused_is_not_sent_again_by_a_restarted_trainer(make: Make) -> None:
    with ChatServer(script=[rejects("temperature")]) as server:
        session = make(
            "make_wood_pickaxe", llm={"kind": "openai", "base_url": server.url, "model": "rlgpt-rules"}, review=True
        )
        session.until(lambda h: h.waiting_for and h.pending_plan, 60)
        asked = len(server.requests)
        session.trainer().kill()
        plan = session.until(lambda h: h.incarnation > 1 and h.waiting_for and h.pending_plan, 60).pending_plan
        assert plan is not None
        assert len(server.requests) == asked, "what was answered was asked again"
        send(session.folder, "approve", {}, plan.revision)
        session.until(lambda h: h.attempts, 60)
        first, *others = server.requests
    assert len(server.requests) > asked and "temperature" in first
    assert not [request for request in others if "temperature" in request]

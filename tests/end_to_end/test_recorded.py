"""What a model said is kept: it is answered from again, by a replay, by a replay of that, and after a kill."""

from __future__ import annotations

from typing import Any

import pytest

from rlgpt.agents.rules.model import respond
from rlgpt.store.commands import parse_command
from rlgpt.store.inbox import send
from tests.agents.chat_server import ChatServer, rejects
from tests.end_to_end.conftest import Make
from tests.end_to_end.sameness import every_row, outcome
from tests.shaking.halting import TRAINING


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


@pytest.mark.slow
def test_a_replay_of_a_session_that_ended_by_its_budget_in_usd_ends_there_too(make: Make) -> None:
    settings: dict[str, Any] = {"budget": {"cost": 0.4}, "loop": {"iterations": 0}}
    llm = {"kind": "openai", "model": "rlgpt-rules", "price_in": 1000.0, "price_out": 2000.0}
    counted = {"usage": {"prompt_tokens": 100, "completion_tokens": 10}}
    with ChatServer(lambda request: respond(request) | counted) as server:
        first = make("make_wood_pickaxe", llm=llm | {"base_url": server.url}, **settings)
        expected = first.finish()
    assert "budget of 0.4 USD" in expected.reason
    again = make("make_wood_pickaxe", llm={"kind": f"replay:{first.folder.id}"}, **settings)
    assert again.finish().reason == expected.reason
    assert every_row(again.folder)["llm_call"] == every_row(first.folder)["llm_call"]


def test_a_replay_has_the_skills_of_the_recorded_session_not_those_kept_since(make: Make) -> None:
    first = make("make_wood_pickaxe", skills="all")
    assert first.finish().result == "succeeded" and first.history().skills_kept
    again = make("make_wood_pickaxe", skills="all", llm={"kind": f"replay:{first.folder.id}"})
    assert again.finish().result == "succeeded", again.history().reason
    assert every_row(again.folder)["llm_call"] == every_row(first.folder)["llm_call"]


def test_a_replay_repeats_what_the_operator_did_and_where(make: Make) -> None:
    settings: dict[str, Any] = {"loop": {"iterations": 1, "target": 1.0}, "budget": {"env_steps": 60_000}}
    first = make("collect_iron", review=True, start=False, **settings).halting(TRAINING)
    plan = first.until(lambda h: h.pending_plan and h.waiting_for, 60).pending_plan
    assert plan is not None
    names = [item.name for item in plan.items]
    later = {"edits": [{"op": "set", "name": names[0], "goal": "Another goal."}], "apply": "next"}
    send(first.folder, parse_command("override", later), plan.revision)
    send(first.folder, parse_command("advise", {"agent": "slow", "text": "Keep it short."}))
    learnt = {"edits": [{"op": "set", "name": names[-1], "mode": "rl"}], "apply": "now"}
    send(first.folder, parse_command("override", learnt), plan.revision)
    send(first.folder, parse_command("approve", {}), plan.revision + 1)
    trainer, learning = first.halted(), first.history()
    send(first.folder, parse_command("pause"))
    trainer.resume()
    first.until(lambda h: h.status == "paused", 20)
    trainer.suspend()
    send(first.folder, parse_command("resume"))
    taken = {"edits": [{"op": "set", "name": names[-2], "mode": "rl"}], "apply": "now"}
    send(first.folder, parse_command("override", taken), learning.revision)
    send(first.folder, parse_command("override", taken), learning.revision)  # refused: by now there is a newer revision
    trainer.resume()
    ask = first.until(lambda h: h.pending_plan and h.waiting_for and h.iterations[-1].number == 1, 100).pending_plan
    assert ask is not None
    send(first.folder, parse_command("approve", {}), ask.revision)
    first.finish(200)
    expected = first.history()
    assert [c.state for c in expected.commands.values()].count("refused") == 1, expected.commands
    assert "superseded" in [run.state for run in expected.runs.values()]

    second = make("collect_iron", review=True, llm={"kind": f"replay:{first.folder.id}"}, **settings)
    second.finish(200)
    assert second.history().reason == expected.reason
    rows, again = outcome(first.folder), outcome(second.folder)
    for table in rows:
        assert again[table] == rows[table], f"{table} differs"
    assert second.history().commands.keys() == expected.commands.keys()
    for command, was in expected.commands.items():
        now = second.history().commands[command]
        assert (now.state, now.reason, now.author, now.payload) == (was.state, was.reason, was.author, was.payload)


@pytest.mark.slow
def test_a_replay_repeats_what_the_operator_did_to_a_training_that_was_cut_off(make: Make) -> None:
    settings: dict[str, Any] = {"loop": {"iterations": 0, "target": 1.0}, "budget": {"env_steps": 60_000}}
    first = make("make_stone_pickaxe", review=True, start=False, **settings).halting(TRAINING)
    plan = first.until(lambda h: h.pending_plan and h.waiting_for, 60).pending_plan
    assert plan is not None
    learn, code = ({"edits": [{"op": "executor", "value": v}], "apply": "now"} for v in ("policy", "sequence"))
    send(first.folder, parse_command("override", learn), plan.revision)
    send(first.folder, parse_command("approve", {}), plan.revision + 1)
    trainer, learning = first.halted(), first.history()
    send(first.folder, parse_command("override", code), learning.revision)  # what the next trainer finds
    trainer.kill()
    expected = first.finish(200)
    (run,) = expected.runs.values()
    assert expected.incarnation == 2 and (run.state, run.updates) == ("superseded", learning.runs[1].updates)

    second = make("make_stone_pickaxe", review=True, llm={"kind": f"replay:{first.folder.id}"}, **settings)
    again = second.finish(200)
    assert (again.reason, again.runs[1].updates) == (expected.reason, run.updates)
    rows, repeated = outcome(first.folder), outcome(second.folder)
    for table in rows:
        assert repeated[table] == rows[table], f"{table} differs"


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
        send(session.folder, parse_command("approve", {}), plan.revision)
        session.until(lambda h: h.attempts, 60)
        first, *others = server.requests
    assert len(server.requests) > asked and "temperature" in first
    assert not [request for request in others if "temperature" in request]

"""The operator's commands against a real worker: overrides in the middle of PPO, pins, pause, stop, review."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rlgpt.store.history import History
from rlgpt.store.inbox import send
from rlgpt.store.lease import Lease
from tests.end_to_end.conftest import Make, Running

LONG = {"loop": {"iterations": 2, "target": 1.0, "dev_first": 2}, "budget": {"env_steps": 200_000}}


def training(history: History) -> bool:
    return any(run.state == "running" and run.updates >= 1 for run in history.runs.values())


def state(history: History, command: str) -> str:
    return history.commands[command].state if command in history.commands else "queued"


def override(session: Running, edits: list[dict[str, Any]], revision: int | None, apply: str = "now") -> str:
    return send(session.folder, "override", {"edits": edits, "apply": apply}, revision)


@pytest.mark.timeout(300)
def test_a_toggle_during_ppo_is_in_force_within_five_seconds(make: Make) -> None:
    session = make("collect_iron", **LONG)
    before = session.until(training, 200)
    plan = before.plan
    assert plan is not None
    run = max(before.runs)
    name = next(item.name for item in plan.items if item.mode == "code")
    sent = time.time()
    command = override(session, [{"op": "set", "name": name, "mode": "rl"}], plan.revision)
    after = session.until(lambda h: h.revision == plan.revision + 1, 30)
    in_force = next(
        e["at"]
        for e in session.rows("event")
        if e["kind"] == "plan_in_force" and e["payload"]["revision"] == plan.revision + 1
    )
    assert in_force - sent < 5.0
    assert state(after, command) == "applied"
    ended = session.until(lambda h: h.runs[run].state != "running", 30)
    assert ended.runs[run].state == "superseded"
    again = session.until(lambda h: max(h.runs) > run, 60)
    slots = [slot["name"] for slot in again.runs[max(again.runs)].slots]
    assert name in [slot["name"] for slot in again.runs[run].slots] and name not in slots
    stale = override(session, [{"op": "set", "name": name, "mode": "code"}], plan.revision)
    refused = session.until(lambda h: state(h, stale) == "refused", 30)
    assert f"by now it is revision {plan.revision + 1}" in refused.commands[stale].reason


@pytest.mark.timeout(200)
def test_pause_costs_no_active_time_and_stop_ends_cleanly(make: Make) -> None:
    session = make("collect_iron", **LONG)
    session.until(training, 150)
    send(session.folder, "pause", {})
    paused = session.until(lambda h: h.status == "paused", 20)
    time.sleep(1.5)
    assert session.history().seq == paused.seq, "rows appear while it is paused"
    send(session.folder, "resume", {})
    running = session.until(lambda h: h.status == "running" and h.seq > paused.seq + 1, 20)
    assert running.active - paused.active < 1.4
    send(session.folder, "stop", {"now": False})
    assert session.supervisor is not None
    session.supervisor.wait(60)
    history = session.history()
    assert (history.status, history.result) == ("ended", "stopped")
    assert not Lease.held(session.folder.path)
    assert not session.processes()


@pytest.mark.timeout(200)
def test_in_review_mode_no_plan_is_in_force_before_it_is_approved(make: Make) -> None:
    session = make("make_wood_pickaxe", review=True)
    waiting = session.until(lambda h: h.status == "waiting", 60)
    assert waiting.revision == 0 and waiting.pending_plan is not None
    assert not waiting.attempts
    wrong = send(session.folder, "approve", {}, 7)
    session.until(lambda h: state(h, wrong) == "refused", 20)
    name = waiting.pending_plan.items[0].name
    edited = override(session, [{"op": "pin", "name": name}], waiting.pending_plan.revision)
    history = session.until(lambda h: state(h, edited) == "applied", 20)
    assert history.pending_plan is not None and history.pending_plan.items[0].pinned
    send(session.folder, "approve", {}, history.pending_plan.revision)
    ended = session.finish()
    assert ended.result == "succeeded"
    assert all(plan.items[0].pinned for plan in ended.plans.values() if plan.revision > 1)

"""The operator's commands against a real worker: overrides in the middle of PPO, pins, pause, stop, review."""

from __future__ import annotations

import json
import signal
import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgpt.agents.enforce import FIXED
from rlgpt.agents.rules import question
from rlgpt.agents.rules.model import respond
from rlgpt.store.commands import parse_command
from rlgpt.store.errors import StoreError
from rlgpt.store.history import History
from rlgpt.store.inbox import send
from rlgpt.store.lease import Lease
from rlgpt.store.reader import Reader
from rlgpt.training.ppo.checkpoints import unpack
from tests.agents.chat_server import ChatServer, silence
from tests.end_to_end.conftest import Make, Running
from tests.patience import PATIENCE

LONG = {"loop": {"iterations": 2, "target": 1.0, "dev_first": 10}, "budget": {"env_steps": 200_000}}


def training(history: History) -> bool:
    return any(run.state == "running" and run.updates >= 1 for run in history.runs.values())


def state(history: History, command: str) -> str:
    return history.commands[command].state if command in history.commands else "queued"


def override(session: Running, edits: list[dict[str, Any]], revision: int | None, apply: str = "now") -> str:
    return send(session.folder, parse_command("override", {"edits": edits, "apply": apply}), revision)


def masks(session: Running, run: int) -> NDArray[np.bool_]:
    """(states, slots): which coded actions could be chosen in the last rollout of a run."""
    for _ in range(20):  # while PPO goes on, a rollout's checkpoint is soon replaced by the next
        history = session.history()
        kept = history.runs[run].checkpoint
        assert kept is not None
        try:
            with Reader(session.folder) as reader:
                rows = unpack(reader.artifact(kept.artifact)).part("recent")["masks"]
        except StoreError:
            continue
        return rows[:, len(history.session["task_info"]["primitives"]) :]
    raise AssertionError("no checkpoint stayed long enough to be read")


def test_a_toggle_during_ppo_ends_the_run_and_the_next_one_is_without_the_action(make: Make) -> None:
    session = make("collect_iron", **LONG)
    before = session.until(training, 200)
    plan = before.plan
    assert plan is not None
    run = max(before.runs)
    name = next(item.name for item in plan.items if item.mode == "code")
    command = override(session, [{"op": "set", "name": name, "mode": "rl"}], plan.revision)
    after = session.until(lambda h: h.revision == plan.revision + 1, 30)
    assert state(after, command) == "applied"
    ended = session.until(lambda h: h.runs[run].state != "running", 30)
    assert ended.runs[run].state == "superseded"
    again = session.until(lambda h: max(h.runs) > run, 60)
    (slot,) = [slot["slot"] for slot in again.runs[run].slots if slot["name"] == name]
    assert name not in [slot["name"] for slot in again.runs[max(again.runs)].slots]
    updated = session.until(lambda h: h.runs[max(h.runs)].updates >= 1 and h.runs[max(h.runs)].checkpoint, 60)
    assert masks(session, run)[:, slot].any(), "it was never offered, so nothing could be taken away"
    assert not masks(session, max(updated.runs))[:, slot].any()
    stale = override(session, [{"op": "set", "name": name, "mode": "code"}], plan.revision)
    refused = session.until(lambda h: state(h, stale) == "refused", 30)
    assert f"by now it is revision {plan.revision + 1}" in refused.commands[stale].reason


def test_pause_costs_no_active_time_and_stop_ends_cleanly(make: Make) -> None:
    session = make("collect_iron", **LONG)
    session.until(training, 150)
    send(session.folder, parse_command("pause", {}))
    paused = session.until(lambda h: h.status == "paused", 20)
    time.sleep(1.5)
    assert session.history().seq == paused.seq, "rows appear while it is paused"
    send(session.folder, parse_command("resume", {}))
    session.until(lambda h: h.status == "running" and h.seq > paused.seq + 1, 20)
    asked, resumed = (
        next(e for e in session.rows("event") if e["kind"] == kind) for kind in ("pause_requested", "resume_requested")
    )
    assert resumed["active"] - asked["active"] < resumed["at"] - asked["at"] - 1.0
    send(session.folder, parse_command("stop", {"now": False}))
    assert session.supervisor is not None
    session.supervisor.wait(300)
    history = session.history()
    assert (history.status, history.result) == ("ended", "stopped")
    assert not Lease.held(session.folder.path)
    assert not session.processes()


def test_a_signal_to_the_supervisor_is_a_clean_stop_and_the_session_goes_on_later(make: Make) -> None:
    session = make("collect_iron", **LONG)
    session.until(training, 150)
    assert session.supervisor is not None
    session.supervisor.send_signal(signal.SIGTERM)
    history = session.finish(60)
    assert session.supervisor.returncode == 0
    assert (history.status, history.result) == ("ended", "stopped") and not session.processes()
    assert history.reason == "stopped by a signal"
    updates = history.runs[max(history.runs)].updates
    session.start()
    while session.history().incarnation == history.incarnation:
        time.sleep(0.05)
    session.until(lambda h: h.runs[max(h.runs)].updates > updates, 60)


def test_a_stop_does_not_wait_for_a_model_that_says_nothing(make: Make) -> None:
    with ChatServer(script=[silence(100)]) as server:
        llm = {"kind": "openai", "base_url": server.url, "model": "rlgpt-rules"}
        session = make("make_wood_pickaxe", llm=llm)
        session.until(lambda h: h.spent.calls, 60)
        send(session.folder, parse_command("stop", {"now": False}))
        history = session.finish(10)
    assert (history.status, history.result) == ("ended", "stopped") and not session.processes()


def test_a_signal_before_the_trainer_can_hear_it_stops_the_session_too(make: Make) -> None:
    session = make("collect_iron", **LONG)
    session.trainer()
    assert session.supervisor is not None
    session.supervisor.send_signal(signal.SIGHUP)
    history = session.finish(30)
    assert (history.status, history.result) == ("ended", "stopped")
    assert not session.processes()


def test_in_review_mode_no_plan_is_in_force_before_it_is_approved(make: Make) -> None:
    session = make("make_wood_pickaxe", review=True)
    waiting = session.until(lambda h: h.status == "waiting", 60)
    assert waiting.revision == 0 and waiting.pending_plan is not None
    assert not waiting.attempts
    wrong = send(session.folder, parse_command("approve", {}), 7)
    session.until(lambda h: state(h, wrong) == "refused", 20)
    name = waiting.pending_plan.items[0].name
    edited = override(session, [{"op": "pin", "name": name}], waiting.pending_plan.revision)
    history = session.until(lambda h: state(h, edited) == "applied", 20)
    assert history.pending_plan is not None and history.pending_plan.items[0].pinned
    send(session.folder, parse_command("approve", {}), history.pending_plan.revision)
    ended = session.finish()
    assert ended.result == "succeeded"
    assert all(plan.items[0].pinned for plan in ended.plans.values() if plan.revision > 1)


class Contrary:
    """The rule-based model, but for its plans: two sub-actions only, of which the second is never left in peace."""

    PINNED = "place_table"

    def __init__(self) -> None:
        self.pinned = threading.Event()
        self.told: dict[int, Any] = {}
        """The pins that the last question for each iteration's plan told."""

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = respond(request)
        asked = question.read(request)
        if asked.ask not in ("plan", "refine"):
            return answer
        message = answer["choices"][0]["message"]
        plan = json.loads(message["content"])
        plan["executor"], plan["sub_actions"] = "sequence", plan["sub_actions"][:2]
        wood, table = plan["sub_actions"]
        assert table["name"] == self.PINNED
        number = asked["request"].get("iteration", 0)
        wood["goal"] += f" Again, for the {number}. time."  # else the session would end: nothing changes
        if number:
            assert self.pinned.wait(100 * PATIENCE)
            self.told[number] = asked.get("pins")
        if number == 1:
            table["mode"] = "rl"
        elif number == 2:
            del plan["sub_actions"][1]
        elif number == 3:
            table |= {"goal": "Do something else.", "done_when": "view.health > 100", "max_steps": 1}
        message["content"] = json.dumps(plan)
        return answer


def test_a_pin_survives_three_iterations_in_which_the_model_tries_to_change_it(make: Make) -> None:
    model = Contrary()
    with ChatServer(model) as server:
        session = make(
            "collect_diamond",
            llm={"kind": "openai", "base_url": server.url, "model": "rlgpt-rules"},
            loop={"iterations": 3, "dev_first": 2, "test_episodes": 1, "inner": 1, "depth": 0},
        )
        first = session.until(lambda h: h.plan is not None, 60).plan
        assert first is not None
        pin = override(session, [{"op": "pin", "name": model.PINNED}], first.revision)
        history = session.until(lambda h: state(h, pin) in ("applied", "refused"), 60)
        assert state(history, pin) == "applied", history.commands[pin].reason
        model.pinned.set()
        history = session.finish()
    assert (history.result, len(history.iterations)) == ("finished", 4), history.reason
    wanted = {field: getattr(first.item(model.PINNED), field) for field in FIXED}
    pins = [{"name": model.PINNED, **wanted}]
    assert model.told == {1: pins, 2: pins, 3: pins}, "the model was not told the pin word for word"
    later = [plan for plan in history.plans.values() if plan.author == "slow" and plan.iteration > 0]
    assert [plan.iteration for plan in later] == [1, 2, 3]
    for plan in later:
        item = plan.item(model.PINNED)
        assert item is not None and item.pinned
        assert {field: getattr(item, field) for field in FIXED} == wanted
    changed = {"goal": "Do something else.", "done_when": "view.health > 100", "max_steps": 1}
    assert [plan.attempted[model.PINNED] for plan in later] == [{"mode": "rl"}, {"removed": True}, changed]

"""Several sessions of one store: a machine trains a few at a time, and a reboot loses none."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rlgpt.store.commands import parse_command
from rlgpt.store.inbox import send
from rlgpt.store.lease import training_slot
from rlgpt.store.states import SLOT
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.typed import rlgpt

ONE = {"limits": {"host_slots": 1}}


@contextmanager
def only_slot_taken(by: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As another session would that trains."""
    monkeypatch.setenv("RLGPT_HOME", by.environment["RLGPT_HOME"])
    with training_slot(by.folder.path, lambda: None):
        yield


def test_a_queued_session_starts_when_a_slot_is_free_and_all_that_died_are_resumed_at_once(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = make("collect_iron", review=True, **ONE), make("make_wood_pickaxe", start=False, **ONE)
    first.until(lambda h: h.status == "waiting" and h.pending_plan, 60)
    home = first.folder.path.parents[1]
    with only_slot_taken(first, monkeypatch):
        second.start().until(lambda h: h.waiting_for == SLOT, 30)
        assert not second.history().plans
        for running in (first, second):  # as a reboot would
            assert running.supervisor is not None
            os.killpg(running.supervisor.pid, signal.SIGKILL)
            running.supervisor.wait(100)
        said = rlgpt(home, "resume", "--all")
        assert said.code == 0 and first.folder.id in said.out and second.folder.id in said.out
    first.until(lambda h: h.incarnation > 1 and "approval" in h.waiting_for, 90)
    assert rlgpt(home, "stop", first.folder.id).code == 0
    assert rlgpt(home, "wait", second.folder.id).code == 0
    history = second.history()
    assert history.result == "succeeded"
    kinds = [row["kind"] for row in second.rows("event")]
    assert kinds.count("started") == 1 and "resumed" not in kinds, "it had never begun before"
    assert first.history().result == "stopped"


def test_a_session_that_waits_for_a_slot_can_be_stopped(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no worker that would decide a command; the next one must not find what was asked of this one."""
    session = make("make_wood_pickaxe", start=False, **ONE)
    with only_slot_taken(session, monkeypatch):
        session.start().until(lambda h: h.waiting_for == SLOT, 30)
        queued = send(session.folder, parse_command("pause", {}))
        home = session.folder.path.parents[1]
        assert rlgpt(home, "stop", session.folder.id).code == 0
        history = session.history()
        assert (history.result, history.commands[queued].state) == ("stopped", "expired")

        session.start()
        assert session.supervisor is not None
        while [row["kind"] for row in session.rows("event")].count("waiting") < 2:
            assert session.supervisor.poll() is None
            time.sleep(0.1)
        send(session.folder, parse_command("stop", {}))  # as the console does
        assert session.supervisor.wait(30) == 0
        assert (session.history().result, session.history().reason) == ("stopped", "stopped by the operator")

        session.start()
        while [row["kind"] for row in session.rows("event")].count("waiting") < 3:
            assert session.supervisor.poll() is None
            time.sleep(0.1)
        session.supervisor.terminate()
        assert session.supervisor.wait(30) == 0
        history = session.history()
        assert (history.result, history.reason) == ("stopped", "stopped by a signal")


def test_a_session_that_waits_for_a_person_lets_others_train(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = make("make_wood_pickaxe", review=True, **ONE), make("collect_wood", start=False, **ONE)
    plan = first.until(lambda h: h.status == "waiting" and h.pending_plan, 60).pending_plan
    assert plan is not None
    assert second.start().finish().result == "succeeded"
    with only_slot_taken(first, monkeypatch):
        send(first.folder, parse_command("approve", {}), plan.revision)
        first.until(lambda h: h.waiting_for == SLOT, 30)
        assert not first.rows("trial"), "it trains without a slot"
        send(first.folder, parse_command("pause", {}))
        first.until(lambda h: h.waiting_for == "paused", 30)
        send(first.folder, parse_command("resume", {}))
        first.until(lambda h: h.waiting_for == SLOT, 30)
    assert first.finish().result == "succeeded"


def test_a_paused_session_lets_others_train(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    session = make("make_wood_pickaxe", **ONE)
    send(session.folder, parse_command("pause", {}))
    session.until(lambda h: h.waiting_for == "paused", 60)
    with only_slot_taken(session, monkeypatch):
        send(session.folder, parse_command("resume", {}))
        session.until(lambda h: h.waiting_for == SLOT, 30)
        send(session.folder, parse_command("pause", {}))
        session.until(lambda h: h.waiting_for == "paused", 30)
        send(session.folder, parse_command("stop", {}))
        history = session.finish(60)
    assert (history.result, history.reason) == ("stopped", "stopped by the operator")
    assert session.start().finish().result == "succeeded", "who resumes a stopped session need not also end its pause"


def test_a_trainer_that_is_killed_frees_its_slot_and_waits_for_one_again(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = make("make_wood_pickaxe", review=True, **ONE)
    session.until(lambda h: h.status == "waiting" and h.pending_plan, 60)
    with only_slot_taken(session, monkeypatch):
        session.trainer().kill()
        session.until(lambda h: h.waiting_for == SLOT, 30)
    session.until(lambda h: "approval" in h.waiting_for, 60)
    with only_slot_taken(session, monkeypatch):
        session.trainer().kill()
        assert session.supervisor is not None
        session.supervisor.terminate()
        history = session.finish(30)
    assert (history.result, history.reason) == ("stopped", "stopped by a signal"), "it waited for a slot first"

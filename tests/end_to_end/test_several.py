"""Several sessions of one store: a machine trains a few at a time, and a reboot loses none."""

from __future__ import annotations

import os
import signal
import time

from rlgpt.store.commands import parse_command
from rlgpt.store.inbox import send
from rlgpt.store.states import SLOT
from tests.end_to_end.conftest import Make
from tests.end_to_end.typed import rlgpt

ONE = {"limits": {"host_slots": 1}}


def test_a_queued_session_starts_when_a_slot_is_free_and_all_that_died_are_resumed_at_once(make: Make) -> None:
    first, second = make("collect_iron", review=True, **ONE), make("make_wood_pickaxe", start=False, **ONE)
    first.until(lambda h: h.status == "waiting" and h.pending_plan, 60)
    second.start().until(lambda h: h.waiting_for == SLOT, 30)
    assert not second.history().plans
    for running in (first, second):  # as a reboot would
        assert running.supervisor is not None
        os.killpg(running.supervisor.pid, signal.SIGKILL)
        running.supervisor.wait(100)
    home = first.folder.path.parents[1]
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


def test_a_session_that_waits_for_a_slot_can_be_stopped(make: Make) -> None:
    """It has no worker that would decide a command; the next one must not find what was asked of this one."""
    first, second = make("collect_iron", review=True, **ONE), make("make_wood_pickaxe", start=False, **ONE)
    first.until(lambda h: h.status == "waiting" and h.pending_plan, 60)
    second.start().until(lambda h: h.waiting_for == SLOT, 30)
    queued = send(second.folder, parse_command("pause", {}))
    home = first.folder.path.parents[1]
    assert rlgpt(home, "stop", second.folder.id).code == 0
    history = second.history()
    assert (history.result, history.commands[queued].state) == ("stopped", "expired")

    second.start()
    assert second.supervisor is not None
    while [row["kind"] for row in second.rows("event")].count("waiting") < 2:
        assert second.supervisor.poll() is None
        time.sleep(0.1)
    send(second.folder, parse_command("stop", {}))  # as the console does
    assert second.supervisor.wait(30) == 0
    assert (second.history().result, second.history().reason) == ("stopped", "stopped by the operator")

    second.start()
    while [row["kind"] for row in second.rows("event")].count("waiting") < 3:
        assert second.supervisor.poll() is None
        time.sleep(0.1)
    second.supervisor.terminate()
    assert second.supervisor.wait(30) == 0
    history = second.history()
    assert (history.result, history.reason) == ("stopped", "stopped by a signal")
    assert first.history().status == "waiting" and rlgpt(home, "stop", first.folder.id).code == 0

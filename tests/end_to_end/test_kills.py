"""Kill -9 anywhere: the finished session is the unbroken one, nothing is paid twice, nothing is left behind."""

from __future__ import annotations

import os
import random
import signal
import time

import psutil
import pytest

from rlgpt.store.commands import parse_command
from rlgpt.store.inbox import send
from rlgpt.store.lease import Lease
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.sameness import outcome
from tests.end_to_end.story import STORY, TASK, same_as_unbroken, unbroken
from tests.patience import PATIENCE
from tests.shaking.halting import TRAINING

PHASES = ("Plan", "Code", "Trial", "JudgeItem", "Evaluate", "JudgeIteration", "Configure", "Train")
QUICK = ("Trial", "Evaluate")
"""Phases that the ordinary tests kill in, beside training; the slow ones do in all, and at 20 random moments."""


def kill_trainer(session: Running) -> None:
    try:
        session.trainer().kill()
    except (psutil.NoSuchProcess, AssertionError):
        assert session.history().status == "ended", "the worker is gone and the session is not over"


def redone(session: Running) -> list[int]:
    """Env steps of PPO that each resume had to do again and that a row had told: none, if a kill costs less than a
    rollout."""
    lost = [low_high for run in session.history().runs.values() for low_high in run.hidden]
    rows = session.rows("metric")
    return [row["env_steps"] for row in rows if any(low < row["seq"] < high for low, high in lost)]


def test_a_kill_in_training_changes_nothing_but_the_time(make: Make) -> None:
    unbroken(make)
    session = make(TASK, start=False, **STORY).halting(TRAINING)
    session.halted().kill()
    session.until(lambda h: h.incarnation > 1, 60)
    session.finish(300)
    same_as_unbroken(make, session)
    assert any(run.hidden for run in session.history().runs.values()), "the kill was not in training"
    assert not redone(session), "an update was made twice"


@pytest.mark.slow
def test_a_stop_in_training_changes_nothing_but_the_time(make: Make) -> None:
    """Whoever stops a session and resumes it has the session of somebody who did not."""
    expected = unbroken(make)["rows"]
    session = make(TASK, start=False, **STORY).halting(TRAINING)
    trainer = session.halted()
    send(session.folder, parse_command("stop", {"now": False}))
    trainer.resume()
    history = session.finish(60)
    assert history.result == "stopped" and history.runs, history.reason
    assert [row["kind"] for row in session.rows("checkpoint") if row["run"] == max(history.runs)] == ["rollout"]
    assert session.start().finish(300).result in ("finished", "succeeded")
    assert outcome(session.folder) == expected
    assert not redone(session)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("phase", [pytest.param(p, marks=() if p in QUICK else pytest.mark.slow) for p in PHASES])
def test_a_kill_at_a_phase_boundary_changes_nothing_but_the_time(make: Make, phase: str) -> None:
    unbroken(make)
    session = make(TASK, start=False, **STORY).halting(phase)
    session.halted(300).kill()
    session.finish(300)
    same_as_unbroken(make, session)
    assert not redone(session)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("moment", range(20))
def test_a_kill_at_a_random_moment_changes_nothing_but_the_time(make: Make, moment: int) -> None:
    unbroken(make)
    session = make(TASK, **STORY)
    time.sleep(random.Random(moment).uniform(0.5, 25.0))
    kill_trainer(session)
    session.finish(300)
    same_as_unbroken(make, session)
    assert not redone(session)


def test_without_supervisor_and_trainer_nothing_of_the_session_lives_on(make: Make) -> None:
    session = make(TASK, start=False, **STORY).halting(TRAINING)
    trainer = session.halted()
    assert session.supervisor is not None
    assert trainer.children(), "the action host should be alive"
    for pid in (session.supervisor.pid, trainer.pid):
        os.kill(pid, signal.SIGKILL)
    session.supervisor.wait(100)
    deadline = time.monotonic() + 20 * PATIENCE
    while Lease.held(session.folder.path):
        assert time.monotonic() < deadline, "the lock is still held"
        time.sleep(0.02)
    while left := session.processes():
        assert time.monotonic() < deadline, f"still alive: {left}"
        time.sleep(0.05)
    assert session.history().status == "running", "nobody could write the end"


def test_a_second_worker_is_turned_away(make: Make) -> None:
    session = make("make_wood_pickaxe", start=False).halting("Trial")
    trainer = session.halted()
    second = Running(session.folder, session.environment).start()
    assert second.supervisor is not None
    assert second.supervisor.wait(300) == 4
    trainer.resume()
    assert session.finish().result == "succeeded"

"""Kill -9 anywhere: the finished session is the unbroken one, nothing is paid twice, nothing is left behind."""

from __future__ import annotations

import os
import random
import signal
import time

import psutil
import pytest

from rlgpt.store.history import History
from rlgpt.store.lease import Lease
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.sameness import outcome

STORY = {"loop": {"iterations": 1, "target": 1.0, "dev_first": 3}, "budget": {"env_steps": 16_000}}
PHASES = ("Plan", "Code", "Trial", "Evaluate", "JudgeIteration", "Configure", "Train")


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The story without a kill: computed once."""
    return {}


def told(make: Make, unbroken: dict[str, object]) -> dict[str, object]:
    if not unbroken:
        session = make("collect_iron", **STORY)
        assert session.finish(300).runs, "the story must train"
        unbroken["rows"] = outcome(session.folder)
        unbroken["env_steps"] = session.history().spent.env_steps
    return unbroken


def kill_trainer(session: Running) -> None:
    try:
        session.trainer().kill()
    except (psutil.NoSuchProcess, AssertionError):
        assert session.history().status == "ended", "the trainer is gone and the session is not over"


def same_as_unbroken(make: Make, session: Running, unbroken: dict[str, object]) -> None:
    history = session.finish(300)
    assert history.result == "finished", history.reason
    expected = told(make, unbroken)["rows"]
    got = outcome(session.folder)
    assert isinstance(expected, dict)
    for table in expected:
        assert got[table] == expected[table], f"{table} differs"


@pytest.mark.timeout(600)
def test_a_kill_in_training_changes_nothing_but_the_time(make: Make, unbroken: dict[str, object]) -> None:
    told(make, unbroken)
    session = make("collect_iron", **STORY)
    session.until(lambda h: any(run.updates >= 1 for run in h.runs.values()), 200)
    session.trainer().kill()
    session.until(lambda h: h.incarnation > 1, 60)
    same_as_unbroken(make, session, unbroken)
    lost = [low for run in session.history().runs.values() for low in run.hidden]
    updates = [row["seq"] for row in session.rows("metric")]
    assert lost and not any(low < seq < high for low, high in lost for seq in updates), "an update was made twice"


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("phase", PHASES)
def test_a_kill_at_a_phase_boundary_changes_nothing_but_the_time(
    make: Make, unbroken: dict[str, object], phase: str
) -> None:
    told(make, unbroken)
    session = make("collect_iron", **STORY)
    session.until(lambda h: h.phase.get("name") == phase, 300)
    kill_trainer(session)
    same_as_unbroken(make, session, unbroken)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("moment", range(20))
def test_a_kill_at_a_random_moment_changes_nothing_but_the_time(
    make: Make, unbroken: dict[str, object], moment: int
) -> None:
    told(make, unbroken)
    session = make("collect_iron", **STORY)
    time.sleep(random.Random(moment).uniform(0.5, 25.0))
    kill_trainer(session)
    same_as_unbroken(make, session, unbroken)


@pytest.mark.timeout(200)
def test_without_supervisor_and_trainer_nothing_of_the_session_lives_on(make: Make) -> None:
    session = make("collect_iron", **STORY)

    def training(history: History) -> bool:
        return any(run.updates >= 1 for run in history.runs.values())

    session.until(training, 150)
    assert session.supervisor is not None
    trainer = session.trainer()
    assert trainer.children(), "the action host should be alive"
    for pid in (session.supervisor.pid, trainer.pid):
        os.kill(pid, signal.SIGKILL)
    session.supervisor.wait(10)
    killed = time.monotonic()
    while Lease.held(session.folder.path):
        assert time.monotonic() - killed < 1.0, "the lock is still held"
        time.sleep(0.02)
    while left := session.processes():
        assert time.monotonic() - killed < 3.0, f"still alive: {left}"
        time.sleep(0.05)
    assert session.history().status == "running", "nobody could write the end"


@pytest.mark.timeout(120)
def test_a_second_worker_is_turned_away(make: Make) -> None:
    session = make("make_wood_pickaxe")
    session.until(lambda h: h.status == "running", 60)
    second = Running(session.folder, session.environment).start()
    assert second.supervisor is not None
    assert second.supervisor.wait(60) == 4
    assert session.finish().result == "succeeded"

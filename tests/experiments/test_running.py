"""An experiment runs every session once, goes on after anything, and never starts one that is being run."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlgpt.store import creation
from rlgpt.store.experiments import Manifest
from rlgpt.store.folder import SessionFolder, new_id, root, sessions
from rlgpt.store.lease import Lease
from rlgpt.store.placing import place, placed_on
from rlgpt.store.reader import Reader
from rlgpt.store.settings import settle
from rlgpt.training.experiments import running
from rlgpt.training.experiments.declared import Undeclared, declare
from rlgpt.training.experiments.requests import failures_of
from rlgpt.training.experiments.running import Runner, folder_of, known
from tests.patience import PATIENCE

BASE = {"budget": {"env_steps": 1000}}
INFO = {"id": "wake_up", "prompt": "Sleep.", "horizon": 500, "milestones": ["wake_up"]}


class Stage:
    """Sessions end as told: by arm, else `finished`."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.started: list[str] = []
        self.ends: dict[str, str] = {}
        self.seconds = 0.0
        self.children: list[subprocess.Popen[bytes]] = []

    def make(self, settings: Mapping[str, Any], session_id: str = "") -> str:
        made = creation.create(settle(settings), task_info=INFO, world_version="1", versions={}, session_id=session_id)
        return made.id

    def launch(self, session: SessionFolder) -> subprocess.Popen[bytes]:
        self.started.append(session.id)
        arm = known(next(p for p in self.manifest.sessions if p.id == session.id)).settings.method.label
        words = [str(Path(__file__).with_name("ending.py")), session.path, self.ends.get(arm, "finished")]
        self.children.append(subprocess.Popen([sys.executable, *map(str, words), str(self.seconds)]))
        return self.children[-1]

    def run(self, seeds: int = 1, jobs: int = 2) -> bool:
        self.manifest: Manifest = declare("critic", "c", BASE, ["wake_up"], list(range(seeds)))
        """Whether all of them have a result."""
        self.every = Runner(self.manifest, jobs, self.make, self.told.append, self.launch).run()
        return all(k.status in ("succeeded", "finished") for k in self.every)

    def kinds(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.told if one["kind"] == kind]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "POLL", 0.02)
    made = Stage()
    yield made
    for child in made.children:
        child.kill()
        child.wait()


def test_every_session_runs_once_and_a_second_call_starts_nothing(stage: Stage) -> None:
    assert stage.run(seeds=2)
    assert len(stage.started) == 4 == len(set(stage.started))
    assert [one["status"] for one in stage.kinds("ended")] == ["finished"] * 4
    assert stage.run(seeds=2) and len(stage.started) == 4


def test_a_session_whose_worker_died_is_left_until_the_next_call(stage: Stage) -> None:
    stage.ends = {"no critic": "dies"}
    assert not stage.run()
    assert len(stage.started) == 2
    (left,) = [one for one in stage.kinds("ended") if one["status"] == "left"]
    assert left["reason"] == f"its worker ended without a word: rlgpt logs {left['session']}"
    stage.ends = {}
    assert stage.run()
    assert stage.started[2:] == [stage.manifest.sessions[1].id] == [stage.started[1]]


def test_a_failed_session_is_not_tried_again_and_is_told(stage: Stage) -> None:
    stage.ends = {"rlgpt": "failed"}
    assert not stage.run() and not stage.run()
    assert len(stage.started) == 2
    assert {one["status"] for one in stage.kinds("ended")} == {"failed", "finished"}
    failed = stage.manifest.sessions[0]
    assert failures_of(stage.every) == [f"{failed.id} (wake_up, rlgpt, seed 0)"]
    shutil.rmtree(folder_of(failed).path)  # as it is advised to do
    stage.ends = {}
    assert stage.run() and not failures_of(stage.every)


def test_a_session_that_was_stopped_is_gone_on_with_by_the_next_call(stage: Stage) -> None:
    """By hand, or because the experiment was interrupted: both end the session as stopped, and it can be resumed."""
    stage.ends = {"rlgpt": "stopped"}
    assert not stage.run()
    stopped = stage.manifest.sessions[0]
    assert not failures_of(stage.every)
    assert not stage.run() and stage.started[2:] == [stopped.id]


def test_an_experiment_does_not_go_on_under_other_settings_than_it_began_with(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What flags leave open comes from variables and files, which another shell or folder does not have."""
    stage.ends = {"no critic": "dies"}
    monkeypatch.setenv("RLGPT_LOOP__CANDIDATES", "3")
    assert not stage.run()
    monkeypatch.delenv("RLGPT_LOOP__CANDIDATES")
    with pytest.raises(Undeclared, match=r"was made with another loop\.candidates than"):
        stage.run()
    assert len(stage.started) == 2
    monkeypatch.setenv("RLGPT_LOOP__CANDIDATES", "3")
    stage.ends = {}
    assert stage.run()
    monkeypatch.delenv("RLGPT_LOOP__CANDIDATES")
    assert stage.run()  # nothing is left to run: its bundles can be written anywhere


def test_a_session_that_was_deleted_is_made_again_and_the_others_are_not(stage: Stage) -> None:
    assert stage.run()
    kept, deleted = stage.manifest.sessions
    shutil.rmtree(folder_of(deleted).path)
    assert stage.run()
    again = stage.manifest.sessions
    assert again[0] == kept and again[1].id != deleted.id
    assert stage.started == [kept.id, deleted.id, again[1].id]


@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_what_is_stopped_while_it_makes_a_session_makes_no_second_one(
    stage: Stage, made: bool, error: type[BaseException]
) -> None:
    def make(settings: Mapping[str, Any], session_id: str) -> None:
        if made:
            stage.make(settings, session_id)
        raise error

    manifest = declare("critic", "c", BASE, ["wake_up"], [0])
    with pytest.raises(error):
        Runner(manifest, 1, make, stage.told.append, stage.launch).run()
    assert [bool(planned.id) for planned in manifest.sessions] == [made, False] and not stage.started
    assert stage.run()
    assert sorted(stage.started) == sorted(planned.id for planned in stage.manifest.sessions)
    assert len(sessions()) == 2


def test_what_is_killed_while_it_makes_a_session_makes_it_the_next_time(stage: Stage) -> None:
    manifest = declare("critic", "c", BASE, ["wake_up"], [0])
    manifest.made(manifest.sessions[0], new_id())  # and no more
    assert stage.run() and len(sessions()) == 2


def test_a_session_that_somebody_else_runs_is_waited_for(stage: Stage) -> None:
    stage.manifest = declare("critic", "c", BASE, ["wake_up"], [0])
    first = stage.manifest.made(stage.manifest.sessions[0], stage.make(stage.manifest.sessions[0].settings))
    stage.seconds = 3.0
    other = stage.launch(folder_of(first))
    while not Lease.held(folder_of(first).path):
        assert other.poll() is None
    stage.started.clear()
    stage.seconds = 0.0
    assert stage.run()
    assert stage.started == [stage.manifest.sessions[1].id]


def test_a_session_that_ended_on_a_cluster_while_nobody_followed_it_is_brought_home(stage: Stage) -> None:
    """Its seat takes a CPU there until somebody does. One that failed is not run again."""
    stage.ends = {"no critic": "failed"}
    assert not stage.run()
    finished, failed = stage.manifest.sessions
    for session in (finished, failed):
        place(folder_of(session).path, "head:6379")
    stage.started.clear()
    assert not stage.run()
    assert stage.started == [finished.id]


def test_a_session_that_was_left_on_a_cluster_gets_no_second_worker_here(stage: Stage) -> None:
    """By the same command without `--on`; nothing answers at the address, so that the session stays as it is."""
    stage.manifest = declare("critic", "c", BASE, ["wake_up"], [0])
    folder = SessionFolder(root() / stage.make(stage.manifest.sessions[0].settings))
    place(folder.path, "127.0.0.1:1")
    stage.children.append(running.launched(folder))
    assert stage.children[-1].wait(100 * PATIENCE) == 1
    assert "Ray cluster" in folder.log.read_text()
    with Reader(folder) as reader:
        assert not reader.rows("event") and placed_on(folder.path)


def test_leaving_stops_the_sessions_and_says_how_far_they_are(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "TELL", 0.0)
    stage.seconds = 60.0

    def interrupt(told: dict[str, Any]) -> None:
        stage.told.append(told)
        if told["kind"] == "progress":
            raise KeyboardInterrupt

    stage.manifest = declare("critic", "c", BASE, ["wake_up"], [0])
    with pytest.raises(KeyboardInterrupt):
        Runner(stage.manifest, 1, stage.make, interrupt, stage.launch).run()
    assert [child.returncode for child in stage.children] == [-signal.SIGTERM]
    (progress,) = stage.kinds("progress")
    assert (progress["over"], progress["sessions"], progress["env_steps_left"]) == (0, 2, 2000)
    assert progress["seconds_left"] is None and len(progress["running"]) == 1


def test_the_time_left_goes_by_sessions_because_most_end_before_their_budget(stage: Stage) -> None:
    stage.manifest = declare("critic", "c", BASE, ["wake_up"], [0])
    first, second = (running.known(planned) for planned in stage.manifest.sessions)
    over = replace(first, status="succeeded", env_steps=10)
    half = replace(second, status="running", env_steps=second.left // 2)
    told = running._progress({0: over, 1: half}, [1], 30.0, 1.5)
    assert (told["over"], told["seconds_left"]) == (1, 10)

"""Where a resumed session's PPO run goes on when files of checkpoints are gone."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from rlgpt.store import events, tables
from rlgpt.store.creation import create
from rlgpt.store.database import connect
from rlgpt.store.folder import SessionFolder
from rlgpt.store.reader import Reader
from rlgpt.store.settings import Settings
from rlgpt.store.writer import Writer
from rlgpt.training import worker
from rlgpt.training.opening import begin, other_version, tell_other_version
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.session.where import versions
from rlgpt.training.steps.learning import warm_start
from rlgpt.training.worlds.protocol import World

HERE: events.Where = {"node": "here", "cpu": "x86_64 AVX2", "versions": {}}


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[SessionFolder, list[str]]:
    """A session killed in a PPO run after two rollouts, and the files of their checkpoints."""
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "home"))
    folder = create(Settings(task="collect_wood"), task_info={}, world_version="1", versions={})
    files = []
    with Writer(folder) as writer:
        writer.event(events.Started())
        writer.add(tables.Iteration(sub_task=0, number=0))
        writer.add(tables.TrainingRun(sub_task=0, iteration=0, revision=1, run=1, config_hash="", env_steps_planned=9))
        for update in (1, 2):
            files.append(writer.artifact(b"weights" * update))
            counts = {"run": 1, "update": update, "env_steps": 100 * update}
            writer.add(tables.Metric(**counts, decisions=50 * update, episodes=3, successes=1))
            writer.add(tables.Checkpoint(**counts, kind="rollout", artifact=files[-1], size=7 * update))
    return folder, files


@pytest.mark.parametrize(
    ("damaged", "update", "cause"),
    [
        ([], 2, None),
        ([1], 1, "the checkpoint of update 2 is missing or damaged, so PPO run 1 starts again from update 1"),
        ([0, 1], 0, "the checkpoint of update 2 is missing or damaged, so PPO run 1 starts again from its beginning"),
    ],
)
@pytest.mark.parametrize("forked", [False, True])
@pytest.mark.parametrize("deleted", [True, False])
def test_a_resume_goes_back_to_the_last_sound_checkpoint(
    damaged: list[int],
    update: int,
    cause: str | None,
    deleted: bool,
    forked: bool,
    trained: tuple[SessionFolder, list[str]],
) -> None:
    folder, files = trained
    for number in damaged:
        path = folder.artifacts / files[number]
        if deleted:
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-1] + b"?")
    if forked:  # as `store repair` makes a session of a damaged one
        with Writer(folder) as writer:
            writer.event(events.Forked(parent="x", seq=writer.history.seq, changed=[]))
    for wanted in (cause, None):  # a second resume finds nothing more amiss
        with Writer(folder) as writer:
            begin(folder, writer, {}, HERE)
            run = writer.history.runs[1]
            assert (run.updates, run.env_steps, run.episodes) == (update, 100 * update, 3 * update)
            assert (run.checkpoint.artifact if run.checkpoint else None) == (files[update - 1] if update else None)
            assert writer.history.spent.env_steps == 100 * update
        with Reader(folder) as reader:
            assert reader.rows("event")[-1]["payload"].get("cause") == wanted
            assert reader.history_at(None).runs[1].checkpoint == run.checkpoint


@pytest.mark.parametrize("lost", [False, True])
def test_a_run_without_the_checkpoint_it_started_from_starts_with_a_fresh_policy(
    lost: bool, trained: tuple[SessionFolder, list[str]]
) -> None:
    folder, files = trained
    with Writer(folder) as writer:
        run = tables.TrainingRun(sub_task=0, iteration=0, revision=1, run=2, config_hash="", env_steps_planned=9)
        run.warm_from = 1
        writer.add(run)
        history = writer.history
    if lost:
        (folder.artifacts / files[1]).unlink()
    said: list[str] = []
    with Reader(folder) as reader:
        runtime = SimpleNamespace(
            history=history, reader=reader, log=lambda level, event, sentence: said.append(sentence)
        )
        found = warm_start(cast(SessionRuntime, runtime), history.iterations[0], history.runs[2])
    assert found == ((None, None) if lost else (history.runs[1], b"weights" * 2))
    assert [sentence.split("; ")[1] for sentence in said] == ["PPO starts with a fresh policy"] * lost


def test_a_session_that_goes_on_on_another_kind_of_processor_says_so(trained: tuple[SessionFolder, list[str]]) -> None:
    folder, _ = trained  # its first worker told no place
    there: events.Where = {"node": "there", "cpu": "x86_64 AVX512", "versions": {}}
    for place in (HERE, HERE, there, there):
        with Writer(folder) as writer:
            begin(folder, writer, {}, place)
            assert writer.history.where == place
    with Reader(folder) as reader:
        (cause,) = reader.history_at().nondeterministic
    assert cause == (
        "continued on another kind of processor: x86_64 AVX512 at there, before it was x86_64 AVX2 at here"
    )


def test_a_session_that_goes_on_in_another_version_of_its_world_says_so_once(
    trained: tuple[SessionFolder, list[str]],
) -> None:
    folder, _ = trained
    with Reader(folder) as reader:
        begun_in = reader.history_at().session["world_version"]
    for version in (begun_in, "another", "another"):
        with Writer(folder) as writer:
            tell_other_version(writer, cast(World, SimpleNamespace(name="line", version=version)))
    with Reader(folder) as reader:
        (cause,) = reader.history_at().nondeterministic
    assert cause == f"goes on in version another of the world line; it was begun in {begun_in}"


@pytest.mark.parametrize(
    ("then", "now", "causes"),
    [
        ({"mujoco": "3.10.0"}, {"mujoco": "3.5.0"}, ["continued with mujoco 3.5.0, before it was 3.10.0"]),
        ({"mujoco": "3.10.0"}, {"mujoco": "3.10.0"}, []),
        ({}, {"mujoco": "3.5.0"}, []),
        ({"mujoco": "3.10.0"}, {}, []),
    ],
)
def test_a_session_that_goes_on_in_another_version_of_its_simulator_says_so(
    then: dict[str, str], now: dict[str, str], causes: list[str], trained: tuple[SessionFolder, list[str]]
) -> None:
    folder, _ = trained
    for packages in (then, now, now):
        with Writer(folder) as writer:
            begin(folder, writer, {}, {"node": "here", "cpu": "x86_64 AVX2", "versions": dict(packages)})
    with Reader(folder) as reader:
        assert reader.history_at().nondeterministic == causes


def test_the_simulator_is_told_by_a_process_whose_world_has_imported_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mujoco = pytest.importorskip("mujoco", reason="The kitchen is not installed: pip install 'rlgpt[kitchen]'.")
    assert versions()["mujoco"] == mujoco.__version__
    monkeypatch.delitem(sys.modules, "mujoco")
    assert "mujoco" not in versions()


def test_a_database_that_another_program_holds_stops_the_session_and_does_not_fail_it(
    trained: tuple[SessionFolder, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = trained
    monkeypatch.setattr("rlgpt.store.writer.connect", lambda path, mode, timeout: connect(path, mode, timeout=0.01))
    writer = Writer(folder)
    other = sqlite3.connect(folder.database, isolation_level=None)

    def run(_runtime: object) -> None:
        other.execute("BEGIN IMMEDIATE")
        try:
            writer.event(events.Resumed(from_seq=1))
        finally:
            other.execute("COMMIT")

    monkeypatch.setattr(worker, "_die_with_parent", lambda: None)
    monkeypatch.setattr("rlgpt.training.worker.signal.signal", lambda _number, _handler: None)
    runtime = SimpleNamespace(writer=writer, world=None, close=writer.close)
    monkeypatch.setattr(worker, "open_session", lambda _folder: runtime)
    monkeypatch.setattr(worker, "run", run)
    assert worker.main(folder.path) == 0
    with Reader(folder) as reader:
        history = reader.history_at()
    assert history.result == "stopped" and "database is locked" in history.reason


def test_a_replay_of_another_version_of_the_world_says_so(trained: tuple[SessionFolder, list[str]]) -> None:
    with Reader(trained[0]) as reader:
        recorded = reader.history_at()
    line = cast(World, SimpleNamespace(name="line", version="2"))
    assert other_version(recorded, line).startswith("recorded in version 1 of the world line, here it is 2: ")
    line.version = "1"
    assert other_version(recorded, line) == other_version(None, line) == ""

"""A fork starts where its parent was, and nowhere in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlgpt.store import events
from rlgpt.store import fork as forking
from rlgpt.store import tables as t
from rlgpt.store.bundle import import_bundle
from rlgpt.store.commands import parse_command
from rlgpt.store.folder import SessionFolder, sessions
from rlgpt.store.fork import BadChange, BadFork, boundary, fork
from rlgpt.store.inbox import send
from rlgpt.store.reader import Reader
from rlgpt.store.upkeep import check
from rlgpt.store.writer import Writer

KEPT = Path(__file__).parents[1] / "sessions"


@pytest.fixture
def parent(session: SessionFolder) -> SessionFolder:
    """Steps at seq 3 (OpenIteration), 5 (Plan), 9 (Train, again at 13), 16 (Evaluate), 18 (test), 20 (end)."""
    with Writer(session) as writer:
        first = writer.artifact(b"early")
        source = writer.text("def wood(view): ...")
        writer.event(events.Started())  # 2
        writer.event(events.Phase(name="OpenIteration", number=0))
        writer.add(t.Iteration(sub_task=0, number=0))
        writer.event(events.Phase(name="Plan", number=0))  # 5
        with writer.transaction() as tx:
            tx.add(t.Plan(sub_task=0, iteration=0, revision=1, author="slow", executor="policy"))
            tx.event(events.PlanInForce(1))
            tx.add(t.TrainingRun(sub_task=0, iteration=0, revision=1, run=1, config_hash="", env_steps_planned=9))
        writer.event(events.Phase(name="Train", run=1))  # 9
        metric: dict[str, Any] = {"run": 1, "decisions": 1, "episodes": 1, "successes": 0}
        writer.add(t.Metric(update=1, env_steps=5, **metric))
        writer.add(t.Checkpoint(run=1, update=1, env_steps=5, kind="rollout", artifact=first, size=5))
        writer.event(events.Waiting("paused"))
        writer.event(events.Phase(name="Train", run=1))  # 13, the same step
        late = writer.artifact(b"late")
        with writer.transaction() as tx:
            tx.add(t.Checkpoint(run=1, update=2, env_steps=9, kind="boundary", artifact=late, size=4))
            tx.event(events.TrainingEnded(run=1, state="finished", env_steps=9, decisions=2, updates=2))
        writer.event(events.Phase(name="Evaluate", split="dev"))  # 16
        writer.add(evaluation("dev", 1))
        writer.event(events.Phase(name="Evaluate", split="test"))  # 18
        writer.add(evaluation("test", 2))
        writer.event(events.Ended(status="finished", reason=source))  # 20
        send(session, parse_command("pause"))
    return session


def evaluation(split: str, number: int) -> t.Evaluation:
    return t.Evaluation(
        sub_task=0, iteration=0, revision=1, number=number, split=split, variant="full", first=0, episodes=20,
        successes=9, ci_low=0.2, ci_high=0.8, return_mean=0.0, length_mean=1.0, dead_loops=0, env_steps=1, run=1,
        policy="ppo",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cursor", "last"),
    [(4, 4), (5, 4), (7, 4), (8, 8), (9, 8), (12, 8), (14, 8), (15, 15), (16, 15), (17, 17), (18, 17), (None, 17)],
)  # fmt: skip
def test_a_fork_begins_behind_the_last_complete_step_and_before_any_test(
    parent: SessionFolder, cursor: int | None, last: int
) -> None:
    with Reader(parent) as reader:
        assert boundary(reader, cursor) == last


def test_what_a_step_led_to_is_copied_with_it(session: SessionFolder) -> None:
    with Writer(session) as writer:
        writer.event(events.Started())  # 2
        writer.event(events.Phase(name="OpenIteration", number=0))
        writer.add(t.Iteration(sub_task=0, number=0))
        writer.event(events.Phase(name="JudgeIteration", iteration=0))  # 5
        writer.add(evaluation("dev", 1))
        writer.event(
            events.IterationResult(**ITERATION, variant="full", score=0.45, low=0.2, high=0.8, why="all there is")
        )
        writer.event(events.Incumbent(**ITERATION, why="the only one so far"))
        writer.event(events.Phase(name="OpenIteration", number=1))  # 9
    with Reader(session) as reader:
        assert boundary(reader, 6) == boundary(reader, 7) == boundary(reader, 8) == 8
    with Reader(fork(session, 6)) as reader:
        history = reader.history_at()
        assert history.incumbent and history.incumbent.result and history.incumbent.result.why == "all there is"


ITERATION = {"sub_task": 0, "iteration": 0}


def test_a_fork_holds_exactly_the_parents_rows_up_to_there(parent: SessionFolder) -> None:
    made = fork(parent, 12)
    with Reader(parent) as old, Reader(made) as new:
        copied = [(n, r) for n, r in new.changes_since(1) if r["seq"] <= 8]
        wanted = [(n, r | {"session_id": made.id}) for n, r in old.changes_since(1) if r["seq"] <= 8]
        assert copied == wanted
        assert [(n, r["seq"]) for n, r in new.changes_since(8)] == [("event", 9)]
        session = new.history_at().session
        assert (session["parent_id"], session["parent_seq"]) == (parent.id, 8)
        assert session["settings"] == old.history_at().session["settings"] and session["name"] != parent.name
        assert new.commands() == []
    assert check(made) == []


def test_a_forks_state_is_its_parents_then_and_nothing_of_its_end(parent: SessionFolder) -> None:
    made = fork(parent)
    with Reader(parent) as old, Reader(made) as new:
        then, now = old.history_at(17), new.history_at()
    assert (now.status, now.result, now.stop_requested, now.pause_requested) == ("created", "", "", False)
    assert (now.plans, now.attempts, now.runs, now.spent) == (then.plans, then.attempts, then.runs, then.spent)
    assert now.iterations == then.iterations and now.revision == then.revision
    assert now.active == then.active


def test_a_fork_has_the_checkpoints_and_texts_it_needs_and_no_later_ones(parent: SessionFolder) -> None:
    early, late = fork(parent, 8), fork(parent, 15)
    with Reader(early) as one, Reader(late) as two, Reader(parent) as old:
        names = {bytes(old.artifact(p.name)): p.name for p in parent.artifacts.iterdir()}
        assert {p.name for p in early.artifacts.iterdir()} == set()
        assert {p.name for p in late.artifacts.iterdir()} == set(names.values())
        assert two.artifact(names[b"late"]) == b"late"
        source = old.rows("event", {"kind": "ended"})[0]["payload"]["reason"]
        assert one.text(source) == old.text(source)


def test_pruning_the_parent_does_not_touch_the_fork(parent: SessionFolder) -> None:
    made = fork(parent, 15)
    for path in parent.artifacts.iterdir():
        path.unlink()
    assert check(made) == []


def test_a_fork_continues_as_its_own_session(parent: SessionFolder) -> None:
    made = fork(parent, 15)
    with Writer(made) as writer:
        assert writer.session_id == made.id and writer.incarnation == 2
        assert writer.event(events.Resumed(from_seq=15, cause="fork")) == 17
    with Reader(parent) as reader:
        assert reader.last_seq() == 20


def test_a_fork_may_change_limits_but_not_what_its_history_rests_on(parent: SessionFolder) -> None:
    made = fork(parent, changes={"loop": {"iterations": 9}, "llm": {"kind": "openai"}}, name="deeper")
    with Reader(made) as reader:
        session = reader.history_at().session
    assert session["settings"]["loop"]["iterations"] == 9 and session["settings"]["loop"]["inner"] == 3
    assert session["name"] == "deeper"
    for change in ({"seed": 5}, {"task": "collect_iron"}):
        with pytest.raises(BadFork, match=f"a fork keeps its parent's {next(iter(change))}"):
            fork(parent, changes=change)
    assert len(sessions()) == 2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"lop": {"iterations": 9}}, "there is no setting called lop"),
        ({"loop": {"iterations": "many"}}, r"loop\.iterations should be a valid integer"),
        ({"loop": 5}, "loop is a group of settings, not 5"),
    ],
)
def test_changes_that_cannot_be_are_a_sentence_that_names_them(
    parent: SessionFolder, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadChange, match=f"the changed settings cannot be: {sentence}"):
        fork(parent, changes=changes)
    assert len(sessions()) == 1


def test_there_is_no_fork_behind_the_last_row(parent: SessionFolder) -> None:
    with Reader(parent) as reader:
        last = reader.last_seq()
    assert fork(parent, last).path.exists()
    with pytest.raises(BadFork, match=f"has {last} rows and no row {last + 1}"):
        fork(parent, last + 1)


def test_a_fork_of_a_fork_that_no_worker_has_run_loses_no_step(session: SessionFolder) -> None:
    with Writer(session) as writer:
        writer.event(events.Started())
        writer.event(events.Phase(name="OpenIteration", number=0))
        writer.add(t.Iteration(sub_task=0, number=0))
        writer.event(events.Phase(name="Plan", number=0))  # 5
    with Reader(fork(fork(fork(session)))) as reader:
        history = reader.history_at()
    assert history.session["parent_seq"] == 4 and len(history.iterations) == 1


def test_there_is_no_fork_before_the_first_complete_step(session: SessionFolder) -> None:
    with pytest.raises(BadFork, match="has no complete step at seq 1"):
        fork(session)


@pytest.mark.parametrize(("name", "sentence"), [("last", "stands for the newest one"), ("x" * 101, "at most 100")])
def test_a_name_by_which_it_could_not_be_found_is_refused(parent: SessionFolder, name: str, sentence: str) -> None:
    with pytest.raises(BadChange, match=sentence):
        fork(parent, name=name)


@pytest.mark.parametrize("kept", ["0001-finished", "0002-finished"])
def test_a_session_of_any_schema_can_be_forked_and_its_parent_stays_as_it_is(kept: str, home: Path) -> None:
    parent = import_bundle(KEPT / f"{kept}.rlgpt")
    with Reader(parent) as reader:
        for row in reader.rows("checkpoint"):  # which a bundle of evidence leaves out
            (parent.artifacts / row["artifact"]).write_bytes(b"a policy")
    before = parent.database.read_bytes()
    made = fork(parent)
    assert parent.database.read_bytes() == before
    with Reader(parent) as old, Reader(made) as new, Writer(made):
        cut = new.history_at().session["parent_seq"]
        copied = [(t, r["seq"]) for t, r in new.changes_since(1) if r["seq"] <= cut]
        assert copied == [(t, r["seq"]) for t, r in old.changes_since(1) if r["seq"] <= cut] and len(copied) > 100


def test_a_rollout_checkpoint_may_be_superseded_during_a_fork(
    parent: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Reader(parent) as reader:
        early, late = (row["artifact"] for row in reader.rows("checkpoint"))

    def superseded(old: Path, new: Path) -> None:
        old.unlink()
        link(old, new)

    link = forking.link_file
    monkeypatch.setattr(forking, "link_file", lambda old, new: (superseded if old.name == early else link)(old, new))
    child = fork(parent)
    assert check(child) == [] and not (child.artifacts / early).exists() and (child.artifacts / late).exists()
    monkeypatch.setattr(forking, "link_file", superseded)
    with pytest.raises(BadFork, match="while it was forked"):
        fork(parent)

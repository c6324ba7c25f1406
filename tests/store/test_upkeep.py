"""Size, check, prune, backup and delete; and the catalog of all sessions."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rlgpt.store import artifacts, catalog, events, query, spending, upkeep
from rlgpt.store import tables as t
from rlgpt.store.catalog import find
from rlgpt.store.errors import AlreadyThere, BadPlace, LeaseTaken, StoreError
from rlgpt.store.folder import SessionFolder, sessions
from rlgpt.store.fork import fork
from rlgpt.store.home import home
from rlgpt.store.lease import Lease
from rlgpt.store.reader import Reader
from rlgpt.store.spending import spent_today
from rlgpt.store.writer import Writer

NewSession = Callable[..., SessionFolder]


@pytest.fixture
def trained(session: SessionFolder) -> SessionFolder:
    rng = random.Random(0)
    with Writer(session) as writer:
        writer.event(events.Started())
        writer.add(t.Iteration(sub_task=0, number=0))
        writer.add(t.TrainingRun(sub_task=0, iteration=0, revision=1, run=1, config_hash="", env_steps_planned=9))
        for update in range(1, 6):
            name = writer.artifact(bytes([update]) * 20_000)
            kind = "boundary" if update == 5 else "rollout"
            row = {"run": 1, "update": update, "env_steps": update * 1000}
            writer.add(t.Metric(**row, decisions=1, episodes=1, successes=0))
            writer.add(t.Checkpoint(**row, kind=kind, artifact=name, size=20_000))
            for step in range(20):
                body = rng.randbytes(2000)
                writer.add(t.Frame(source="train", owner=1, episode=0, step=step, format="f", body=body))
    return session


def test_size_tells_where_the_bytes_are_and_what_the_law_allows(trained: SessionFolder) -> None:
    (trained.path / "worker.log").write_text("x" * 1000)
    size = upkeep.size(trained)
    assert size.artifacts >= 100_000 and size.logs == 1000 and size.env_steps == 5000
    assert size.tables["frame"] > 200_000 > size.tables["metric"] > 0
    assert size.total >= size.artifacts + size.database
    assert size.allowed == 200 * 100_000


def test_a_sound_session_has_no_faults_also_while_it_is_written(trained: SessionFolder) -> None:
    assert upkeep.check(trained) == []
    with Writer(trained) as writer:
        writer.event(events.Resumed(from_seq=1, cause="test"))
        assert upkeep.check(trained) == []


def test_what_changes_while_a_session_is_checked_is_no_damage(
    trained: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Writer(trained) as writer:
        rows, get = query.Selection.rows, artifacts.get
        left = [True]

        def plan(selection: query.Selection, *args: Any) -> list[dict[str, Any]]:
            """A plan and its sub-actions are written when the plans were read, and the sub-actions were not."""
            found = rows(selection, *args)
            if selection.table == "plan" and left.pop():
                left.append(False)
                with writer.transaction() as tx:
                    tx.add(t.Plan(sub_task=0, iteration=0, revision=1, author="slow", executor="sequence"))
                    tx.add(
                        t.SubAction(
                            revision=1, position=0, name="wood", mode="code", goal="", reason="", done_when="True",
                            max_steps=9, author="slow",
                        )
                    )  # fmt: skip
            return found

        def superseded(folder: Path, name: str) -> bytes:
            if artifacts.digest(bytes([1]) * 20_000) == name:
                writer.discard(name)
            return get(folder, name)

        monkeypatch.setattr(query.Selection, "rows", plan)
        monkeypatch.setattr(artifacts, "get", superseded)
        assert upkeep.check(trained) == []
        assert left == [False]


def test_check_names_every_damage(trained: SessionFolder) -> None:
    with Reader(trained) as reader:
        kept = reader.rows("checkpoint")
    (trained.artifacts / kept[0]["artifact"]).write_bytes(b"other")
    (trained.artifacts / kept[4]["artifact"]).unlink()
    faults = upkeep.check(trained)
    assert len(faults) == 2 and all(f.startswith(f"session {trained.id}: ") for f in faults)
    assert "damaged" in faults[0] and "a fork from it is not possible" in faults[1]
    body = bytearray(trained.database.read_bytes())
    body[8192:12288] = bytes(4096)
    trained.database.write_bytes(body)
    assert upkeep.check(trained) != []


def test_check_names_files_that_cannot_be_read(trained: SessionFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    with Reader(trained) as reader:
        name = reader.rows("checkpoint")[0]["artifact"]
    (trained.artifacts / name).unlink()
    (trained.artifacts / name).mkdir()  # what not even root can read
    (told,) = upkeep.check(trained)
    assert told == f"session {trained.id}: the file {name} in {trained.artifacts} cannot be read: Is a directory"

    def refused(_folder: SessionFolder) -> list[Path]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(SessionFolder, "artifact_files", refused)
    (told,) = upkeep.check(trained)
    assert told == f"session {trained.id}: the files in {trained.artifacts} cannot be listed: Permission denied"


def test_prune_frees_what_no_resume_or_fork_needs(trained: SessionFolder) -> None:
    with Reader(trained) as reader:
        before, last = reader.changes_since(0, None), reader.rows("checkpoint")[-1]["artifact"]
    (trained.artifacts / ".half-written").write_bytes(b"x")
    done = upkeep.prune(trained)
    assert done.checkpoints == 5 and done.films == 0 and done.freed >= 80_000
    assert [p.name for p in trained.artifacts.iterdir()] == [last]
    with Reader(trained) as reader:
        assert reader.changes_since(0, None) == before
    assert upkeep.check(trained) == []


def test_prune_of_frames_takes_frames_only_and_leaves_the_guards(trained: SessionFolder) -> None:
    done = upkeep.prune(trained, frames=True)
    assert done.films == 1 and done.freed > 200_000
    with Reader(trained) as reader:
        assert reader.rows("frame") == [] and len(reader.rows("metric")) == 5
    assert upkeep.check(trained) == []
    with closing(sqlite3.connect(trained.database)) as base, pytest.raises(sqlite3.IntegrityError):
        base.execute("DELETE FROM metric")
    with Writer(trained) as writer:
        writer.event(events.Resumed(from_seq=1, cause="test"))


def test_a_session_whose_empty_folder_of_files_was_left_out_by_a_copy_is_kept_and_forked(
    session: SessionFolder, tmp_path: Path
) -> None:
    with Writer(session) as writer:
        writer.event(events.Started())
        writer.event(events.Phase(name="OpenIteration", number=0))
    session.artifacts.rmdir()
    assert upkeep.prune(session).checkpoints == 0
    assert upkeep.backup(session, tmp_path / "kept").exists()
    assert not upkeep.check(fork(session))


def test_a_running_session_is_neither_pruned_nor_deleted(trained: SessionFolder) -> None:
    with Lease.acquire(trained.path):
        before = trained.database.read_bytes()
        with pytest.raises(LeaseTaken, match="is already run"):
            upkeep.prune(trained, frames=True)
        assert trained.database.read_bytes() == before
        with pytest.raises(LeaseTaken):
            upkeep.delete(trained)
    assert upkeep.check(trained) == []


def test_a_backup_of_a_running_session_is_sound_and_equal(trained: SessionFolder, tmp_path: Path) -> None:
    catalog.set_tags(trained, ["paper"])
    with Writer(trained) as writer:
        writer.event(events.Resumed(from_seq=1, cause="test"))
        copy = upkeep.backup(trained, tmp_path / "backup")
    assert upkeep.check(SessionFolder(copy)) == [] and catalog.tags(SessionFolder(copy)) == ("paper",)
    with Reader(copy) as there, Reader(trained) as here:
        assert there.changes_since(0, None) == here.changes_since(0, None)
    with pytest.raises(AlreadyThere, match="is already there"):
        upkeep.backup(trained, tmp_path / "backup")
    assert [p.name for p in (tmp_path / "backup").iterdir()] == [trained.id]


def test_delete_removes_a_session_of_this_store_and_nothing_else(trained: SessionFolder, tmp_path: Path) -> None:
    copy = upkeep.backup(trained, tmp_path / "backup")
    with pytest.raises(BadPlace, match="is not a session of this store"):
        upkeep.delete(copy)
    upkeep.delete(trained)
    assert sessions() == [] and list(trained.path.parent.iterdir()) == [] and copy.exists()


# ---- catalog --------------------------------------------------------------------------------------
def test_summaries_tell_what_the_rows_say_newest_first(trained: SessionFolder, new_session: NewSession) -> None:
    new_session(name="later", llm={"kind": "openai", "model": "some-model"})
    with Lease.acquire(trained.path):
        found = {s.name: s for s in catalog.summaries()}
    mine, later = found[trained.name], found["later"]
    assert (mine.status, mine.iteration, mine.env_steps, mine.alive) == ("running", 0, 5000, True)
    assert (later.status, later.iteration, later.model, later.alive) == ("created", None, "some-model", False)
    assert mine.model == "rules" and mine.size > 100_000
    assert [s.id for s in catalog.summaries()] == sorted(found[n].id for n in found)[::-1]


def test_a_summary_follows_its_session_and_is_else_not_read_again(
    trained: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = catalog.summary
    monkeypatch.setattr(catalog, "summary", lambda s: (asked.append(s.id), real(s))[1])
    first = catalog.summaries()
    assert catalog.summaries() == first and asked == [trained.id]
    with Writer(trained) as writer:
        writer.event(events.Ended(status="stopped", reason="enough"))
        assert catalog.summaries()[0].reason == "enough"
    assert catalog.summaries()[0].result == "stopped"


def test_a_damaged_session_is_listed_with_its_fault(trained: SessionFolder) -> None:
    trained.database.write_bytes(b"nothing of value" * 1000)
    (found,) = catalog.summaries()
    assert found.id == trained.id and "is damaged: file is not a database" in found.fault


def test_what_does_not_fold_is_told_by_what_is_wrong_with_the_file(trained: SessionFolder) -> None:
    sound = catalog.why_unreadable(trained.path, KeyError(1))
    assert sound == f"session {trained.id} cannot be shown: KeyError: 1; `rlgpt store check` says more"
    with closing(sqlite3.connect(trained.database)) as base, base:
        base.execute("DROP TABLE plan")
    damaged = catalog.why_unreadable(trained.path, KeyError(1))
    assert "its tables, indexes and triggers are not those of its schema" in damaged
    assert f"`rlgpt store repair {trained.id}`" in damaged


def test_a_damaged_or_lost_catalog_is_made_anew(home: Path, trained: SessionFolder) -> None:
    before = catalog.summaries()
    (home / "catalog.db").write_bytes(b"nothing of value" * 1000)
    assert catalog.summaries() == before
    (home / "catalog.db").unlink()
    assert catalog.summaries() == before
    upkeep.delete(trained)
    assert catalog.summaries() == []


def test_tags_are_the_sessions_own_and_survive_the_catalog(home: Path, trained: SessionFolder) -> None:
    assert catalog.set_tags(trained, [" paper ", "seed 1", "paper", ""]) == ("paper", "seed 1")
    (home / "catalog.db").unlink(missing_ok=True)
    assert catalog.summaries()[0].tags == ("paper", "seed 1")
    for bad in (["x" * 41], ["\x1b[31m"], [str(n) for n in range(21)]):
        with pytest.raises(StoreError, match="at most 20 tags"):
            catalog.set_tags(trained, bad)
    assert catalog.tags(trained) == ("paper", "seed 1")


def test_names_and_costs_are_looked_up_without_opening_what_did_not_change(
    trained: SessionFolder, new_session: NewSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_session(name="other")
    with Writer(trained) as writer:
        call = {"call": "c", "step": "s", "role": "slow", "model": "m", "request_hash": ""}
        writer.add(t.LlmCall(**call, state="answered", cost=0.25))
        writer.add(t.LlmCall(**call, state="answered", cost=0.5))
    headings = catalog.headings()
    assert list(headings) == [s.id for s in sessions()]
    assert headings[trained.id].name == trained.name and list(headings[trained.id].costs.values()) == [0.75]
    made: list[SessionFolder] = []
    real = catalog.heading
    monkeypatch.setattr(catalog, "heading", lambda session: made.append(session) or real(session))
    assert find("other").id != trained.id and catalog.headings() == headings and spent_today() == 0.75
    assert made == []
    with Writer(trained) as writer:
        writer.add(t.LlmCall(**call, state="answered", cost=1.0))
        assert spent_today() == 1.75
    assert {s.id for s in made} == {trained.id}
    spending.tell_elsewhere(home(), 2.0)  # as to the home of a seat
    assert spent_today() == 3.75 and spent_today(but={trained.id}) == 2.0
    (home() / spending.FILE).write_text('{"day": "2001-01-01", "usd": 9.0}')
    assert spent_today() == 1.75, "another day's"


def test_what_a_fork_inherits_is_paid_once(new_session: NewSession) -> None:
    parent = new_session(name="parent")
    call = {"call": "c", "step": "s", "role": "slow", "model": "m", "request_hash": ""}
    with Writer(parent) as writer:
        writer.event(events.Started())
        writer.event(events.Phase("OpenIteration"))
        writer.add(t.Iteration(sub_task=0, number=0))
        writer.event(events.Phase("Plan"))
        writer.add(t.LlmCall(**call, state="answered", cost=4.0))
        writer.event(events.Phase("Code"))
    child = fork(parent)
    grandchild = fork(child)
    assert spent_today() == 4.0
    with Writer(grandchild) as writer:
        writer.add(t.LlmCall(**call, state="answered", cost=1.0))
    assert spent_today() == 5.0
    upkeep.delete(parent)
    assert spent_today() == 5.0, "it was paid, though who paid it is gone"


def test_a_replay_costs_nothing_today(new_session: NewSession) -> None:
    replayed = new_session(name="again", llm={"kind": "replay:261125-000000-aaaaa"})
    with Writer(replayed) as writer:
        writer.add(t.LlmCall(call="c", step="s", role="slow", model="m", request_hash="", state="answered", cost=0.25))
        assert writer.history.spent.cost == 0.25
    assert spent_today() == 0.0


def test_a_damaged_session_costs_nothing_today(trained: SessionFolder, new_session: NewSession) -> None:
    trained.database.write_bytes(b"nothing of value" * 1000)
    assert new_session(name="other").name == "other" and spent_today() == 0.0


def test_a_removal_that_leaves_files_says_where_they_are(
    session: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep.shutil, "rmtree", lambda *_args, **_options: None)  # as a file system that refuses
    with pytest.raises(StoreError, match=f"cannot be deleted: .*gone-{session.id}"):
        upkeep.remove(session)
    assert session not in sessions()

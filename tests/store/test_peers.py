"""Sessions in two places: a copy is a prefix, byte for byte, whatever interrupts it and whoever sends it."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from rlgpt.store import artifacts, events, progress
from rlgpt.store import tables as t
from rlgpt.store.address import source_of
from rlgpt.store.commands import parse_command
from rlgpt.store.errors import BadBundle, LeaseTaken, StoreError
from rlgpt.store.folder import SessionFolder
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.inbox import send
from rlgpt.store.lease import Lease, Owner, owner
from rlgpt.store.mirror import Mirror
from rlgpt.store.peers import Batch, Behind, Diverged, digest, sync
from rlgpt.store.reader import Reader
from rlgpt.store.revision import REVISION
from rlgpt.store.upkeep import check
from rlgpt.store.writer import Writer
from tests.store.copies import BUNDLES, EVIDENCE, everything, files, unpacked

Tell = Callable[[random.Random, int], list[list[t.Row]]]


def write(place: SessionFolder, transactions: list[list[t.Row]]) -> None:
    with Writer(place) as writer:
        for rows in transactions:
            with writer.transaction() as tx:
                for row in rows:
                    tx.add(row)


def same(one: Path, other: Path) -> None:
    assert everything(one) == everything(other)
    assert files(one) == files(other)
    assert digest(FolderPeer(one)) == digest(FolderPeer(other))
    assert check(other) == check(one)


# ---- what comes out is what went in ---------------------------------------------------------------
@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.stem)
def test_a_kept_session_is_copied_byte_for_byte(bundle: Path, tmp_path: Path) -> None:
    source = unpacked(bundle, tmp_path / "a")
    rows = sync(FolderPeer(source.path), FolderPeer(tmp_path / "b" / source.id), limit=100)
    assert rows and sync(FolderPeer(source.path), FolderPeer(tmp_path / "b" / source.id)) == 0
    same(source.path, tmp_path / "b" / source.id)


@pytest.mark.parametrize("bundles", EVIDENCE)
def test_sessions_of_the_evidence_are_copied_byte_for_byte(bundles: list[Path], tmp_path: Path) -> None:
    for bundle in bundles:
        source = unpacked(bundle, tmp_path / "a")
        sync(FolderPeer(source.path), FolderPeer(tmp_path / "b" / source.id))
        same(source.path, tmp_path / "b" / source.id)
        shutil.rmtree(tmp_path)


def test_a_session_that_grows_is_copied_prefix_by_prefix(
    new_session: Callable[[], SessionFolder], tell: Tell, tmp_path: Path
) -> None:
    @settings(max_examples=25)
    @given(st.randoms(use_true_random=False), st.lists(st.integers(1, 60), min_size=1, max_size=20))
    def law(rng: random.Random, cuts: list[int]) -> None:
        session = new_session()
        with Writer(session) as writer:
            for number, rows in enumerate(tell(rng, 40)):
                with writer.transaction() as tx:
                    for row in rows:
                        tx.add(row)
                if number % 5 == 0:
                    writer.text(f"text {number}")
                    writer.artifact(b"file %d" % number)
                    send(session, parse_command("pause"))
        source = FolderPeer(session.path)
        growing, copy = FolderPeer(tmp_path / "a" / session.id), FolderPeer(tmp_path / "b" / session.id)
        seq = 0
        for cut in cuts:
            batch = source.since(seq, growing.names(), cut)
            if not batch:
                break
            growing.append(batch)
            seq = batch.last
            sync(growing, copy, rng.randint(1, 50))
            whole, part = everything(session.path, seq), everything(copy.folder.path)
            tables = set(whole) - {"text", "command"}
            assert {name: part[name] for name in tables} == {name: whole[name] for name in tables}
            with Reader(copy.folder) as reader:
                plans = reader.rows("plan")
                last = reader.last_seq()
                assert not plans or plans[-1]["seq"] != last, "half a transaction"
        sync(source, copy, rng.randint(1, 500))
        same(session.path, copy.folder.path)
        for folder in (session.path, tmp_path / "a", tmp_path / "b"):
            shutil.rmtree(folder, ignore_errors=True)

    law()


def test_of_the_rollout_checkpoints_a_copy_has_only_the_newest(session: SessionFolder, tmp_path: Path) -> None:
    copy = FolderPeer(tmp_path / session.id)
    with Writer(session) as writer:
        run = {"iteration": 0, "revision": 1, "config_hash": "", "env_steps_planned": 9}
        writer.add(t.Iteration(sub_task=0, number=0))
        writer.add(t.TrainingRun(sub_task=0, run=1, **run))
        kept = [writer.artifact(b"a skill")]
        for update in range(1, 8):
            body = b"weights %d" % update
            name = writer.artifact(body)
            kind = "boundary" if update == 3 else "rollout"
            kept += [name] if kind == "boundary" else []
            numbers = {"run": 1, "update": update, "env_steps": update}
            writer.add(t.Checkpoint(**numbers, kind=kind, artifact=name, size=len(body)))
            if update % 2 == 0:
                sync(FolderPeer(session.path), copy)
                assert set(files(copy.folder.path)) == {*kept, name}
    sync(FolderPeer(session.path), copy)
    assert set(files(copy.folder.path)) == {*kept, name}
    assert digest(copy) == digest(FolderPeer(session.path))


def test_a_checkpoint_that_is_held_back_goes_out_later(session: SessionFolder, tmp_path: Path) -> None:
    source, copy = FolderPeer(session.path, rollouts_every=3600.0), FolderPeer(tmp_path / session.id)
    with Writer(session) as writer:
        writer.add(t.Iteration(sub_task=0, number=0))
        writer.add(t.TrainingRun(sub_task=0, iteration=0, revision=1, run=1, config_hash="", env_steps_planned=9))
        names = []
        for update, body in enumerate((b"one", b"two")):
            names.append(name := writer.artifact(body))
            writer.add(t.Checkpoint(run=1, update=update, env_steps=update, kind="rollout", artifact=name, size=3))
            sync(source, copy)
    assert set(files(copy.folder.path)) == {names[0]}
    sync(FolderPeer(session.path), copy)
    assert set(files(copy.folder.path)) == {names[1]}


# ---- killed in the middle -------------------------------------------------------------------------
COPYING = """
import sys
from pathlib import Path
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.peers import sync
print("ready", flush=True)
sync(FolderPeer(Path(sys.argv[1])), FolderPeer(Path(sys.argv[2])), limit=40)
"""


@pytest.mark.parametrize("after", [0.0, 0.02, 0.05, 0.1, 0.2])
def test_a_copy_killed_in_the_middle_is_a_prefix_and_goes_on(
    session: SessionFolder, tell: Tell, tmp_path: Path, after: float
) -> None:
    write(session, tell(random.Random(3), 400))
    target = tmp_path / "copies" / session.id
    with subprocess.Popen([sys.executable, "-c", COPYING, session.path, target], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        time.sleep(after)
        child.send_signal(signal.SIGKILL)
    copy = FolderPeer(target)
    seq = copy.head().seq
    if seq:
        assert check(SessionFolder(target)) == []
        part, whole = everything(target), everything(session.path, seq)
        tables = set(whole) - {"text", "command"}
        assert {name: part[name] for name in tables} == {name: whole[name] for name in tables}
    sync(FolderPeer(session.path), copy)
    same(session.path, target)


# ---- what is refused ------------------------------------------------------------------------------
@pytest.fixture
def copied(finished: SessionFolder, tmp_path: Path) -> FolderPeer:
    copy = FolderPeer(tmp_path / "copies" / finished.id)
    sync(FolderPeer(finished.path), copy)
    return copy


def test_a_copy_that_went_on_is_not_written_over(finished: SessionFolder, copied: FolderPeer) -> None:
    with Writer(copied.folder) as writer:
        writer.event(events.Resumed(from_seq=1))
    before = everything(copied.folder.path)
    with pytest.raises(Diverged, match="ahead of it, at row"):
        sync(FolderPeer(finished.path), copied)
    sync(copied, FolderPeer(finished.path))  # the other way it is a prefix
    same(copied.folder.path, finished.path)
    assert everything(copied.folder.path) == before


def test_two_ends_of_one_beginning_are_not_mixed(finished: SessionFolder, copied: FolderPeer) -> None:
    for place, more in ((finished, 3), (copied.folder, 2)):
        with Writer(place) as writer:
            for _ in range(more):
                writer.event(events.Resumed(from_seq=1))
    before = everything(copied.folder.path)
    with pytest.raises(Diverged, match="went on differently from the same beginning"):
        sync(FolderPeer(finished.path), copied)
    assert everything(copied.folder.path) == before


def test_another_session_is_not_appended(
    new_session: Callable[[], SessionFolder], finished: SessionFolder, copied: FolderPeer
) -> None:
    with pytest.raises(Diverged, match=f"it holds session {finished.id}, not"):
        sync(FolderPeer(new_session().path), copied)
    with pytest.raises(StoreError, match="there is no session at"):
        sync(FolderPeer(finished.path.with_name("nothing")), copied)


def test_a_copy_in_an_older_schema_is_not_gone_on_with(tmp_path: Path) -> None:
    source = unpacked(next(b for b in BUNDLES if b.stem == "0001-resumed"), tmp_path / "a")
    copy = FolderPeer(tmp_path / "b" / source.id)
    sync(FolderPeer(source.path), copy)
    with Writer(source) as writer:
        writer.event(events.Resumed(from_seq=1))
    with pytest.raises(Diverged, match=f"its rows have schema 0001, those of the session {REVISION}; delete the copy"):
        sync(FolderPeer(source.path), copy)


def test_a_copy_that_a_worker_has_is_left_alone(finished: SessionFolder, copied: FolderPeer) -> None:
    with Writer(finished) as writer:
        writer.event(events.Resumed(from_seq=1))
    with Writer(copied.folder), pytest.raises(LeaseTaken):
        sync(FolderPeer(finished.path), copied)


def test_what_was_pruned_at_one_side_is_no_difference(finished: SessionFolder, copied: FolderPeer) -> None:
    from rlgpt.store.upkeep import prune

    prune(finished, frames=True)
    with Writer(finished) as writer:
        writer.event(events.Resumed(from_seq=1))
    assert sync(FolderPeer(finished.path), copied) == 1


# ---- who lies -------------------------------------------------------------------------------------
def compressed(text: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(text)


def with_row(batch: Batch, table: str, **changed: Any) -> Batch:
    """The batch with other values in the last row of a table."""
    columns = batch.columns[table]
    row = list(batch.rows[table][-1])
    for name, value in changed.items():
        row[columns.index(name)] = value
    return batch._replace(rows=batch.rows | {table: [*batch.rows[table][:-1], tuple(row)]})


LIES: dict[str, Callable[[Batch], Batch]] = {
    "another text": lambda b: b._replace(texts=[(artifacts.digest(b"one"), compressed(b"two"))]),
    "no compressed text": lambda b: b._replace(texts=[(artifacts.digest(b"one"), b"one")]),
    "an endless text": lambda b: b._replace(texts=[(artifacts.digest(b""), compressed(bytes(200_000_000)))]),
    "another file": lambda b: b._replace(artifacts={artifacts.digest(b"one"): b"two"}),
    "a file with a path": lambda b: b._replace(artifacts={"../../evil": b"two"}),
    "a text for a number": lambda b: with_row(b, "event", at="soon"),
    "an infinite moment": lambda b: with_row(b, "event", at=float("inf")),
    "a moment that no calendar has": lambda b: with_row(b, "event", at=1e300),
    "no JSON": lambda b: with_row(b, "event", payload="{"),
    "JSON of another kind": lambda b: with_row(b, "event", payload="[]"),
    "infinity in JSON": lambda b: with_row(b, "event", payload='{"a": 9e999}'),
    "another session's row": lambda b: with_row(b, "event", session_id="another"),
    "a number twice": lambda b: with_row(b, "event", seq=b.last - 1),
    "a number from before": lambda b: with_row(b, "event", seq=1),
    "a number too large": lambda b: with_row(b, "event", seq=2**70),
    "an object": lambda b: with_row(b, "event", payload=object()),
    "a fold that fails": lambda b: with_row(b, "event", kind="training_ended", payload='{"run": 99}'),
    "an unknown table": lambda b: b._replace(rows={"evil": b.rows["event"]}, columns={"evil": b.columns["event"]}),
    "a table of no sequence": lambda b: b._replace(rows={"text": [(1, 2)]}, columns={"text": ("hash", "seq")}),
    "too few columns": lambda b: b._replace(rows={"event": [(b.last,)]}, columns={"event": ("seq",)}),
    "another beginning": lambda b: b._replace(
        rows={"session": [(b.last, 1)]}, columns={"session": ("seq", "session_id")}
    ),
    "a command without an author": lambda b: b._replace(commands=[("1", "s", 1.0, None, "pause", "{}", None)]),
    "a command that is no JSON": lambda b: b._replace(commands=[("1", "s", 1.0, "me", "pause", "{", None)]),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_mirror_is_believed_in_nothing(lie: str, finished: SessionFolder, copied: FolderPeer) -> None:
    with Writer(finished) as writer:
        for _ in range(2):
            writer.event(events.Resumed(from_seq=1))
    batch = FolderPeer(finished.path).since(copied.head().seq, copied.names())
    before, kept = everything(copied.folder.path), files(copied.folder.path)
    with pytest.raises((BadBundle, Behind)):
        copied.append(LIES[lie](batch))
    assert (everything(copied.folder.path), files(copied.folder.path)) == (before, kept)
    copied.append(batch)
    same(finished.path, copied.folder.path)


@pytest.mark.parametrize("lie", LIES)
def test_nothing_is_made_of_a_session_that_begins_with_a_lie(lie: str, finished: SessionFolder, tmp_path: Path) -> None:
    copy = FolderPeer(tmp_path / "copies" / finished.id)
    batch = FolderPeer(finished.path).since(0, set())
    with pytest.raises(BadBundle):
        copy.append(LIES[lie](batch))
    assert list((tmp_path / "copies").iterdir()) == []


def test_a_folder_with_no_name_of_a_session_is_not_made(finished: SessionFolder, tmp_path: Path) -> None:
    with pytest.raises(BadBundle, match="is not the id of a session"):
        sync(FolderPeer(finished.path), FolderPeer(tmp_path / "A session"))


# ---- mirrors --------------------------------------------------------------------------------------
def test_a_mirror_lives_as_long_as_its_worker_and_carries_what_is_sent_to_it(
    session: SessionFolder, tmp_path: Path
) -> None:
    folder = tmp_path / "mirrors" / session.id
    mirror = Mirror(FolderPeer(session.path), folder)
    far = Owner(4711, "far-away", 12.5)
    with Lease.acquire(session.path, holder=far), Writer(session) as writer:
        writer.event(events.Started())
        progress.Progress(session.path).phase("Train run 1")
        assert mirror.step()
        assert owner(folder) == far and progress.read(folder)["what"] == "Train run 1"
        assert source_of(folder) == str(session.path)
        sent = send(folder, parse_command("advise", {"agent": "slow", "text": "use wood"}), author="ann@desk")
        assert mirror.step() and mirror.step()
        arrived = [(c.id, c.author, c.payload["text"]) for c in writer.commands_after(0)]
        assert arrived == [(sent, "ann@desk", "use wood")]
        other = send(session, parse_command("pause"))
        writer.event(events.Resumed(from_seq=1))
        mirror.step()
        with Reader(folder) as reader:
            assert [command["id"] for command in reader.commands()] == [sent, other]
        writer.event(events.Ended("stopped", "it was told to"))
    assert not mirror.step()
    assert owner(folder) is None
    with Reader(folder) as reader:
        assert reader.history_at().status == "ended"
    assert check(SessionFolder(folder)) == []


def test_a_mirror_shows_the_last_row_before_it_lets_its_lock_go(session: SessionFolder, tmp_path: Path) -> None:
    """Who waits for the end looks at the lock first and at the rows then."""

    class Dying(FolderPeer):
        def worker(self) -> Any:
            found = super().worker()
            if found is not None:
                writer.event(events.Ended("finished", "all is done"))
                writer.close()
                lease.release()
            return found

    folder = tmp_path / session.id
    lease, writer = Lease.acquire(session.path), Writer(session)
    mirror = Mirror(Dying(session.path), folder)
    mirror.step()
    with Reader(folder) as reader:
        assert reader.alive() and reader.history_at().status == "ended"
    assert not mirror.step() and owner(folder) is None


def test_a_mirror_whose_folder_has_a_worker_of_its_own_gives_up(session: SessionFolder, tmp_path: Path) -> None:
    folder = tmp_path / session.id
    with Lease.acquire(session.path):
        mirror = Mirror(FolderPeer(session.path), folder)
        mirror.step()
        mirror.close()
        with Lease.acquire(folder), pytest.raises(LeaseTaken):
            Mirror(FolderPeer(session.path), folder).step()

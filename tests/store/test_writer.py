"""What the writer promises the worker."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy.dialects import sqlite
from sqlmodel import SQLModel

from rlgpt.store import event_payloads, events, folder, schema
from rlgpt.store import tables as t
from rlgpt.store.clock import ActiveClock
from rlgpt.store.commands import parse_command
from rlgpt.store.epilogue import append_event, append_stop, undecided
from rlgpt.store.errors import BadPlace, BadRow, Damaged, DiskFull, LeaseTaken, StoreError, WriteFailed
from rlgpt.store.folder import SessionFolder
from rlgpt.store.history import fold_all
from rlgpt.store.inbox import send
from rlgpt.store.reader import Reader
from rlgpt.store.rows import Encoded, encode
from rlgpt.store.writer import Writer


def test_rows_get_consecutive_numbers_over_all_tables(writer: Writer) -> None:
    with writer.transaction() as tx:
        numbers = [tx.event(events.Started()), tx.add(t.Iteration(sub_task=0, number=0)), tx.log("info", "hello", n=1)]
    assert numbers == [2, 3, 4]
    assert writer.event(events.Phase(name="Plan")) == 5


def test_an_event_and_a_log_line_are_stored_as_their_rows_are_and_no_row_object_is_made(
    writer: Writer, session: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To make a row object takes several times longer than to store it."""
    event = events.PlanRejected(1, "ada\u00e9\ud800", 'say "no"\0')
    rows = [t.Event(kind=event_payloads.kind_of(event), payload=event_payloads.payload_of(event))]
    lines = [t.Log(level="info", event="e", fields={"n": 1, "x": [None, 0.5, math.nan]})]
    with writer.transaction() as tx:
        for row in (t.Plan(sub_task=0, iteration=0, revision=1, author="slow", executor="policy"), *rows, *lines):
            tx.add(row)

    def refuse(*given: object, **named: object) -> None:
        raise AssertionError("a row object was made")

    monkeypatch.setattr(t.Event, "__init__", refuse)
    monkeypatch.setattr(t.Log, "__init__", refuse)
    writer.event(event)
    with writer.transaction() as tx:
        tx.event(event)
        tx.log("info", "e", n=1, x=(None, 0.5, math.nan))
    with closing(sqlite3.connect(session.database)) as base:
        stored = base.execute("SELECT kind, payload, typeof(payload), incarnation FROM event").fetchall()
        logged = base.execute("SELECT level, event, fields, typeof(fields), incarnation FROM log").fetchall()
    assert len(stored) == 3 and len(set(stored)) == 1
    assert len(logged) == 2 and len(set(logged)) == 1


def test_rows_carry_session_incarnation_time_and_active_seconds(session: SessionFolder) -> None:
    with Writer(session) as writer, Reader(session) as reader:
        writer.event(events.Started())
        time.sleep(0.02)
        writer.event(events.Phase(name="Plan"))
        first, second = (row for _, row in reader.changes_since(1))
    assert first["session_id"] == session.id and first["incarnation"] == 1
    assert abs(first["at"] - time.time()) < 60
    assert second["active"] - first["active"] >= 0.02


def test_active_seconds_stand_still_while_the_session_waits(session: SessionFolder) -> None:
    with Writer(session) as writer:
        writer.event(events.Phase(name="Plan"))
        writer.event(events.Waiting("approval"))
        before = writer.clock.read()
        time.sleep(0.02)
        assert writer.clock.read() == before
        writer.event(events.Phase(name="Train"))
        time.sleep(0.01)
        assert writer.clock.read() > before
        total = writer.clock.read()
    with Writer(session) as writer:
        assert total <= writer.clock.read() < total + 1.0 or writer.clock.read() <= total
        assert writer.clock.read() == writer.history.active


def test_active_clock_counts_only_what_runs() -> None:
    now = 100.0
    clock = ActiveClock(5.0, lambda: now)
    now = 110.0
    assert clock.read() == 5.0
    clock.run(True)
    now = 113.0
    assert clock.read() == 8.0
    clock.run(True)
    clock.run(False)
    now = 200.0
    assert clock.read() == 8.0


def test_a_text_is_stored_once_and_with_the_row_that_names_it(session: SessionFolder) -> None:
    body = "a long prompt " * 1000
    with Writer(session) as writer, Reader(session) as reader:
        name = writer.text(body)
        assert writer.text(body) == name == writer.text(body)
        with pytest.raises(StoreError):
            reader.text(name)
        writer.event(events.Started())
        assert reader.text(name) == body
        stored = sqlite3.connect(session.database).execute("SELECT count(*), sum(length(body)) FROM text").fetchone()
    assert stored[0] == 1 and stored[1] < len(body) / 10
    with Writer(session) as writer:
        assert writer.text(body) == name
        writer.event(events.Resumed(from_seq=1, cause="test"))


def test_a_text_survives_the_rollback_of_the_transaction_it_was_given_in(session: SessionFolder) -> None:
    with Writer(session) as writer:
        with pytest.raises(ZeroDivisionError), writer.transaction() as tx:
            name = writer.text("kept")
            tx.event(events.Phase(name=str(1 // 0)))
        writer.event(events.Started())
    with Reader(session) as reader:
        assert reader.text(name) == "kept"


def test_an_artifact_is_there_whole_under_its_hash_and_only_for_its_owner(writer: Writer) -> None:
    name = writer.artifact(b"weights")
    path = writer.folder.artifacts / name
    assert path.read_bytes() == b"weights" and path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in writer.folder.artifacts.iterdir()] == [name]
    assert writer.artifact(b"weights") == name
    writer.discard(name)
    assert not path.exists()


def test_a_damaged_artifact_is_noticed(writer: Writer) -> None:
    name = writer.artifact(b"weights")
    (writer.folder.artifacts / name).write_bytes(b"weightz")
    with Reader(writer.folder) as reader, pytest.raises(StoreError, match="damaged"):
        reader.artifact(name)


def refused(payload: dict[str, object]) -> events.Event:
    """A command that was refused: the one event that may hold anything."""
    return events.Command("c1", "advise", "me", None, payload, "refused")


def test_values_come_back_as_the_history_saw_them(session: SessionFolder) -> None:
    with Writer(session) as writer, Reader(session) as reader:
        with writer.transaction() as tx:
            tx.event(
                refused(
                    {"shape": (1, (2, 3)), "count": np.int64(7), "rate": np.float32(0.5), "bad": math.nan, "by": {1: 2}}
                )
            )
            tx.event(events.Phase(name="lone \ud800 surrogate and \x00 NUL"))
        rows = reader.changes_since(1)
        assert fold_all(reader.changes_since(0)) == writer.history
    assert rows[0][1]["payload"]["payload"] == {
        "shape": [1, [2, 3]],
        "count": 7,
        "rate": 0.5,
        "bad": None,
        "by": {"1": 2},
    }
    assert rows[1][1]["payload"]["name"] == "lone ? surrogate and \ufffd NUL"


@pytest.mark.parametrize(
    "row",
    [
        t.Event(kind="phase", payload={"what": object()}),
        t.Iteration(sub_task=0, number=2**63),
        t.Iteration(sub_task=0, number=1.5),  # type: ignore[arg-type]
        t.Iteration(sub_task=0),  # type: ignore[call-arg]
        t.Log(level=7, event="x"),  # type: ignore[arg-type]
    ],
    ids=["no plain data", "too large", "no whole number", "missing", "no text"],
)
def test_a_value_that_no_column_can_hold_is_refused_and_nothing_written(writer: Writer, row: t.Row) -> None:
    with pytest.raises(BadRow), writer.transaction() as tx:
        tx.event(events.Phase(name="before"))
        tx.add(row)
    assert writer.history.seq == 1
    assert writer.event(events.Started()) == 2


def test_threads_queue_and_every_transaction_stays_together(session: SessionFolder) -> None:
    with Writer(session) as writer, Reader(session) as reader:

        def work(name: int) -> None:
            for _ in range(20):
                with writer.transaction() as tx:
                    for part in range(3):
                        tx.log("info", f"{name}", part=part)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rows = [row for table, row in reader.changes_since(0, None) if table == "log"]
        assert fold_all(reader.changes_since(0, None)) == writer.history
    assert [row["seq"] for row in rows] == list(range(2, 242))
    for start in range(0, 240, 3):
        assert len({row["event"] for row in rows[start : start + 3]}) == 1
        assert [row["fields"]["part"] for row in rows[start : start + 3]] == [0, 1, 2]


def test_a_row_added_inside_a_transaction_of_the_same_thread_belongs_to_it(writer: Writer) -> None:
    with pytest.raises(KeyError), writer.transaction() as tx:
        tx.event(events.Started())
        writer.event(events.Phase(name="inside"))
        raise KeyError
    assert writer.history.seq == 1
    with pytest.raises(RuntimeError), writer.transaction(), writer.transaction():
        pass


def test_a_console_can_send_while_a_transaction_is_being_filled(writer: Writer) -> None:
    with writer.transaction() as tx:
        tx.event(events.Started())
        send(writer.folder, parse_command("pause"))
    assert [c.kind for c in writer.commands_after(0)] == ["pause"]


def test_commands_come_in_order_once(writer: Writer) -> None:
    first = send(writer.folder, parse_command("pause"), author="me")
    taken = writer.commands_after(0)
    second = send(writer.folder, parse_command("budget", {"name": "cost", "value": 2.5}))
    assert [c.id for c in taken] == [first] and taken[0].author == "me"
    assert [(c.id, c.payload) for c in writer.commands_after(taken[-1].rowid)] == [
        (second, {"name": "cost", "value": 2.5})
    ]


def test_a_second_writer_is_refused_with_a_sentence(writer: Writer) -> None:
    code = "import sys, pathlib, rlgpt.store.writer as w; w.Writer(pathlib.Path(sys.argv[1]), patience=0)"
    done = subprocess.run([sys.executable, "-c", code, writer.folder.path], capture_output=True, text=True)
    assert done.returncode != 0 and f"session {writer.folder.id} is already run by process" in done.stderr
    with pytest.raises(LeaseTaken):
        Writer(writer.folder, patience=0)


def test_a_closed_writer_leaves_one_plain_file_and_writes_no_more(session: SessionFolder) -> None:
    writer = Writer(session)
    writer.event(events.Started())
    writer.close()
    writer.close()
    assert sorted(p.name for p in session.path.iterdir()) == ["artifacts", "session.db", "writer.lock"]
    with pytest.raises(WriteFailed, match="closed"):
        writer.event(events.Phase())


def test_a_folder_that_holds_no_session_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(BadPlace, match="there is no session in"):
        Writer(tmp_path / "x")
    (tmp_path / "x" / "session.db").write_bytes(b"no database at all, but long enough to be read as one" * 100)
    with pytest.raises(Damaged, match="file is not a database"):
        Writer(tmp_path / "x")


def test_durable_rows_are_synchronous_and_others_are_not(writer: Writer) -> None:
    level = "PRAGMA synchronous"
    writer.event(events.Started(), durable=True)
    assert writer._base.execute(level).fetchone() == (2,)
    writer.event(events.Phase(), durable=False)
    assert writer._base.execute(level).fetchone() == (1,)


# ---- a full disk ------------------------------------------------------------------------------------
def test_a_full_database_is_one_sentence_and_nothing_is_half_written(writer: Writer) -> None:
    writer.event(events.Started())
    pages = writer._base.execute("PRAGMA page_count").fetchone()[0]
    writer._base.execute(f"PRAGMA max_page_count={pages + 4}")
    before = writer.history.copy()
    with (
        pytest.raises(DiskFull, match=r"is full .* 200 rows are lost, all else is safe") as caught,
        writer.transaction() as tx,
    ):
        for number in range(200):
            tx.log("info", "x" * 1000, number=number)
    assert "\n" not in str(caught.value)
    assert writer.history == before
    writer._base.execute(f"PRAGMA max_page_count={pages + 1000}")
    assert writer.event(events.Ended(status="failed", reason=str(caught.value))) == before.seq + 1
    with Reader(writer.folder) as reader:
        assert reader.history_at() == writer.history


def test_files_that_do_not_fit_leave_nothing_behind(session: SessionFolder) -> None:
    code = """
import resource, signal, sys
from pathlib import Path
from rlgpt.store.errors import DiskFull
from rlgpt.store.writer import Writer
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = Writer(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
try:
    writer.artifact(bytes(3_000_000))
except DiskFull as error:
    print(error)
seq = writer.history.seq
try:
    while True:
        with writer.transaction() as tx:
            for _ in range(50):
                tx.log("info", "x" * 1000)
        seq = writer.history.seq
except DiskFull as error:
    print(error)
print(seq)
"""
    done = subprocess.run([sys.executable, "-c", code, session.path], capture_output=True, text=True)
    sentences = done.stdout.splitlines()
    assert len(sentences) == 3 and all("is full" in s for s in sentences[:2]), done.stdout + done.stderr
    assert list(session.artifacts.iterdir()) == []
    with Reader(session) as reader:
        assert reader.last_seq() == int(sentences[2]) and int(sentences[2]) % 50 == 1


def test_the_reserve_makes_room_for_last_words(writer: Writer) -> None:
    reserve = writer.folder.path / "reserve"
    assert reserve.stat().st_size == 1_000_000
    pages = writer._base.execute("PRAGMA page_count").fetchone()[0]
    writer._base.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(DiskFull):
        writer.add(t.Log(level="info", event="x" * 100_000))
    assert not reserve.exists()


def test_a_checkpoint_that_fails_at_the_end_loses_nothing(session: SessionFolder) -> None:
    writer = Writer(session)
    for number in range(50):
        writer.event(events.Phase(name="x" * 1000, number=number))
    writer._base.set_authorizer(lambda action, *_: sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_PRAGMA else 0)
    writer.close()
    with Reader(session) as reader:
        assert reader.history_at() == writer.history and reader.last_seq() == 51


@pytest.mark.parametrize(("free", "law"), [(5e9, "ok"), (9e8, "no frames"), (1e8, "none")])
def test_the_writer_says_what_the_storage_law_allows(
    writer: Writer, free: float, law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "free_bytes", lambda path: int(free))
    assert writer.room() == law


@pytest.mark.parametrize("model", t.CONTENT[1:], ids=lambda model: model.__name__)
def test_no_text_and_no_json_keeps_a_nul(model: type[t.Row], session: SessionFolder) -> None:
    with_nul = {"VARCHAR": "a\0b", "JSON": {"k\0": ["x\0", ("y\0",)]}, "BLOB": b"\0"}
    columns = SQLModel.metadata.tables[str(model.__tablename__)].columns
    values = {c.name: with_nul.get(str(c.type.compile(sqlite.dialect())), 1) for c in columns}
    row = model(**{"return_" if name == "return" else name: value for name, value in values.items()})
    table, kept = encode(row, {"seq": 2, "session_id": session.id})
    assert {v for v in kept.values() if isinstance(v, str)} <= {"a\ufffdb", session.id}
    assert all(v == {"k\ufffd": ["x\ufffd", ["y\ufffd"]]} for v in kept.values() if isinstance(v, dict))
    with closing(sqlite3.connect(session.database)) as base:
        schema.insert(base, Encoded(table, kept))


def test_a_command_and_last_words_keep_no_nul(session: SessionFolder) -> None:
    send(session, parse_command("advise", {"agent": "slow", "text": "go\0on"}), author="me\0")
    append_event(session.path, events.Ended("failed", "a\0b"))
    with Reader(session) as reader:
        (command,), (event,) = reader.commands(), reader.rows("event")
    assert (command["author"], command["payload"]["text"]) == ("me\ufffd", "go\ufffdon")
    assert event["payload"]["reason"] == "a\ufffdb"


@pytest.mark.parametrize("value", [10**5000, -(2**5000)], ids=["large", "small"])
def test_a_number_that_json_cannot_write_is_refused_before_a_transaction_begins(writer: Writer, value: int) -> None:
    with pytest.raises(BadRow, match="more than 4096 bits"):
        writer.event(refused({"value": value}))
    writer.event(events.Phase(name="goes on"))


def test_a_value_too_deep_for_json_is_refused(writer: Writer) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(BadRow, match="cannot hold"):
        writer.event(refused({"value": deep}))
    writer.event(events.Phase(name="goes on"))


def test_a_stop_from_outside_decides_what_nobody_had_decided(session: SessionFolder) -> None:
    names = [send(session, parse_command(*words)) for words in (("pause", {}), ("resume", {}), ("stop", {}))]
    decided = events.Command(names[0], "pause", "me", None, {}, "refused", "no")
    append_event(session.path, decided)
    append_event(session.path, events.Command(names[1], "resume", "me", None, {}, "seen", ""))
    assert [queued.id for queued in undecided(session.path)] == names[1:]
    append_stop(session.path, "stopped by the operator", applied=["stop"])
    assert not undecided(session.path)
    with Reader(session) as reader:
        history = reader.history_at()
    assert [history.commands[name].state for name in names] == ["refused", "expired", "applied"]
    assert (history.status, history.result, history.reason) == ("ended", "stopped", "stopped by the operator")

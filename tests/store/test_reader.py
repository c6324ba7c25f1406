"""What readers see: while it is written, afterwards, and on media that cannot be written."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlmodel import SQLModel

from rlgpt.store import events
from rlgpt.store import tables as t
from rlgpt.store.commands import parse_command
from rlgpt.store.errors import BadPlace, BadSchema, Damaged, ReadOnly, StoreError
from rlgpt.store.folder import SessionFolder
from rlgpt.store.history import fold_all
from rlgpt.store.inbox import send
from rlgpt.store.reader import Reader
from rlgpt.store.revision import REVISION
from rlgpt.store.upkeep import check, size
from rlgpt.store.writer import Writer


def test_reading_needs_nothing_but_the_standard_library_and_the_store() -> None:
    code = "import sys, rlgpt.store.reader, rlgpt.store.catalog; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert not {"sqlmodel", "sqlalchemy", "pydantic", "numpy", "zstandard", "alembic"} & set(done.stdout.split())


def test_two_readers_see_only_whole_transactions_while_a_writer_writes(session: SessionFolder) -> None:
    stop = threading.Event()
    faults: list[str] = []

    def watch() -> None:
        seen = 1
        with Reader(session) as reader:
            reader.changes_since(0)
            while not stop.is_set() or seen < 601:
                rows = [row for _, row in reader.changes_since(seen, None)]
                if [row["seq"] for row in rows] != list(range(seen + 1, seen + 1 + len(rows))):
                    faults.append(f"a hole behind {seen}")
                if len(rows) % 3:
                    faults.append(f"half a transaction behind {seen}")
                seen += len(rows)

    threads = [threading.Thread(target=watch) for _ in range(2)]
    with Writer(session) as writer:
        for thread in threads:
            thread.start()
        for number in range(200):
            with writer.transaction() as tx:
                tx.event(events.Phase(name=str(number)))
                tx.log("info", "between")
                tx.add(t.Iteration(sub_task=0, number=number))
        stop.set()
        for thread in threads:
            thread.join()
    assert faults == []


def test_data_version_changes_with_every_commit_and_only_then(writer: Writer) -> None:
    with Reader(writer.folder) as reader:
        before = reader.data_version()
        assert reader.data_version() == before
        writer.event(events.Started())
        assert reader.data_version() != before


def test_heavy_tables_can_be_left_out(finished: SessionFolder) -> None:
    with Reader(finished) as reader:
        tables = {table for table, _ in reader.changes_since(0, None, without={"metric", "frame", "log"})}
        assert tables and not tables & {"metric", "frame", "log"}
        light = fold_all(reader.folded_since(0, None))
        assert light == fold_all(reader.changes_since(0, None)) == reader.history_at()


def test_rows_are_chosen_by_their_columns_up_to_the_cursor(finished: SessionFolder) -> None:
    with Reader(finished) as reader:
        everything = reader.rows("event", {"kind": "phase"})
        assert everything and all(row["kind"] == "phase" for row in everything)
        some = reader.rows("event", {"kind": "phase"}, upto_seq=everything[1]["seq"])
        assert some == everything[:2]
        newest = reader.rows("event", {"kind": "phase"}, newest_first=True, limit=1, columns=["seq"])
        assert newest == [{"seq": everything[-1]["seq"]}]
        assert all(row["sub_action"] is None for row in reader.rows("verdict", {"sub_action": None}))
        with pytest.raises(StoreError, match="no table 'secrets'"):
            reader.rows("secrets")
        assert reader.rows("event", {"kind": "x' OR 1=1 --"}) == []


def test_commands_are_listed_with_their_order(writer: Writer) -> None:
    with Reader(writer.folder) as reader:
        first = send(writer.folder, parse_command("pause"))
        second = send(writer.folder, parse_command("advise", {"agent": "slow", "text": "try wood"}))
        assert [c["id"] for c in reader.commands()] == [first, second]
        assert [c["payload"] for c in reader.commands(1)] == [{"agent": "slow", "text": "try wood"}]


# ---- media and schemas ------------------------------------------------------------------------------
def _frozen(folder: SessionFolder, target: Path) -> Iterator[SessionFolder]:
    """The folder where nothing can be written: as another user, or as root on a read-only mount."""
    if os.getuid() != 0:
        shutil.copytree(folder.path, target / folder.id)
        (target / folder.id).chmod(0o500)
        yield SessionFolder(target / folder.id)
        (target / folder.id).chmod(0o700)
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", target], check=True)
    try:
        shutil.copytree(folder.path, target / folder.id)
        subprocess.run(["mount", "-o", "remount,ro", target], check=True)
        yield SessionFolder(target / folder.id)
    finally:
        subprocess.run(["umount", target], check=True)


@pytest.fixture
def frozen(finished: SessionFolder, tmp_path: Path) -> Iterator[SessionFolder]:
    (tmp_path / "disc").mkdir()
    yield from _frozen(finished, tmp_path / "disc")


def test_a_session_on_read_only_media_is_read_like_any_other(frozen: SessionFolder, finished: SessionFolder) -> None:
    with Reader(frozen) as there, Reader(finished) as here:
        assert there.changes_since(0, None) == here.changes_since(0, None)
        assert there.history_at(20) == here.history_at(20)
        assert not there.alive()
    assert size(frozen).database > 0
    with pytest.raises(ReadOnly, match="read-only media: it can be looked at, not commanded"):
        send(frozen, parse_command("pause"))


def _set_schema(session: SessionFolder, revision: str) -> None:
    base = sqlite3.connect(session.database)
    base.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    base.commit()
    base.close()


def _make_older(session: SessionFolder) -> None:
    """As a worker of schema 0001 left it."""
    _set_schema(session, "0001")
    base = sqlite3.connect(session.database)
    for table in (SQLModel.metadata.tables[str(model.__tablename__)] for model in t.CONTENT):
        for column in table.columns:
            if "since" in column.info:
                base.execute(f'ALTER TABLE "{table.name}" DROP COLUMN "{column.name}"')
    base.commit()
    base.close()


def test_a_newer_schema_is_refused_with_the_cure(finished: SessionFolder) -> None:
    _set_schema(finished, "0099")
    for opening in (Reader, Writer):
        with pytest.raises(BadSchema, match=f"has schema 0099, newer than this rlgpt's {REVISION}: update"):
            opening(finished)
    with pytest.raises(BadSchema, match="newer"):
        send(finished, parse_command("pause"))


def test_an_older_schema_is_read_with_a_notice_and_not_commanded(finished: SessionFolder) -> None:
    with Reader(finished) as reader:
        assert reader.notice == ""
        now = reader.history_at()
    _make_older(finished)
    before = finished.database.read_bytes()
    with Reader(finished) as reader:
        assert "older schema 0001" in reader.notice and "resumed" in reader.notice
        then = reader.history_at()
        assert [i.verdict for i in then.iterations] == [i.verdict for i in now.iterations]
        assert (then.status, then.spent, list(then.plans)) == (now.status, now.spent, list(now.plans))
    assert finished.database.read_bytes() == before, "a reader changes nothing"
    with pytest.raises(ReadOnly, match="resume it first"):
        send(finished, parse_command("pause"))


def test_no_session_and_no_database_are_one_sentence_each(tmp_path: Path) -> None:
    with pytest.raises(BadPlace, match="there is no session in"):
        Reader(tmp_path)
    (tmp_path / "session.db").write_bytes(random.Random(0).randbytes(5000))
    told = f"session {tmp_path.name} is damaged: file is not a database; `rlgpt store repair {tmp_path.name}`"
    with pytest.raises(Damaged, match=re.escape(told)):
        Reader(tmp_path)
    (sentence,) = check(tmp_path)
    assert sentence.startswith(told)

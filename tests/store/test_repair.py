"""A damaged session: one sentence wherever it is read, and everything before the damage can be saved."""

from __future__ import annotations

import random
import shutil
import sqlite3
import struct
from contextlib import closing, suppress
from pathlib import Path

import pytest

from rlgpt.store import bundle, catalog, events, pages, query, schema, tables, upkeep
from rlgpt.store.commands import parse_command
from rlgpt.store.errors import BadSchema, Damaged, LeaseTaken, StoreError
from rlgpt.store.export import FORMATS, export
from rlgpt.store.folder import SessionFolder, sessions
from rlgpt.store.fork import BadFork, fork
from rlgpt.store.inbox import send
from rlgpt.store.lease import Lease
from rlgpt.store.reader import Reader
from rlgpt.store.repair import repair
from rlgpt.store.snapshot import settle_journal
from rlgpt.store.soundness import explained
from rlgpt.store.writer import Writer

KEPT = Path(__file__).parent.parent / "sessions"
OWN = {"session_id", "name", "parent_id", "parent_seq"}
"""Columns in which a repaired session differs."""


@pytest.fixture(params=["written", "kept"])
def sound(request: pytest.FixtureRequest, finished: SessionFolder) -> SessionFolder:
    """A session written by a test, in which no row names a text, and one that a worker once wrote, with gaps where
    its frames were pruned."""
    if request.param == "written":
        with closing(sqlite3.connect(finished.database)) as base:
            base.executescript("""
                DROP TRIGGER code_version_no_update; UPDATE code_version SET source_hash = '';
                DROP TRIGGER trial_no_update; UPDATE trial SET source_hash = '';
                DROP TRIGGER llm_call_no_update; UPDATE llm_call SET request_hash = '';
            """)
            for table in ("code_version", "trial", "llm_call"):
                base.execute(schema.triggers(table)[0])
            base.commit()
        settle_journal(finished.database)
        return finished
    made = bundle.import_bundle(KEPT / "0001-resumed.rlgpt")
    Writer(made).close()  # brings it to the schema of today
    upkeep.prune(made, frames=True)
    settle_journal(made.database)
    return made


def rows_of(place: SessionFolder) -> dict[int, tuple[str, dict[str, object]]]:
    with Reader(place) as reader:
        return {row["seq"]: (table, row) for table, row in reader.changes_since(0, None)}


def shared(row: tuple[str, dict[str, object]]) -> tuple[str, dict[str, object]]:
    return row[0], {name: value for name, value in row[1].items() if name not in OWN}


def flip(database: Path, rng: random.Random, count: int) -> set[int]:
    """Other values in `count` bytes; returns their places."""
    body = bytearray(database.read_bytes())
    places = {rng.randrange(len(body)) for _ in range(count)}
    for place in places:
        body[place] ^= rng.randint(1, 255)
    database.write_bytes(bytes(body))
    return places


class Undamaged:
    """What lay where before the damage."""

    def __init__(self, place: SessionFolder) -> None:
        self.rows = rows_of(place)
        self.stored = pages.stored_rows(place.database.read_bytes())
        self.files = {path.name: path.read_bytes() for path in place.artifacts.iterdir()}
        frames = [seq for seq, (table, _) in self.rows.items() if table == "frame"]
        self.pruned = [seq for seq in range(max(frames, default=1), max(self.rows)) if seq not in self.rows]
        self.above: dict[int, int] = {}
        """Page -> the one that names it: its parent, or for a root the one with its row of the schema."""
        with closing(sqlite3.connect(place.database)) as base:
            for name, root in base.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0"):
                row = next(s for s in self.stored if len(s.values) == 5 and s.values[1] == name)
                self.above[root - 1] = row.pages[0]
        body = place.database.read_bytes()
        for page in range(len(body) // 4096):
            head = page * 4096 + (100 if page == 0 else 0)
            if body[head] in (2, 5):
                starts = [*struct.unpack_from(f">{int.from_bytes(body[head + 3 : head + 5], 'big')}H", body, head + 12)]
                pointers = [page * 4096 + start for start in starts] + [head + 8]
                for at in pointers:
                    self.above[int.from_bytes(body[at : at + 4], "big") - 1] = page

    def first_touched(self, hit: set[int]) -> int:
        """The first row of which a byte lies in a page that was hit; a text counts for the first row that names it."""
        touched = [stored for stored in self.stored if hit & set(stored.pages)]
        seqs = [stored.rowid for stored in touched if stored.rowid in self.rows and _is_numbered(stored)]
        names = {str(stored.values[0]) for stored in touched if len(stored.values) == 2}
        naming = [seq for seq, (_, row) in self.rows.items() if names & {str(value) for value in row.values()}]
        return min([*seqs, *naming], default=2**62)

    def first_doubtful(self, hit: set[int]) -> int:
        """The first row that may be lost: the first one touched, or a missing number before it that may be a pruned
        frame's or a lost row's. A lost row follows the one before it in its table; where the pages that tell its
        place are hit too, or there are none, it may have had any number."""
        first = self.first_touched(hit)
        if any(hit & set(self._telling(page)) for page in hit):
            return min([first, *self.pruned])
        for stored in self.stored:
            if not (hit & set(stored.pages) and stored.rowid in self.rows and _is_numbered(stored)):
                continue
            table, page = self.rows[stored.rowid][0], stored.pages[0]
            beside = [s.rowid for s in self.stored if s.pages[0] == page] if page in hit else [stored.rowid]
            before = max((seq for seq, (of, _) in self.rows.items() if of == table and seq < min(beside)), default=0)
            first = min([first, *(seq for seq in self.pruned if seq > before)])
        return first

    def _telling(self, page: int) -> list[int]:
        found = []
        while page in self.above and self.above[page] not in found:
            page = self.above[page]
            found.append(page)
        return found


def _is_numbered(stored: pages.Stored) -> bool:
    return len(stored.values) >= 7 and stored.values[0] is None


def test_the_rows_of_the_pages_are_those_that_sqlite_reads(sound: SessionFolder) -> None:
    with closing(sqlite3.connect(sound.database)) as base:
        wanted: list[tuple[object, ...]] = []
        for name in query.every(base):
            names = [c for c in query.every(base)[name].columns if c != "seq"]
            columns = ", ".join(map(query.quoted, names))
            wanted += base.execute(f"SELECT rowid, {columns} FROM {query.quoted(name)}")
        masters = base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    found = pages.stored_rows(sound.database.read_bytes())
    assert len(found) == len(wanted) + masters and all(stored.orderly for stored in found)
    assert all(leaf.is_full or not leaf.cells for leaf in pages.leaves(sound.database.read_bytes()))
    told = {
        (s.rowid, *(v for i, v in enumerate(s.values) if i or len(s.values) < 7 or s.values[0] is not None))
        for s in found
    }
    most = max(len(row) for row in wanted)
    filled = {(*row, *[None] * (most - len(row))) for row in told}  # a row lacks the columns that came after it
    assert {(*row, *[None] * (most - len(row))) for row in wanted} <= filled


def test_a_sound_session_is_repaired_to_itself(sound: SessionFolder) -> None:
    before, rows = sound.database.read_bytes(), rows_of(sound)
    saved = repair(sound)
    assert (saved.rows, saved.lost, saved.reason) == (len(rows), 0, "")
    made = SessionFolder(sound.path.parent / saved.id)
    assert [shared(row) for row in rows_of(made).values()][: len(rows)] == [shared(row) for row in rows.values()]
    assert explained(made.database) is None and sound.database.read_bytes() == before
    with Reader(sound) as old, Reader(made) as new:
        assert new.texts() == old.texts()


def test_a_gap_of_pruned_frames_is_no_damage(sound: SessionFolder) -> None:
    """Whatever page beside those with rows is hit, every row is kept."""
    before, whole = Undamaged(sound), sound.database.read_bytes()
    with_rows = {page for stored in before.stored if len(stored.values) != 5 for page in stored.pages}
    for page in sorted(set(range(1, len(whole) // 4096)) - with_rows):
        for at in (0, 3):
            body = bytearray(whole)
            body[page * 4096 + at] ^= 0xFF
            sound.database.write_bytes(body)
            saved = repair(sound)
            assert (saved.rows, saved.lost) == (len(before.rows), 0), (page, at, saved)
            shutil.rmtree(sound.path.parent / saved.id)


def test_a_session_of_an_older_schema_stays_one(home: Path) -> None:
    place = bundle.import_bundle(KEPT / "0001-resumed.rlgpt")
    whole, rows = place.database.read_bytes(), rows_of(place)
    assert b"0001" in whole
    body = bytearray(whole)
    body[4096 * 2] ^= 0xFF  # the root of the events
    place.database.write_bytes(body)
    saved = repair(place)
    made = SessionFolder(place.path.parent / saved.id)
    assert [shared(row) for row in rows_of(made).values()][: len(rows)] == [shared(row) for row in rows.values()]
    with Reader(made) as reader:
        assert "older schema 0001" in reader.notice
    Writer(made).close()
    assert explained(made.database) is None


def test_a_session_of_a_newer_schema_is_refused(sound: SessionFolder) -> None:
    with closing(sqlite3.connect(sound.database)) as base:
        base.execute("UPDATE alembic_version SET version_num = '0099'")
        base.commit()
        shutil.rmtree(sound.path.parent / repair(sound).id)  # nothing is new but the number: that is damaged
        base.execute("ALTER TABLE event ADD COLUMN mood TEXT")
        base.commit()
    with pytest.raises(BadSchema, match="newer than this rlgpt"):
        repair(sound)


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(s, marks=pytest.mark.slow) for s in range(12, 200))])
def test_no_flip_loses_a_row_before_the_damage(seed: int, sound: SessionFolder) -> None:
    rng = random.Random(seed)
    before = Undamaged(sound)
    hit = {place // 4096 for place in flip(sound.database, rng, rng.choice([1, 1, 8, 64]))}
    damaged = sound.database.read_bytes()
    try:
        saved = repair(sound)
    except Damaged as error:
        assert before.first_touched(hit) == 1 and "its first row" in str(error)
        return
    finally:
        assert sound.database.read_bytes() == damaged
        assert {path.name: path.read_bytes() for path in sound.artifacts.iterdir()} == before.files
    made = SessionFolder(sound.path.parent / saved.id)
    kept = {seq: row for seq, row in rows_of(made).items() if seq <= saved.seq}  # without the mark behind them
    begun = _begun(before.rows, before.first_doubtful(hit))
    assert not (lost := {seq for seq in before.rows if seq < begun} - set(kept)), f"{lost} before row {begun} are lost"
    assert not (lost := {seq for seq in before.rows if seq < saved.seq} - set(kept)), f"{lost} are left out"
    touched = before.first_touched(hit)
    assert all(shared(kept[seq]) == shared(row) for seq, row in before.rows.items() if seq < touched and seq in kept)
    assert explained(made.database) is None
    assert catalog.summary(made).fault == ""
    with suppress(BadFork):
        assert explained(fork(made).database) is None
    with Writer(made) as writer:
        writer.event(events.Resumed(from_seq=writer.history.seq))


def _begun(rows: dict[int, tuple[str, dict[str, object]]], touched: int) -> int:
    """Where the transaction began that the first damaged row belongs to, as far as the tables tell."""
    before = [(seq, rows[seq]) for seq in sorted(rows) if seq < touched]
    while before and before[-1][1][0] in ("sub_action", "frame", "episode"):
        before.pop()
    openers = ("plan", "code_version", "evaluation", "metric", "trial")
    return before[-1][0] if before and before[-1][1][0] in openers else touched


def test_every_reader_of_a_damaged_session_says_one_sentence(sound: SessionFolder, tmp_path: Path) -> None:
    whole = sound.database.read_bytes()
    for seed in range(25):
        copies = tmp_path / str(seed)
        sound.database.write_bytes(whole)
        flip(sound.database, random.Random(seed), 64)
        for attempt in (reader_of, close_writer, upkeep.size, pause, fork, upkeep.prune):
            with suppress(StoreError):
                attempt(sound)
        with suppress(StoreError):
            upkeep.backup(sound, copies)
        assert [s.id for s in catalog.summaries() if s.id == sound.id] == [sound.id]
        upkeep.check(sound)


def close_writer(place: SessionFolder) -> None:
    Writer(place).close()


def pause(place: SessionFolder) -> None:
    send(place, parse_command("pause"))


def reader_of(place: SessionFolder) -> None:
    with Reader(place) as reader:
        reader.history_at()
        reader.changes_since(0, None)
        for name in reader.texts():
            reader.text(name)
        reader.commands()
        reader.matrix("metric", ("env_steps", "return_mean"))


@pytest.mark.parametrize("form", FORMATS)
def test_no_export_of_a_damaged_session_is_called_done(form: str, sound: SessionFolder, tmp_path: Path) -> None:
    whole = sound.database.read_bytes()
    refused = 0
    for seed in range(15):
        sound.database.write_bytes(whole)
        flip(sound.database, random.Random(seed), 64)
        target = tmp_path / f"{form}-{seed}"
        try:
            export(sound, form, target)
        except StoreError:
            refused += 1
            assert not target.exists()
        else:
            assert explained(sound.database) is None
            if form == "bundle":
                with bundle.viewed(target) as seen:
                    assert explained(seen.database) is None
    assert refused


@pytest.mark.parametrize("form", ["bundle"])
def test_no_bundle_holds_a_damaged_file(form: str, finished: SessionFolder, tmp_path: Path) -> None:
    (path,) = finished.artifacts.iterdir()
    path.write_bytes(b"weightz")
    with pytest.raises(Damaged, match="is damaged: its content is not what its name says"):
        export(finished, form, tmp_path / "x")
    assert not (tmp_path / "x").exists()
    saved = SessionFolder(finished.path.parent / repair(finished).id)
    assert export(saved, form, tmp_path / "x").exists() and not list(saved.artifacts.iterdir())


def test_a_plan_without_all_its_sub_actions_is_not_kept(finished: SessionFolder) -> None:
    rows = rows_of(finished)
    cut = next(seq for seq, (table, _) in rows.items() if table == "sub_action")
    with closing(sqlite3.connect(finished.database, isolation_level=None)) as base:
        base.execute("DROP TRIGGER sub_action_no_delete")
        base.execute("DELETE FROM sub_action WHERE seq = ?", (cut,))
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    saved = repair(finished)
    assert rows[saved.seq + 1][0] == "plan" and saved.seq == cut - 2 and f"row {cut} is damaged" in saved.reason


def test_a_damaged_boundary_checkpoint_ends_the_prefix(session: SessionFolder) -> None:
    with Writer(session) as writer:
        writer.event(events.Started())
        writer.add(tables.Iteration(sub_task=0, number=0))
        writer.add(tables.TrainingRun(sub_task=0, iteration=0, revision=1, run=1, config_hash="", env_steps_planned=9))
        name = writer.artifact(b"weights" * 100)
        row = {"run": 1, "update": 1, "env_steps": 9}
        seq = writer.add(tables.Checkpoint(**row, kind="boundary", artifact=name, size=700))
        writer.event(events.Phase(name="Evaluate"))
    (session.artifacts / name).write_bytes(b"wrong")
    saved = repair(session)
    assert saved.seq == seq - 1 and saved.lost == 2 and "the checkpoint of row" in saved.reason


def test_no_more_is_unpacked_than_a_text_may_have(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = bundle.import_bundle(KEPT / "0001-resumed.rlgpt")
    monkeypatch.setattr("rlgpt.store.artifacts.LONGEST_TEXT", 10)
    saved = repair(made)
    assert saved.lost and "text" in saved.reason
    first = rows_of(made)[saved.seq + 1]
    assert set(first[1]) & {"source_hash", "request_hash", "reply_hash"}


def test_a_running_session_is_not_repaired(finished: SessionFolder) -> None:
    with Lease.acquire(finished.path), pytest.raises(LeaseTaken, match="stop it first"):
        repair(finished)
    assert sessions() == [finished]


def test_rows_that_lie_in_the_log_alone_are_saved(session: SessionFolder, tmp_path: Path) -> None:
    with Writer(session) as writer:
        for number in range(300):
            writer.event(events.Phase(name="x" * 100, number=number))
        copy = tmp_path / session.id
        shutil.copytree(session.path, copy)
    assert (copy / "session.db-wal").stat().st_size > 100_000
    saved = repair(SessionFolder(copy))
    assert saved.rows == 301 and saved.reason == ""
    flip(copy / "session.db-wal", random.Random(3), 5)
    assert repair(SessionFolder(copy)).reason == ""

"""Bundles: a session comes out as it went in, and nothing hostile comes in."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlgpt.store import bundle as bundles
from rlgpt.store import events, query
from rlgpt.store import tables as t
from rlgpt.store.artifacts import LONGEST_TEXT, digest
from rlgpt.store.bundle import export_bundle, import_bundle, is_bundle, viewed
from rlgpt.store.commands import parse_command
from rlgpt.store.errors import AlreadyThere, BadBundle, DiskFull, StoreError
from rlgpt.store.folder import SessionFolder, root, sessions
from rlgpt.store.inbox import send
from rlgpt.store.reader import Reader
from rlgpt.store.snapshot import settle_journal
from rlgpt.store.soundness import check_database
from rlgpt.store.writer import Writer


def everything(folder: SessionFolder) -> tuple[object, ...]:
    with Reader(folder) as reader:
        texts = sqlite3.connect(folder.database).execute("SELECT * FROM text ORDER BY hash").fetchall()
        files = {p.name: p.read_bytes() for p in folder.artifacts.iterdir()}
        return reader.changes_since(0, None), reader.history_at(), reader.commands(), texts, files


def test_of_two_imports_at_once_one_is_told_that_the_session_is_here(
    session: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Writer(session):
        bundle = export_bundle(session, tmp_path / "x.rlgpt")
    before = everything(session)
    shutil.rmtree(session.path)
    unpack = bundles._unpack
    codes: list[int] = []

    def slow(*arguments: object) -> None:  # another process imports the same meanwhile
        monkeypatch.setattr(bundles, "_unpack", unpack)
        code = f"from pathlib import Path; from rlgpt.store.bundle import *; import_bundle(Path({str(bundle)!r}))"
        codes.append(subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode)
        unpack(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(bundles, "_unpack", slow)
    with pytest.raises(AlreadyThere, match=f"session {session.id} is already here"):
        import_bundle(bundle)
    assert codes == [0] and everything(session) == before
    assert [path.name for path in root().iterdir()] == [session.id], "something is left of the one that came second"


def test_what_a_killed_import_left_goes_with_the_next(session: SessionFolder, tmp_path: Path) -> None:
    with Writer(session):
        bundle = export_bundle(session, tmp_path / "x.rlgpt")
    shutil.rmtree(session.path)
    died = subprocess.Popen(["true"])
    died.wait()
    left, living = (root() / f".new-{session.id}.{number}" for number in (died.pid, os.getppid()))
    for folder in (left, living):
        folder.mkdir()
    import_bundle(bundle)
    assert not left.exists() and living.exists()


def test_what_a_killed_export_left_goes_with_the_next_to_the_same_file(finished: SessionFolder, tmp_path: Path) -> None:
    died = subprocess.Popen(["true"])
    died.wait()
    left, living = (tmp_path / f".x.rlgpt.{number}.d" for number in (died.pid, os.getppid()))
    others = [tmp_path / f".y.rlgpt.{died.pid}.d", tmp_path / f".x.rlgpt.{died.pid}", tmp_path / ".x.rlgpt.d"]
    for folder in (left, living, *others):
        folder.mkdir()
        (folder / "session.db").touch()
    export_bundle(finished, tmp_path / "x.rlgpt")
    assert sorted(path for path in tmp_path.iterdir() if path.name != "home") == sorted(
        [living, *others, tmp_path / "x.rlgpt"]
    )


def test_an_imported_session_equals_the_exported_one(
    new_session: Callable[[], SessionFolder], tell: Callable[[random.Random, int], list[list[t.Row]]], tmp_path: Path
) -> None:
    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.randoms(use_true_random=False), st.binary(max_size=200))
    def law(rng: random.Random, weights: bytes) -> None:
        session = new_session()
        with Writer(session) as writer:
            for rows in tell(rng, 30):
                with writer.transaction() as tx:
                    for row in rows:
                        tx.add(row)
            writer.artifact(weights)
            writer.text(f"text {rng.random()}")
            send(session, parse_command("pause"))
            bundle = export_bundle(session, tmp_path / "x.rlgpt")
        before = everything(session)
        shutil.rmtree(session.path)
        assert is_bundle(bundle)
        back = import_bundle(bundle)
        assert back == session
        rows_, history, commands, _, files = everything(back)
        assert (rows_, history, commands, files) == (before[0], before[1], before[2], before[4])
        with Writer(back) as writer:
            writer.event(events.Resumed(from_seq=1, cause="imported"))

    law()


def test_a_bundle_can_be_looked_at_without_importing_it(finished: SessionFolder, tmp_path: Path) -> None:
    bundle = export_bundle(finished, tmp_path / "x.rlgpt")
    with viewed(bundle) as folder:
        assert everything(folder) == everything(finished)
        place = folder.path
    assert not place.exists() and [s.id for s in sessions()] == [finished.id]


def test_what_goes_wrong_while_a_bundle_is_looked_at_is_not_blamed_on_the_bundle(
    finished: SessionFolder, tmp_path: Path
) -> None:
    bundle = export_bundle(finished, tmp_path / "x.rlgpt")
    with pytest.raises(RuntimeError, match="of another making"), viewed(bundle):
        raise RuntimeError("of another making")


def test_importing_a_session_that_is_here_changes_nothing(finished: SessionFolder, tmp_path: Path) -> None:
    bundle = export_bundle(finished, tmp_path / "x.rlgpt")
    before = everything(finished)
    with pytest.raises(AlreadyThere, match=f"session {finished.id} is already here"):
        import_bundle(bundle)
    assert everything(finished) == before


def test_evidence_is_small_and_tells_the_numbers_but_no_prompts(session: SessionFolder, tmp_path: Path) -> None:
    rng = random.Random(0)
    with Writer(session) as writer:
        writer.artifact(rng.randbytes(2_000_000))
        source = writer.text("def wood(view): ...")
        prompt, reply = writer.text(rng.randbytes(500_000).hex()), writer.text("the answer")
        call = {"call": "1", "step": "s", "role": "slow", "model": "m", "request_hash": prompt}
        writer.add(t.LlmCall(**call, state="answered", reply_hash=reply, tokens_in=5))
        for n in range(300):
            body = rng.randbytes(5000)
            writer.add(t.Frame(source="dev", owner=1, episode=0, step=n, format="jpeg", body=body))
    bundle = export_bundle(session, tmp_path / "e.rlgpt", evidence=True)
    assert bundle.stat().st_size < 100_000
    with viewed(bundle) as folder, Reader(folder) as reader:
        assert reader.text(source) == "def wood(view): ..."
        assert reader.history_at().spent.tokens == 5
        assert reader.rows("frame") == [] and list(folder.artifacts.iterdir()) == []
        for name in (prompt, reply):
            with pytest.raises(StoreError, match="is not kept"):
                reader.text(name)
    assert everything(session)[0] != [] and (tmp_path / "e.rlgpt").stat().st_mode & 0o777 == 0o600


# ---- hostile bundles ------------------------------------------------------------------------------
def rebuild(source: Path, target: Path, change: Callable[[dict[str, bytes]], None], *, honest: bool = True) -> Path:
    """The bundle with its members changed; `honest`: with hashes and sizes that fit again."""
    with zipfile.ZipFile(source) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    if honest and "manifest.json" in members:
        manifest = json.loads(members["manifest.json"])
        manifest["files"] = {
            name: {"size": len(body), "blake2b": hashlib.blake2b(body, digest_size=16).hexdigest()}
            for name, body in members.items()
            if name != "manifest.json"
        }
        members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return target


def database(change: Callable[[sqlite3.Connection], object]) -> Callable[[dict[str, bytes]], None]:
    """A change of the bundle's database by SQL."""

    def apply(members: dict[str, bytes]) -> None:
        with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as base:
            base.deserialize(members["session.db"])
            base.execute("PRAGMA writable_schema=ON")
            change(base)
            members["session.db"] = base.serialize()

    return apply


def sql(*statements: str) -> Callable[[dict[str, bytes]], None]:
    return database(lambda base: [base.execute(statement) for statement in statements])


def manifest(**changes: object) -> Callable[[dict[str, bytes]], None]:
    def apply(members: dict[str, bytes]) -> None:
        members["manifest.json"] = json.dumps(json.loads(members["manifest.json"]) | changes).encode()

    return apply


def unguard(*statements: str) -> Callable[[dict[str, bytes]], None]:
    """Change rows in spite of the triggers, and leave the triggers as they were."""

    def change(base: sqlite3.Connection) -> None:
        guards = base.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            base.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            base.execute(statement)
        for _, made in guards:
            base.execute(made)

    return database(change)


packed = zstandard.ZstdCompressor().compress


def text_row(named: bytes, body: bytes) -> Callable[[dict[str, bytes]], None]:
    """A row under the hash of `named`."""
    return database(lambda base: base.execute("INSERT INTO text VALUES (?, ?)", (digest(named), body)))


HOSTILE: dict[str, tuple[Callable[[dict[str, bytes]], object], str]] = {
    "path outside": (lambda m: m.update({"../evil": b"x"}), "'../evil', which no bundle holds"),
    "absolute path": (lambda m: m.update({"/tmp/evil": b"x"}), "which no bundle holds"),
    "hidden beside artifacts": (lambda m: m.update({"artifacts/../../evil": b"x"}), "which no bundle holds"),
    "a log": (lambda m: m.update({"session.db-wal": b"x"}), "which no bundle holds"),
    "no database": (lambda m: m.pop("session.db"), "needs one manifest.json and one session.db"),
    "no manifest": (lambda m: m.pop("manifest.json"), "needs one manifest.json and one session.db"),
    "artifact under a false name": (lambda m: m.update({"artifacts/" + "0" * 32: b"x"}), "is not what its name says"),
    "not our format": (manifest(format="other"), "its manifest does not fit its files"),
    "an id that is a path": (manifest(id="../../x"), "its manifest does not fit its files"),
    "manifest is no object": (lambda m: m.update({"manifest.json": b"[[]]"}), "manifest cannot be read"),
    "manifest too deep": (lambda m: m.update({"manifest.json": b"[" * 10**6}), "manifest cannot be read"),
    "newer schema": (manifest(schema="0099"), "update rlgpt"),
    "another session's database": (manifest(id="250101-000000-aa"), "database of another session"),
    "no database at all": (lambda m: m.update({"session.db": b"nonsense" * 1000}), "damaged or none of ours"),
    "a damaged page": (
        lambda m: m.update({"session.db": m["session.db"][:8192] + bytes(4096) + m["session.db"][12288:]}),
        "damaged or none of ours",
    ),
    "a trigger": (
        sql("CREATE TRIGGER evil AFTER INSERT ON event BEGIN INSERT INTO text VALUES ('a', x'00'); END"),
        "tables, indexes and triggers are not those of its schema",
    ),
    "a view": (sql("CREATE VIEW evil AS SELECT * FROM event"), "are not those of its schema"),
    "a table more": (sql("CREATE TABLE evil (x)"), "are not those of its schema"),
    "a trigger less": (sql("DROP TRIGGER plan_no_update"), "are not those of its schema"),
    "a column more": (sql("ALTER TABLE plan ADD COLUMN evil"), "are not those of its schema"),
    "broken JSON": (unguard("UPDATE event SET payload = '{'"), "rows of event have no proper payload"),
    "JSON of another kind": (unguard("UPDATE metric SET rewards = '[]'"), "rows of metric have no proper rewards"),
    "text for a number": (unguard("UPDATE trial SET env_steps = 'many'"), "rows of trial have no proper env_steps"),
    "an infinite time": (unguard("UPDATE event SET at = 9e999"), "rows of event have no proper at"),
    "a time in the year 31,690,708": (unguard("UPDATE event SET at = 1e15"), "rows of event have no proper at"),
    "a time before all": (unguard("UPDATE log SET active = -9e999"), "rows of log have no proper active"),
    "infinity in JSON": (
        unguard('UPDATE trial SET evidence = \'{"good": [{"x": 9e999}]}\''),
        "rows of trial have no proper evidence",
    ),
    "no number in JSON": (unguard("UPDATE log SET fields = '{\"n\": NaN}'"), "rows of log have no proper fields"),
    "half a pair in JSON": (
        unguard('UPDATE log SET fields = \'{"n": "\\ud800"}\''),
        "rows of log have no proper fields",
    ),
    "a number of 5,000 digits in JSON": (
        unguard(f"UPDATE log SET fields = '{{\"n\": {'9' * 5000}}}'"),
        "rows of log have no proper fields",
    ),
    "bytes for a text": (unguard("UPDATE log SET level = x'00'"), "rows of log have no proper level"),
    "a truth of 2": (unguard("UPDATE sub_action SET pinned = 2"), "rows of sub_action have no proper pinned"),
    "no session row": (unguard("DELETE FROM session"), "damaged or none of ours"),
    "a number twice": (
        unguard("UPDATE log SET seq = (SELECT min(seq) FROM event) WHERE seq = (SELECT min(seq) FROM log)"),
        "have the number of another row",
    ),
    "a text that is not packed": (text_row(b"plain", b"plain"), "cannot be unpacked"),
    "a text without an end": (text_row(b"a text", packed(b"a text")[:-3]), "is not what its name says"),
    "a text under another's name": (text_row(b"a text", packed(b"another")), "is not what its name says"),
    "a text of many megabytes": (text_row(b"a text", packed(bytes(LONGEST_TEXT + 1))), "is longer than any text"),
    "a text of no letters": (text_row(b"\xff", packed(b"\xff")), "is damaged"),
    "manifest with a list of files": (manifest(files=["session.db"]), "its manifest does not fit its files"),
    "more successes than episodes": (
        unguard("UPDATE evaluation SET successes = 500, episodes = 10"),
        "rows of evaluation have more successes than episodes: row 67 has 500 of 10",
    ),
    "successes below 0": (
        unguard("UPDATE evaluation SET successes = -5"),
        "rows of evaluation have no proper successes: row 67 has -5",
    ),
    "a rate of no episodes": (
        unguard("UPDATE evaluation SET episodes = 0, successes = 0"),
        "rows of evaluation have no proper episodes: row 67 has 0",
    ),
    "a score beyond 1": (unguard("UPDATE evaluation SET score = 1e308"), "rows of evaluation have no proper score"),
    "a cost without end": (unguard("UPDATE llm_call SET cost = 1e308"), "rows of llm_call have no proper cost"),
    "a time before the year 1": (unguard("UPDATE event SET at = -1e11"), "rows of event have no proper at"),
    "a name without end": (
        unguard("UPDATE session SET name = printf('%.*c', 201, 'n')"),
        "rows of session have no proper name",
    ),
    "a funnel of texts": (
        unguard("UPDATE evaluation SET funnel = '{\"x\": \"y\"}'"),
        "rows of evaluation have no proper funnel",
    ),
    "a funnel wider than its top": (
        unguard("UPDATE evaluation SET funnel = '{\"x\": 21}'"),
        "rows of evaluation have more funnel than episodes",
    ),
    "trials that tell nothing": (unguard("UPDATE trial SET trials = '[{}]'"), "rows of trial have no proper trials"),
    "a task of five milestones": (
        unguard("UPDATE session SET task_info = '{\"milestones\": 5}'"),
        "rows of session have no proper task_info",
    ),
    "settings without a task": (
        unguard("UPDATE session SET settings = '{}'"),
        "the settings in its first row cannot be: task is missing",
    ),
    "a seed that is a word": (
        unguard("UPDATE session SET settings = json_set(settings, '$.seed', 'x')"),
        "the settings in its first row cannot be: seed should be a valid integer",
    ),
    "rows that contradict": (
        unguard("UPDATE event SET payload = '{\"revision\": 99}' WHERE kind = 'plan_in_force'"),
        "its rows contradict each other",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_bundle_is_refused_and_leaves_nothing(name: str, finished: SessionFolder, tmp_path: Path) -> None:
    change, sentence = HOSTILE[name]
    source = export_bundle(finished, tmp_path / "x.rlgpt")
    hostile = rebuild(source, tmp_path / "evil.rlgpt", change, honest=not name.startswith("manifest"))
    shutil.rmtree(finished.path)
    around = sorted(p.name for p in tmp_path.iterdir())
    with pytest.raises(BadBundle) as caught:
        import_bundle(hostile)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(BadBundle), viewed(hostile):
        pass
    assert sessions() == [] and list(finished.path.parent.iterdir()) == []
    assert sorted(p.name for p in tmp_path.iterdir()) == around


def test_no_column_of_any_table_takes_an_infinite_number(finished: SessionFolder, tmp_path: Path) -> None:
    settle_journal(finished.database)
    with contextlib.closing(sqlite3.connect(finished.database)) as base:
        whole, tables = base.serialize(), query.every(base)
        filled = [name for name in tables if base.execute(f"SELECT count(*) FROM {query.quoted(name)}").fetchone()[0]]
    assert len(filled) >= 17
    for name in filled:
        for column, kind in zip(tables[name].columns, tables[name].kinds, strict=True):
            values = {"JSON": ["""'{"a": 9e999}'""", "'[[-9e999]]'", "'[NaN]'"]}.get(kind, ["9e999", "-9e999"])
            if kind not in ("JSON", "FLOAT", "INTEGER", "BOOLEAN") or column == "seq":  # SQLite keeps `seq` whole
                continue
            for value in values:
                members = {"session.db": whole}
                unguard(f"UPDATE {query.quoted(name)} SET {query.quoted(column)} = {value}")(members)
                (tmp_path / "session.db").write_bytes(members["session.db"])
                with pytest.raises(BadBundle, match=f"rows of {name} have no proper {column}"):
                    check_database(tmp_path / "session.db")


def test_the_unchanged_rebuilt_bundle_is_accepted(finished: SessionFolder, tmp_path: Path) -> None:
    source = export_bundle(finished, tmp_path / "x.rlgpt")
    shutil.rmtree(finished.path)
    assert import_bundle(rebuild(source, tmp_path / "y.rlgpt", unguard())).id == finished.id


def test_a_member_changed_on_the_way_is_noticed(finished: SessionFolder, tmp_path: Path) -> None:
    source = export_bundle(finished, tmp_path / "x.rlgpt")
    shutil.rmtree(finished.path)
    changed = rebuild(source, tmp_path / "y.rlgpt", sql("PRAGMA user_version = 3"), honest=False)
    with pytest.raises(BadBundle, match=r"session\.db is not what the bundle's manifest says"):
        import_bundle(changed)


def test_damage_anywhere_in_a_bundle_is_a_sentence(finished: SessionFolder, tmp_path: Path) -> None:
    """A download that lost or changed some bytes."""
    whole = export_bundle(finished, tmp_path / "x.rlgpt").read_bytes()
    shutil.rmtree(finished.path)
    rng = random.Random(0)
    for number in range(60):
        damaged = bytearray(whole)
        place = rng.randrange(len(whole))
        damaged[place : place + rng.choice((1, 40))] = rng.randbytes(40)
        (tmp_path / "y.rlgpt").write_bytes(damaged[: len(whole) if number % 3 else place])
        try:
            import_bundle(tmp_path / "y.rlgpt")
        except BadBundle:
            continue
        (left,) = sessions()  # a byte that says nothing, such as a time
        shutil.rmtree(left.path)


@pytest.mark.parametrize("header", [b"PK\x03\x04", b"PK\x01\x02"])
def test_a_name_that_is_called_utf8_and_is_none_is_a_sentence(
    header: bytes, finished: SessionFolder, tmp_path: Path
) -> None:
    damaged = bytearray(export_bundle(finished, tmp_path / "x.rlgpt").read_bytes())
    shutil.rmtree(finished.path)
    start = damaged.index(header)
    flags, name = (start + 7, start + 30) if header == b"PK\x03\x04" else (start + 9, start + 46)
    damaged[flags] |= 0x08
    damaged[name] = 0xF4
    (tmp_path / "y.rlgpt").write_bytes(damaged)
    with pytest.raises(BadBundle, match="is no bundle, or a damaged one"):
        import_bundle(tmp_path / "y.rlgpt")


def test_a_bundle_is_measured_by_the_disk_that_it_is_unpacked_to(
    finished: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`/tmp` is often smaller than the store."""
    source = export_bundle(finished, tmp_path / "x.rlgpt")
    shutil.rmtree(finished.path)
    store = root()
    monkeypatch.setattr(bundles, "free_bytes", lambda path: 10**12 if path == store else 0)
    with pytest.raises(DiskFull, match="unpacks to 1 MB, and 0 MB are free on the disk of"), viewed(source):
        pass
    assert import_bundle(source).id == finished.id


def test_a_disk_that_fills_up_is_not_blamed_on_the_bundle(
    finished: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = export_bundle(finished, tmp_path / "x.rlgpt")
    shutil.rmtree(finished.path)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(bundles.os, "fsync", full)
    with pytest.raises(DiskFull, match="is full: nothing of"):
        import_bundle(source)
    assert sessions() == []


def test_a_zip_bomb_is_refused_before_it_is_unpacked(finished: SessionFolder, tmp_path: Path) -> None:
    source = export_bundle(finished, tmp_path / "x.rlgpt")
    shutil.rmtree(finished.path)
    bomb = tmp_path / "bomb.rlgpt"
    shutil.copy(source, bomb)
    with (
        zipfile.ZipFile(bomb, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open("artifacts/" + "0" * 32, "w") as member,
    ):
        for _ in range(150):
            member.write(bytes(1_000_000))
    with pytest.raises(BadBundle, match="far more than a session of its size holds"):
        import_bundle(bomb)


def test_a_member_larger_than_it_says_is_never_written_past_its_size(finished: SessionFolder, tmp_path: Path) -> None:
    source = export_bundle(finished, tmp_path / "x.rlgpt")
    shutil.rmtree(finished.path)
    lying = bytearray(source.read_bytes())
    with zipfile.ZipFile(source) as archive:
        real = archive.getinfo("session.db").file_size.to_bytes(4, "little")
    while (at := bytes(lying).find(real)) >= 0:
        lying[at : at + 4] = (100).to_bytes(4, "little")
    (tmp_path / "lying.rlgpt").write_bytes(lying)
    with pytest.raises(BadBundle):
        import_bundle(tmp_path / "lying.rlgpt")
    assert sessions() == []


def test_no_zip_and_no_file_are_one_sentence_each(home: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(BadBundle, match="is no bundle, or a damaged one"):
        import_bundle(tmp_path / "x")
    with pytest.raises(BadBundle, match="cannot be read: No such file"):
        import_bundle(tmp_path / "y")

"""Reading for a moment impossible, checkpoints that vanish, caches that are damaged, disks that are full."""

from __future__ import annotations

import contextlib
import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rlgpt.store import artifacts, bundle, catalog, events, soundness, upkeep
from rlgpt.store.errors import BadPlace, DiskFull
from rlgpt.store.folder import RESERVE, SessionFolder
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.peers import digest, sync
from rlgpt.store.writer import Writer
from tests.store.test_upkeep import trained as trained


def test_a_look_that_failed_for_a_moment_is_not_kept(trained: SessionFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    real = sqlite3.connect
    monkeypatch.setattr("rlgpt.store.database.sqlite3.connect", lambda *a, **k: real(*a, **{**k, "timeout": 0.05}))
    other = real(trained.database, isolation_level=None)
    other.execute("PRAGMA journal_mode=DELETE")
    other.execute("BEGIN EXCLUSIVE")
    assert "another program has locked it" in catalog.summaries()[0].fault
    assert catalog.headings()[trained.id].name == ""
    other.execute("COMMIT")
    assert catalog.headings()[trained.id].name == trained.name
    other.execute("VACUUM")  # other files, so that what was kept is of earlier ones
    other.execute("BEGIN EXCLUSIVE")
    assert catalog.headings()[trained.id].name == trained.name
    other.execute("COMMIT")
    assert catalog.summaries()[0].fault == "" and catalog.headings()[trained.id].name == trained.name


def test_a_checkpoint_that_is_replaced_meanwhile_is_left_out(
    trained: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = artifacts.put(trained.artifacts, b"a rollout checkpoint")
    real = SessionFolder.artifact_files

    def then_gone(folder: SessionFolder) -> list[Path]:
        files = real(folder)
        artifacts.discard(folder.artifacts, going)
        return files

    monkeypatch.setattr(SessionFolder, "artifact_files", then_gone)
    assert bundle.export_bundle(trained, tmp_path / "x.rlgpt").is_file()


def test_a_file_from_before_1980_is_packed(trained: SessionFolder, tmp_path: Path) -> None:
    name = artifacts.put(trained.artifacts, b"old")
    os.utime(trained.artifacts / name, (0, 0))
    bundle.export_bundle(trained, tmp_path / "x.rlgpt")


def test_a_cache_whose_bodies_are_damaged_is_made_anew(home: Path, trained: SessionFolder) -> None:
    before = catalog.summaries()
    with sqlite3.connect(home / "catalog.db") as base:
        base.execute("UPDATE summary SET body = replace(body, '{', '[')")
    assert catalog.summaries() == before


def test_a_cache_that_cannot_be_written_is_no_error(
    home: Path, trained: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.summaries()
    upkeep.delete(trained)
    real = catalog._open

    def fixed(path: Path | None) -> sqlite3.Connection:
        base = real(path)
        base.execute("PRAGMA query_only=ON")
        return base

    monkeypatch.setattr(catalog, "_open", fixed)
    assert catalog.summaries() == []


def test_a_session_of_another_user_is_listed(trained: SessionFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_folder: Path) -> None:
        raise PermissionError(13, "Permission denied", "worker.lock")

    monkeypatch.setattr(catalog, "owner", refused)
    assert "Permission denied" in catalog.summaries()[0].fault


@contextlib.contextmanager
def no_new_files() -> Iterator[None]:
    """As on a full disk: SQLite has no room for the index that it makes to read with."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_session_on_a_full_disk_is_not_called_damaged(trained: SessionFolder) -> None:
    (trained.path / RESERVE).write_bytes(b"0" * 2000)  # of a worker that was killed
    with no_new_files():
        assert soundness.torn(trained.database) is None
        with pytest.raises(BadPlace, match="its disk is full"):
            upkeep.prune(trained)
    assert not (trained.path / RESERVE).exists(), "what needs no reading goes first, and makes room"
    upkeep.prune(trained)


def test_a_quota_is_said_to_be_a_full_disk(
    trained: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At one, as at a limit of a file's size, SQLite says I/O error; what is told must not doubt the source."""
    packed = bundle.export_bundle(trained, tmp_path / "session.rlgpt")
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "other"))
    imported = bundle.import_bundle(packed)  # a database without a log, which is read without a new file
    with no_new_files(), pytest.raises(DiskFull, match=r"copies/.* is full: .* could not be copied"):
        upkeep.backup(imported, tmp_path / "copies")
    upkeep.delete(imported)
    with no_new_files(), pytest.raises(DiskFull, match="other/sessions is full"):
        bundle.import_bundle(packed)


def test_what_is_copied_from_store_to_store_is_told_of_a_quota_alike(
    trained: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = bundle.export_bundle(trained, tmp_path / "session.rlgpt")
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "other"))
    imported = bundle.import_bundle(packed)
    copy = FolderPeer(tmp_path / "third" / "sessions" / imported.id)
    with closing(FolderPeer(imported.path)) as source, closing(copy):
        with no_new_files(), pytest.raises(DiskFull, match="is full: what came was not kept"):
            sync(source, copy)
        sync(source, copy, limit=5)
        with Writer(imported) as writer:
            writer.event(events.Resumed(from_seq=1))
            writer.artifact(b"0" * 2000)
        batch = source.since(copy.head().seq, copy.names())
        with no_new_files(), pytest.raises(DiskFull, match="is full: what came was not kept"):
            copy.append(batch)
        copy.append(batch)
        assert digest(copy) == digest(source)


def test_a_full_disk_is_said_to_be_full(trained: SessionFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr(upkeep, "_prune", full)
    with pytest.raises(DiskFull, match="is full: 0 files and 0 films"):
        upkeep.prune(trained)

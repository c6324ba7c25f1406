"""Any name a folder can have is a home, and whatever lies where a database should be is told, never opened."""

from __future__ import annotations

import os
import pwd
import socket
import sqlite3
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rlgpt.store import bundle, catalog, events, upkeep
from rlgpt.store.catalog import find
from rlgpt.store.commands import parse_command
from rlgpt.store.creation import create
from rlgpt.store.epilogue import append_event, progress_mark
from rlgpt.store.errors import BadPlace, Damaged, StoreError
from rlgpt.store.folder import SessionFolder, prepare, sessions
from rlgpt.store.fork import fork
from rlgpt.store.home import cache
from rlgpt.store.home import home as home_folder
from rlgpt.store.inbox import send
from rlgpt.store.lease import training_slot
from rlgpt.store.reader import Reader
from rlgpt.store.settings import Settings
from rlgpt.store.writer import Writer

ODD = [
    "?", "a?mode=ro", "#", "a#b", "%", "%00", "%41x", "%zz", "&", "=", ";", ":", "a b", " ", "'", '"', "`", "\\",
    "$HOME", "*", "[x]", "\n", "\t", "\x1b[31m", "é", "\u202e", "\U0001f600", "e\u0301", "\udcff", "file:x", "...",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_a_home_of_any_name_holds_sessions(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / name
    monkeypatch.setenv("RLGPT_HOME", str(home))
    made = create(Settings(task="collect_wood"), task_info={}, world_version="1", versions={})
    with training_slot(made.path, on_wait=lambda: None), Writer(made) as writer:
        writer.event(events.Started())
        writer.event(events.Phase(name="Plan"))
        writer.event(events.Phase(name="Code"))
        writer.artifact(b"weights")
    send(made, parse_command("pause"))
    append_event(made.path, events.Ended("stopped", "a signal"))
    assert progress_mark(made.path) == 0
    assert find("collect-wood-0") == made and [s.status for s in catalog.summaries()] == ["ended"]
    child = fork(made)
    packed = bundle.export_bundle(made, tmp_path / "x.rlgpt")
    backed = upkeep.backup(made, home / "copies")
    upkeep.prune(made, frames=True)
    upkeep.size(made)
    assert upkeep.check(made) == upkeep.check(child) == upkeep.check(backed) == []
    upkeep.delete(made)
    assert bundle.import_bundle(packed) == made
    with Reader(made) as reader:
        assert reader.history_at().result == "stopped" and len(reader.commands()) == 1
    assert sorted(p.name for p in home.iterdir()) == ["catalog.db", "copies", "sessions", "slots"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, "x.rlgpt"])


def _socket(path: Path) -> None:
    os.chdir(path.parent)  # the path of a socket has at most 108 bytes
    socket.socket(socket.AF_UNIX).bind(path.name)


INSTEAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a folder": (Path.mkdir, "is a folder, not the database"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere"), "is a link, not the database"),
    "a link to itself": (lambda path: path.symlink_to(path.name), "is a link, not the database"),
    "a link to a pipe": (lambda path: (os.mkfifo(path.with_name("p")), path.symlink_to("p")), "is a link"),
    "a pipe": (os.mkfifo, "is a pipe, not the database"),
    "a socket": (_socket, "is a socket, not the database"),
    "an empty file": (Path.touch, "is empty, not the database"),
    "a text": (lambda path: path.write_text("no database " * 500), "is not a database"),
    "nothing": (lambda path: None, "there is no session in"),
}


@pytest.mark.parametrize("what", INSTEAD)
def test_what_lies_in_place_of_a_database_is_told_and_never_opened(
    what: str, finished: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make, sentence = INSTEAD[what]
    finished.database.unlink()
    make(finished.database)
    assert sessions() == [finished] and find(finished.id[:8]) == finished and find("last") == finished
    (listed,) = catalog.summaries()
    assert listed.id == finished.id and sentence in listed.fault
    (told,) = upkeep.check(finished)
    assert sentence in told
    for attempt in (
        lambda: Reader(finished),
        lambda: Writer(finished),
        lambda: send(finished, parse_command("pause")),
        lambda: fork(finished),
        lambda: bundle.export_bundle(finished, tmp_path / "x.rlgpt"),
        lambda: upkeep.backup(finished, tmp_path / "copies"),
        lambda: upkeep.size(finished),
        lambda: upkeep.prune(finished),
        lambda: append_event(finished.path, events.Ended("stopped", "a signal")),
    ):
        with pytest.raises((StoreError, sqlite3.Error), match=sentence):
            attempt()
    assert not (tmp_path / "x.rlgpt").exists() and not list((tmp_path / "copies").glob("*"))
    upkeep.delete(finished)
    assert sessions() == []


def test_a_home_that_cannot_be_listed_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "file"))
    with pytest.raises(BadPlace, match="cannot be listed: Not a directory"):
        sessions()

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(BadPlace, match="cannot be listed: Permission denied"):
        catalog.summaries()


def test_a_backup_is_for_its_owner_alone_whatever_the_umask(finished: SessionFolder, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        copy = upkeep.backup(finished, tmp_path / "deep" / "copies")
    finally:
        os.umask(before)
    paths = [tmp_path / "deep", tmp_path / "deep" / "copies", copy, *copy.rglob("*")]
    assert len(paths) > 5
    assert not [p for p in paths if stat.S_IMODE(p.stat().st_mode) & 0o077]


def test_what_a_killed_process_left_goes_with_the_next_copy_and_the_next_session(
    finished: SessionFolder, tmp_path: Path
) -> None:
    died = subprocess.Popen(["true"])
    died.wait()
    copies, sessions = tmp_path / "copies", finished.path.parent
    left = copies / f".{finished.id}.{died.pid}"
    theirs = copies / f".{finished.id}.notes"
    young, old = (sessions / f".new-{name}.{died.pid}" for name in ("young", "old"))
    for folder in (left, theirs, young, old):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    upkeep.backup(finished, copies)
    prepare().drop()
    assert theirs.exists() and young.exists()
    assert not left.exists() and not old.exists()


def test_a_user_without_a_home_folder_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a container that was started for a number that it has no user of."""

    def nobody(number: int) -> None:
        raise KeyError(number)

    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "RLGPT_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    for folder in (home_folder, cache):
        with pytest.raises(BadPlace, match="no home folder: set HOME, or RLGPT_HOME"):
            folder()
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    assert home_folder() == tmp_path and cache() == tmp_path / "cache"


def test_a_home_is_for_its_owner_alone_whatever_the_umask(home: Path) -> None:
    """Who can write there can put an rlgpt.toml there, and have keys sent anywhere."""
    before = os.umask(0)
    try:
        create(Settings(task="collect_wood"), task_info={}, world_version="1", versions={})
    finally:
        os.umask(before)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_a_damaged_session_does_not_hinder_the_next(finished: SessionFolder, tmp_path: Path) -> None:
    finished.database.write_bytes(b"x" * 5000)
    made = create(Settings(task="collect_wood"), task_info={}, world_version="1", versions={})
    assert find("collect-wood-0") == made
    with pytest.raises(Damaged):
        Reader(finished)

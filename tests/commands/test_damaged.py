"""One damaged session among sound ones: it is named, and the others get their turn."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from rlgpt.console.commands import children
from rlgpt.console.commands.failure import Exit
from rlgpt.store import events, inbox
from rlgpt.store.address import MARK
from rlgpt.store.commands import parse_command
from rlgpt.store.errors import Damaged
from rlgpt.store.folder import SessionFolder
from rlgpt.store.placing import place
from rlgpt.store.writer import Writer
from tests.store.copies import change

from .conftest import Answer, make, write_iteration, write_plan


@pytest.fixture
def torn() -> SessionFolder:
    """A session that has not ended, with a damaged page that only those who look for it read."""
    unfinished = make()
    with Writer(unfinished) as writer:
        write_plan(writer)
        write_iteration(writer)
    with contextlib.closing(sqlite3.connect(unfinished.database)) as base:
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = base.execute("SELECT rootpage FROM sqlite_master WHERE name = 'text'").fetchone()
        (size,) = base.execute("PRAGMA page_size").fetchone()
    body = bytearray(unfinished.database.read_bytes())
    body[(page - 1) * size : page * size] = b"\xde\xad" * (size // 2)
    unfinished.database.write_bytes(body)
    for tail in ("-wal", "-shm"):
        unfinished.database.with_name(unfinished.database.name + tail).unlink(missing_ok=True)
    return unfinished


@pytest.mark.parametrize("words", [("store", "size"), ("store", "backup", "copies"), ("store", "prune")])
def test_the_others_get_their_turn(rlgpt: Any, torn: SessionFolder, words: tuple[str, ...]) -> None:
    others = [make("one"), make("two")]
    answer: Answer = rlgpt(*words)
    assert all(other.id in answer.out for other in others)
    assert torn.id in answer.out + answer.err and "damaged" in answer.out + answer.err
    assert answer.code == Exit.UNAVAILABLE
    if words[1] == "backup":
        assert sorted(path.name for path in Path("copies").iterdir()) == sorted(other.id for other in others)


def test_pruning_leaves_the_session_that_runs_and_says_so(
    rlgpt: Any, finished: SessionFolder, running: tuple[SessionFolder, Writer]
) -> None:
    busy = running[0].id
    every: Answer = rlgpt("store", "prune")
    assert every.code == 0 and f"session {busy} is already run" in every.out and f"{finished.id}: " in every.out
    told = rlgpt("store", "prune", "--json").document
    assert [one["id"] for one in told["sessions"]] == [finished.id] and busy in told["running"][0]
    assert told["refused"] == []
    named: Answer = rlgpt("store", "prune", busy)
    assert named.code == Exit.REFUSED and "is already run" in named.err


@pytest.mark.parametrize("words", [("resume",), ("export",)])
def test_nothing_is_started_or_sent(rlgpt: Any, torn: SessionFolder, words: tuple[str, ...]) -> None:
    answer: Answer = rlgpt(words[0], torn.id, *words[1:])
    assert answer.code == Exit.UNAVAILABLE and f"`rlgpt store repair {torn.id}`" in answer.err


def test_what_cannot_be_sent_to_a_damaged_session_names_the_damage(torn: SessionFolder) -> None:
    with contextlib.closing(sqlite3.connect(torn.database)) as base:
        (page,) = base.execute("SELECT rootpage FROM sqlite_master WHERE name = 'command'").fetchone()
        (size,) = base.execute("PRAGMA page_size").fetchone()
    body = bytearray(torn.database.read_bytes())
    body[(page - 1) * size : page * size] = b"\xde\xad" * (size // 2)
    torn.database.write_bytes(body)
    with pytest.raises(Damaged, match=f"rlgpt store repair {torn.id}"):
        inbox.send(torn, parse_command("pause", {}))


IMPOSSIBLE = {
    "successes below 0": "UPDATE evaluation SET successes = -5",
    "a score without end": "UPDATE evaluation SET score = 1e308",
    "settings of another kind": "UPDATE session SET settings = json_set(settings, '$.seed', 'x', '$.budget', 5)",
}


@pytest.mark.parametrize("values", IMPOSSIBLE)
def test_values_that_cannot_be_take_no_list_down(rlgpt: Any, finished: SessionFolder, values: str) -> None:
    broken = make("broken")
    with Writer(broken) as writer:
        write_plan(writer)
        write_iteration(writer)
    change(broken.database, IMPOSSIBLE[values])
    listed: Answer = rlgpt("sessions", "--json")
    assert {s["id"]: s["status"] == "damaged" for s in listed.document["sessions"]} == {
        finished.id: False,
        broken.id: True,
    }
    tree: Answer = rlgpt("tree", "--json")
    assert {s["id"]: s["status"] for s in tree.document["sessions"]}[broken.id] == "damaged"
    for words in (("sessions",), ("tree",)):
        answer: Answer = rlgpt(*words)
        assert answer.code == 0 and broken.id in answer.out and "damaged" in answer.out
    ranked: Answer = rlgpt("leaderboard", "collect_wood", "--json")
    assert [row["sessions"] for row in ranked.document["rows"]] == [[finished.id]] and broken.id in ranked.err
    compared: Answer = rlgpt("compare", finished.id, broken.id, "--json")
    assert compared.document["damaged"] == [broken.id] and f"left out: session {broken.id}" in compared.err
    assert compared.document["tasks"][0]["arms"][0]["episodes"] == 100
    alone: Answer = rlgpt("compare", broken.id)
    assert alone.code == Exit.UNAVAILABLE and "no session is left" in alone.err
    checked: Answer = rlgpt("store", "check")
    assert checked.code == Exit.DIFFERENT and broken.id in checked.out
    shown: Answer = rlgpt("show", broken.id)  # of settings it says what is there
    assert shown.code == 0 or f"session {broken.id} is damaged" in shown.err


def test_a_comparison_names_the_session_whose_settings_are_of_another_rlgpt(
    rlgpt: Any, finished: SessionFolder
) -> None:
    change(finished.database, "UPDATE session SET settings = json_set(settings, '$.foresight', 3)")
    answer: Answer = rlgpt("compare", finished.id)
    assert answer.code == Exit.UNAVAILABLE and f"session {finished.id}: the settings" in answer.err


def test_resume_all_goes_on_after_a_machine_was_shut_down_in_order(rlgpt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sends a signal to every process; what an operator stopped stays stopped."""
    reasons = {"shut-down": "stopped by a signal", "stopped": "stopped by the operator"}
    sessions = {name: make(name) for name in reasons}
    for name, session in sessions.items():
        with Writer(session) as writer:
            write_plan(writer)
            writer.event(events.Ended("stopped", reasons[name]))
    started: list[Path] = []
    monkeypatch.setattr(children, "start_worker", started.append)
    monkeypatch.setattr(children, "ask", lambda *words: None)  # the world is here
    assert rlgpt("resume", "--all").code == Exit.OK
    assert started == [sessions["shut-down"].path]


def test_resume_all_goes_on_with_the_dead_alone(
    rlgpt: Any, torn: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, dead, mirror, placed = make("broken"), make("dead"), make("mirror"), make("placed")
    for session in (dead, mirror, placed):
        with Writer(session) as writer:
            write_plan(writer)
    broken.database.write_bytes(b"no database" * 1000)
    (mirror.path / MARK).write_text('{"of": "/elsewhere"}')
    place(placed.path, "127.0.0.1:1")  # a cluster that is gone
    started: list[Path] = []
    monkeypatch.setattr(children, "start_worker", started.append)
    answer: Answer = rlgpt("resume", "--all")
    assert dead.path in started and not {mirror.path, broken.path, placed.path} & set(started)
    assert f"session {placed.id}: " in answer.err
    assert broken.id in answer.err and answer.code in (Exit.REFUSED, Exit.UNAVAILABLE)
    assert rlgpt("resume", "--all", "--on", "auto").code == Exit.USAGE


def test_a_file_that_cannot_be_read_keeps_no_other_session_from_being_checked(rlgpt: Any) -> None:
    unreadable, other = make("unreadable"), make("other")
    name = "f" * 32
    (unreadable.artifacts / name).mkdir()
    with Writer(other) as writer:
        file = writer.artifact(b"weights")
    (other.artifacts / file).write_bytes(b"other")
    answer = rlgpt("store", "check", "--json")
    assert answer.code == Exit.DIFFERENT and len(answer.document["checked"]) == 2
    first, second = sorted(answer.document["problems"], key=lambda problem: other.id in problem)
    assert f"the file {name}" in first and "cannot be read: Is a directory" in first
    assert f"the file {file}" in second and "is damaged" in second

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlgpt.console.feed import Feed
from rlgpt.console.sanitise import clean
from rlgpt.console.view.logs import log_entries, log_line
from rlgpt.console.view.text import plain
from rlgpt.store import events
from rlgpt.store import skills as library
from rlgpt.store import tables as t
from rlgpt.store.folder import SessionFolder
from rlgpt.store.lease import Lease
from rlgpt.store.settings import Settings
from rlgpt.store.writer import Writer

from .conftest import Answer, make

Cli = Callable[..., Answer]


def test_the_keys_of_show_are_a_contract(rlgpt: Cli, finished: SessionFolder) -> None:
    shown = rlgpt("show", finished.id, "--json").document
    assert {"iterations", "incumbent", "test", "cost", "overrides", "status", "reason"} <= set(shown)
    (iteration,) = shown["iterations"]
    assert {"plan", "attempts", "training", "evaluation", "verdict"} <= set(iteration)
    plan = iteration["plan"]
    assert {"revision", "author", "executor", "sub_actions"} <= set(plan)
    assert {"name", "mode", "reason", "pinned"} <= set(plan["sub_actions"][0])
    assert {"sub_action", "version", "error", "measured", "verdict"} <= set(iteration["attempts"][0])
    assert {"env_steps", "decisions", "updates", "warm", "options"} <= set(iteration["training"][0])
    wanted = {"split", "successes", "episodes", "ci95", "options_off", "primitives_off", "dead_loops"}
    assert wanted <= set(iteration["evaluation"][0])


def test_show_pools_the_parts_of_an_evaluation(rlgpt: Cli, finished: SessionFolder) -> None:
    (dev, test) = rlgpt("show", finished.id, "--json").document["iterations"][0]["evaluation"]
    assert (dev["split"], dev["successes"], dev["episodes"], dev["dead_loops"]) == ("dev", 48, 50, 4)
    assert dev["ci95"][0] < 0.96 < dev["ci95"][1]
    assert dev["options_off"] is None
    assert (test["options_off"]["successes"], test["primitives_off"]["successes"]) == (10, 40)


def test_show_tells_people_all_without_a_control_character(rlgpt: Cli, finished: SessionFolder) -> None:
    answer = rlgpt("show", finished.id)
    assert answer.code == 0
    assert "code find_tree: find_tree reason" in answer.out
    assert "test success 0.90 [0.83, 0.94] n=100" in answer.out
    assert not [c for c in answer.out if ord(c) < 32 and c != "\n"]


def test_sessions_are_found_by_prefix_name_and_last(rlgpt: Cli, finished: SessionFolder) -> None:
    for wanted in (finished.id, finished.id[:9], "wood", "last"):
        assert rlgpt("show", wanted, "--json").document["id"] == finished.id


def test_the_list_tells_how_each_session_stands(rlgpt: Cli, finished: SessionFolder) -> None:
    other = make("other")
    listed = rlgpt("sessions", "--json").document["sessions"]
    assert {s["id"]: s["status"] for s in listed} == {finished.id: "finished", other.id: "created"}
    assert [s["dev"]["rate"] for s in listed if s["id"] == finished.id] == [0.96]
    assert "rule-based model" in rlgpt("sessions").out


def test_a_damaged_session_does_not_hide_the_others(rlgpt: Cli, finished: SessionFolder, home: Path) -> None:
    broken = home / "sessions" / "000000-000000-xx"
    broken.mkdir()
    (broken / "session.db").write_bytes(b"this is no database" * 100)
    answer = rlgpt("sessions", "--json")
    assert answer.code == 0
    by_id = {s["id"]: s for s in answer.document["sessions"]}
    assert by_id[broken.name]["error"] and by_id[finished.id]["status"] == "finished"
    *table, told = rlgpt("sessions").out.splitlines()
    row = next(line for line in table if line.startswith(broken.name))
    assert row.split() == [broken.name, "damaged"] and broken.name in told and len(told) > len(row.strip())


def test_a_folder_that_is_none_of_a_session_is_not_taken_for_one(
    rlgpt: Cli, finished: SessionFolder, home: Path, tmp_path: Path
) -> None:
    copied = home / "sessions" / "My copy"
    shutil.copytree(finished.path, copied)
    for other in ("lost+found", "zz-notes"):
        (home / "sessions" / other).mkdir()
    lost = home / "sessions" / "000000-000000-xx"
    lost.mkdir()  # its database is gone
    listed = [one["id"] for one in rlgpt("sessions", "--json").document["sessions"]]
    assert sorted(listed) == sorted([lost.name, finished.id, copied.name])
    shutil.rmtree(copied)
    assert rlgpt("show", "last", "--json").document["id"] == finished.id
    lost.rmdir()
    there = tmp_path / "there"
    home.rename(there)
    pulled = rlgpt("store", "pull", "--from", there, "--json")
    assert pulled.code == 0 and [one["id"] for one in pulled.document["sessions"]] == [finished.id]


def test_a_session_without_the_file_of_its_skills_is_forked_only_if_it_had_none(rlgpt: Cli, home: Path) -> None:
    kept = Path(__file__).parent.parent / "sessions"
    some = rlgpt("import", kept / "0003-finished.rlgpt", "--json").document["id"]
    refused = rlgpt("fork", some, "--no-start")
    assert refused.code == 4 and "can be looked at and replayed, not forked" in refused.err
    assert [path.name for path in (home / "sessions").iterdir()] == [some]
    none = rlgpt("import", kept / "0004-finished.rlgpt", "--json").document["id"]
    late = rlgpt("fork", none, "--no-start")
    assert late.code == 4 and "lacks the checkpoint of a policy" in late.err
    child = rlgpt("fork", none, "--no-start", *re.findall(r"--at|(?<=--at )\d+", late.err), "--json").document["id"]
    (skills,) = (home / "sessions" / child / "artifacts").iterdir()
    assert library.read(skills.read_bytes()) == []


def test_a_fork_that_nobody_started_has_no_dead_worker_and_shows_what_waits_for_it(
    rlgpt: Cli, finished: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = make("child").id
    with Writer(SessionFolder(finished.path.parent / child)) as writer:
        writer.event(events.Forked(parent=finished.id, seq=1, changed=[]))
    monkeypatch.setattr("rlgpt.console.commands.follow.START_PATIENCE", 0.0)
    waited = rlgpt("wait", child)
    assert waited.code == 4 and "no worker was ever started" in waited.err
    assert rlgpt("advise", child, "dig deeper").code == 0
    (queued,) = [c for c in rlgpt("show", child, "--json").document["overrides"] if c["state"] == "queued"]
    assert (queued["kind"], queued["payload"]["text"]) == ("advise", "dig deeper")
    assert "queued: advise" in rlgpt("show", child).out


def test_wait_tells_the_end_by_its_exit_code(rlgpt: Cli) -> None:
    for status, reason, code in (
        ("succeeded", "dev success reached the target", 0),
        ("finished", "all 4 iterations are done", 0),
        ("failed", "the worker died 4 times", 6),
        ("stopped", "stopped by the operator", 7),
        ("finished", "the budget of 5 USD for language models is used up", 8),
    ):
        session = make(f"s{code}{status}")
        with Writer(session) as writer:
            writer.event(events.Started())
            writer.event(events.Ended(status=status, reason=reason))
        answer = rlgpt("wait", session.id, "--json")
        assert answer.code == code
        assert answer.out.splitlines()[-1].startswith(f'{{"id":"{session.id}","status":"{status}"')


def test_logs_show_the_chosen_level_and_worse(rlgpt: Cli) -> None:
    session = make()
    with Writer(session) as writer, writer.transaction() as tx:
        for level in ("debug", "info", "warning", "error"):
            tx.log(level, f"{level}_said", n=1)
    lines = rlgpt("logs", session.id, "--level", "warning").out.splitlines()
    assert [line.split()[-2] for line in lines] == ["warning_said", "error_said"]
    assert rlgpt("logs", session.id, "--level", "loud").code == 2


@pytest.mark.parametrize("words", [(), ("--level", "debug"), ("--level", "warning"), ("-f",)])
def test_logs_are_the_lines_of_the_log_pane(rlgpt: Cli, finished: SessionFolder, words: tuple[str, ...]) -> None:
    with Writer(finished) as writer, writer.transaction() as tx:
        tx.log("warning", "two\nlines", n=1)
    feed = Feed(finished.path)
    feed.open()
    entries = log_entries(feed.moment(), 10_000, words[1] if len(words) == 2 else "info")
    feed.close()
    pane = [plain(line) for entry in entries for line in entry.lines]
    assert rlgpt("logs", finished.id, *words).out.splitlines() == pane
    records = [json.loads(line) for line in rlgpt("logs", finished.id, *words, "--json").out.splitlines()]
    assert [clean(plain(log_line(record))) for record in records] == pane
    assert all(set(record) == {"seq", "at", "active", "level", "event", "fields"} for record in records)
    assert any("two lines  n=1" in line for line in pane)


@pytest.mark.parametrize("as_fork", [False, True])
def test_followed_logs_wait_for_a_worker_that_was_started_a_moment_ago(
    rlgpt: Cli, monkeypatch: pytest.MonkeyPatch, as_fork: bool
) -> None:
    session = make()
    if as_fork:
        with Writer(session) as writer:
            writer.event(events.Forked(parent="another", seq=1, changed=[]))
    assert rlgpt("logs", "-f", session.id).out == "", "no worker was started"
    session.log.touch()  # as `start_worker` does, before the worker has the lock
    at_work = contextlib.ExitStack()

    def a_moment_later(seconds: float) -> None:
        if not Lease.held(session.path):
            at_work.enter_context(Lease.acquire(session.path))
            with Writer(session) as writer:
                writer.event(events.Started())
        else:
            at_work.close()

    monkeypatch.setattr("rlgpt.console.commands.sessions.time.sleep", a_moment_later)
    followed = rlgpt("logs", "-f", session.id)
    assert followed.code == 0 and followed.out.endswith("started\n")


def test_followed_logs_tell_what_comes_until_the_worker_ends(finished: SessionFolder) -> None:
    words = [sys.executable, "-m", "rlgpt.console.cli", "logs", "-f", finished.id]
    with Lease.acquire(finished.path), Writer(finished) as writer:
        following = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert following.stdout is not None
        assert following.stdout.readline().endswith("started\n")
        with writer.transaction() as tx:
            tx.log("info", "said while it was followed")
        assert any("said while it was followed" in line for line in following.stdout)
    assert following.wait() == 0


def test_what_does_not_exist_is_a_sentence_and_its_exit_code(rlgpt: Cli) -> None:
    for words, code in (
        (("show", "nobody"), 3), (("frobnicate",), 2), (("show",), 2),
        (("run", "x", "--headless", "--detach"), 2), (("attach",), 3), (("replay", "nobody"), 3),
    ):  # fmt: skip
        answer = rlgpt(*words)
        assert answer.code == code
        assert answer.err.startswith("rlgpt: ") and len(answer.err.splitlines()) == 1
    assert rlgpt("show", "nobody", "--json").document["exit_code"] == 3


def test_the_console_without_a_terminal_points_to_the_headless_twin(rlgpt: Cli) -> None:
    answer = rlgpt()
    assert answer.code == 2 and "rlgpt sessions" in answer.err


def test_the_help_of_run_tells_the_defaults_that_the_settings_have(rlgpt: Cli) -> None:
    shown = " ".join(rlgpt("run", "--help").out.split())
    told = dict(re.findall(r"--([a-z-]+) <[^>]*>+.*?\[default: \(([^)]*)\)\]", shown))
    settings = Settings(task="collect_wood")
    values = {
        "world": settings.world, "llm": settings.llm.kind, "model": settings.llm.model, "seed": settings.seed,
        "iterations": settings.loop.iterations, "env-steps": settings.budget.env_steps,
        "max-cost": settings.budget.cost, "max-tokens": settings.budget.tokens, "device": settings.device,
        "kernel": settings.kernel, "observation": settings.observation, "skills": settings.skills,
        "critic": settings.critic, "host-mode": settings.host_mode,
    }  # fmt: skip
    assert {name: told.get(name) for name in values} == {
        name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in values.items()
    }
    assert told["max-hours"] == "no limit" and settings.budget.hours is None


@pytest.mark.parametrize("seeds", ["0", "51"])
def test_a_number_of_seeds_that_cannot_be_is_refused_before_anything_is_started(rlgpt: Cli, seeds: str) -> None:
    answer = rlgpt("run", "collect_wood", "--seeds", seeds, "--detach")
    assert answer.code == 2 and "from 1 to 50" in answer.err
    assert rlgpt("run", "collect_wood", "--seeds", "2").code == 2


def test_one_is_told_as_one(rlgpt: Cli, finished: SessionFolder) -> None:
    assert "1 session," in rlgpt("store", "size").out
    assert "1 session checked, no problems" in rlgpt("store", "check").out
    make("other")
    assert "2 sessions," in rlgpt("store", "size").out


def test_a_run_that_was_cut_off_does_not_run_in_a_session_that_ended(rlgpt: Cli) -> None:
    session = make("cut")
    with Writer(session) as writer:
        writer.event(events.Started())
        with writer.transaction() as tx:
            tx.add(t.Iteration(sub_task=0, number=0))
            numbers = {"sub_task": 0, "iteration": 0, "revision": 1, "env_steps_planned": 10}
            tx.add(t.TrainingRun(run=1, config_hash="", **numbers))
        assert "PPO run 1 running" in rlgpt("show", "cut").out
        writer.event(events.Ended("stopped", "stopped by the operator"))
    assert "PPO run 1 cut off" in rlgpt("show", "cut").out


def test_what_is_deleted_is_what_was_asked_about(
    rlgpt: Cli, finished: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[SessionFolder] = []

    def confirm(question: str, err: bool) -> bool:
        assert finished.id in question
        made.append(make("newer"))  # in another terminal; it is `last` from now on
        return True

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", confirm)
    answer = rlgpt("store", "delete", "last")
    assert answer.code == 0 and f"session {finished.id} is deleted" in answer.out
    assert made[0].path.exists() and not finished.path.exists()


def test_a_question_is_for_people_and_never_part_of_a_document(
    rlgpt: Cli, finished: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    answer = rlgpt("store", "delete", finished.id, "--json")
    assert answer.code == answer.document["exit_code"] == 2 and "say --yes" in answer.document["error"]
    answer = rlgpt("store", "delete", finished.id)
    assert answer.code == 4 and answer.out.strip() == "" and "for good?" in answer.err
    assert finished.path.exists()


def test_a_session_of_another_user_keeps_no_other_from_its_turn(
    rlgpt: Cli, finished: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, real = make("of root"), os.open

    def opened(path: Any, *args: Any, **more: Any) -> int:
        if str(path) == str(other.path / "worker.lock"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **more)

    monkeypatch.setattr("rlgpt.store.lease.os.open", opened)
    pruned = rlgpt("store", "prune", "--json")
    assert pruned.code == 5 and [one["id"] for one in pruned.document["sessions"]] == [finished.id]
    assert "Permission denied" in pruned.document["refused"][0]

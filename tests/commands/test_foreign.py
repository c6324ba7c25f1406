"""An imported session that names a variable and a server is asked about before it runs, and so are its forks."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from rlgpt.console.commands.words import beginning_with, complete_session
from rlgpt.store import events, foreign
from rlgpt.store.catalog import find
from rlgpt.store.folder import SessionFolder
from rlgpt.store.fork import fork
from rlgpt.store.repair import repair
from rlgpt.store.writer import Writer

from .conftest import Answer, make, write_iteration, write_plan

Cli = Callable[..., Answer]

LLM = {"kind": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1", "api_key_env": "MY_SECRET"}


@pytest.fixture(params=["bundle", "jsonl", "pull", "repair"])
def imported(rlgpt: Cli, tmp_path: Path, request: pytest.FixtureRequest) -> SessionFolder:
    """A session that came from elsewhere, each way."""
    session = make(llm=LLM)
    with Writer(session) as writer:
        write_plan(writer)
        writer.event(events.Phase(name="train"))
        write_iteration(writer)
        writer.event(events.Ended(status="stopped", reason="enough"))
    if request.param == "pull":
        shutil.copytree(session.path, tmp_path / "there" / "sessions" / session.id)
        shutil.rmtree(session.path)
        assert rlgpt("store", "pull", "--from", tmp_path / "there").code == 0
        return session
    kind = "jsonl" if request.param == "jsonl" else "bundle"
    rlgpt("export", session.id, "--format", kind, "-o", tmp_path / "one")
    shutil.rmtree(session.path)
    assert rlgpt("import", tmp_path / "one").code == 0
    return find(repair(session).id) if request.param == "repair" else session


def test_an_imported_session_sends_no_key_before_it_is_trusted(
    rlgpt: Cli, imported: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []

    def start(words: object, **_: object) -> SimpleNamespace:
        started.append(words)
        return SimpleNamespace(pid=1)

    monkeypatch.setattr("rlgpt.console.commands.children.subprocess.Popen", start)
    monkeypatch.setattr("rlgpt.console.commands.resume._need_world", started.append)
    monkeypatch.setattr("rlgpt.console.commands.operate.PATIENCE", 0.1)
    answer = rlgpt("resume", imported.id)
    assert answer.code == 4 and not started
    assert "would send the value of MY_SECRET to http://127.0.0.1:9/v1" in answer.err
    assert f"`rlgpt resume {imported.id} --trust-settings`" in answer.err
    assert rlgpt("resume", "--all", "--trust-settings").code == 2
    rlgpt("resume", imported.id, "--trust-settings")
    assert started and not foreign.is_foreign(imported.path)


def test_a_fork_of_it_is_asked_about_too_and_one_with_settings_of_ones_own_is_not(
    rlgpt: Cli, imported: SessionFolder
) -> None:
    answer = rlgpt("fork", imported.id, "--detach")
    assert answer.code == 4 and "would send the value of MY_SECRET" in answer.err
    child = fork(imported, None)
    assert foreign.is_foreign(child.path)
    assert not foreign.reach_of({"llm": {**LLM, "api_key_env": None}})


def test_a_shell_is_offered_no_word_that_it_would_run() -> None:
    good, bad = make("wood-2"), make("best-run$(touch pwned)")
    assert beginning_with("", ["a b", "a\x1b[31m", "`id`", "$(id)", "a;b", "reach_end", "my.world:task"]) == [
        "reach_end", "my.world:task",
    ]  # fmt: skip
    assert complete_session("wo") == ["wood-2"] and complete_session("best") == []
    assert {good.id, bad.id} <= set(complete_session(""))

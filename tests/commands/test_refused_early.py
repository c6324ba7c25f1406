"""What is wrong is said before anything is made, of the thing that is wrong, and with the exit code for it."""

from __future__ import annotations

import concurrent.futures
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rlgpt.store import events
from rlgpt.store.catalog import names
from rlgpt.store.folder import SessionFolder, sessions
from rlgpt.store.fork import fork
from rlgpt.store.settings import Refused, settle
from rlgpt.store.writer import Writer

from .conftest import Answer, make, write_plan

Cli = Callable[..., Answer]


@pytest.mark.parametrize("how", ["a folder in the place of rlgpt.toml", "a password in the address"])
def test_a_session_whose_worker_could_not_start_is_not_made(
    rlgpt: Cli, finished: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how.startswith("a folder"):
        (tmp_path / "rlgpt.toml").mkdir()
    else:
        monkeypatch.setenv("RLGPT_STORE", "postgresql://me:secret@host/base")
    for words in (("run", "collect_drink", "--detach"), ("fork", finished.id, "--detach")):
        answer = rlgpt(*words)
        assert answer.code == 4 and answer.err.startswith("rlgpt: ") and "secret" not in answer.err
    assert [session.id for session in sessions()] == [finished.id]


@pytest.mark.parametrize("variable", ["RLGPT_LLM__EXTRA", "RLGPT_BUDGET", "rlgpt_method__rl"])
def test_a_variable_that_holds_no_json_is_named(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "{bad")
    with pytest.raises(Refused, match=f"the variable {variable} must hold JSON, and does not: .*column 2") as refused:
        settle({"task": "collect_wood"})
    assert "rlgpt.toml" not in str(refused.value)


def test_a_value_where_a_group_of_settings_belongs_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLGPT_BUDGET", "5")
    with pytest.raises(Refused, match=r"^budget is a group of settings, not 5$"):
        settle({"task": "collect_wood"})


@pytest.mark.parametrize("line", ["seed = true", "[budget]\ncost = false", "[llm]\nparallel = true"])
def test_true_is_no_number_in_a_file(tmp_path: Path, line: str) -> None:
    (tmp_path / "rlgpt.toml").write_text(line)
    with pytest.raises(Refused, match="cannot be true or false"):
        settle({"task": "collect_wood"})
    (tmp_path / "rlgpt.toml").write_text("review = true\n[loop]\niterations = 2")
    assert settle({"task": "collect_wood"}).review


@pytest.mark.parametrize("what", ["sessions", "forks"])
def test_what_is_made_at_once_gets_different_names(what: str) -> None:
    parent = make()
    with Writer(parent) as writer:
        write_plan(writer)
        writer.event(events.Phase(name="Plan"))
    at_once = 6
    barrier = threading.Barrier(at_once)

    def begin(_: int) -> SessionFolder:
        barrier.wait()
        return make("") if what == "sessions" else fork(parent)

    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        made = list(pool.map(begin, range(at_once)))
    stem = "collect-wood-7" if what == "sessions" else "wood-fork"
    assert {names()[session.id] for session in made} == {stem, *(f"{stem}-{n}" for n in range(2, at_once + 1))}


def test_an_export_goes_through_a_pipe_and_a_redirected_standard_output(
    finished: SessionFolder, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = [sys.executable, "-P", "-m", "rlgpt.console.cli", "export", finished.id, "--format", "jsonl", "-o"]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_bytes)
        sent = subprocess.run([*words, pipe], capture_output=True, check=True)
        through_pipe = read.result(timeout=60)
    with (tmp_path / "there.jsonl").open("wb") as file:
        subprocess.run([*words, "/dev/stdout"], stdout=file, check=True)
    assert sent.stdout == b"" and through_pipe == (tmp_path / "there.jsonl").read_bytes()
    assert through_pipe.endswith(b"}\n") and through_pipe.startswith(b'{"format"')


def test_a_device_that_is_full_is_a_sentence(rlgpt: Cli, finished: SessionFolder) -> None:
    answer = rlgpt("export", finished.id, "-o", "/dev/full")
    assert answer.code == 5 and answer.err == "rlgpt: /dev/full cannot be written: No space left on device\n"


@pytest.mark.parametrize(
    "words",
    [
        ("export", "wood", "-o", ""),
        ("report", "wood", "-o", ""),
        ("compare", "wood", "--svg", ""),
        ("compare", "wood", "--csv", ""),
        ("experiment", "arms", "--evidence", "", "--dry-run"),
        ("skills", "export", ""),
        ("store", "backup", ""),
    ],
)
def test_a_file_without_a_name_is_refused(
    rlgpt: Cli, finished: SessionFolder, tmp_path: Path, words: tuple[str, ...]
) -> None:
    before = sorted(tmp_path.iterdir())
    answer = rlgpt(*words)
    assert answer.code == 2 and "it has no name" in answer.err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("limit", ["1_000", "٣", "1e999", "nan", "", "0x10", "many"])
def test_a_limit_is_written_in_digits(rlgpt: Cli, running: object, limit: str) -> None:
    answer = rlgpt("budget", "wood", "cost", limit)
    assert answer.code == 2 and "a limit is a number, or `none`" in answer.err


def test_a_copy_that_cannot_be_made_is_told_in_json(rlgpt: Cli, finished: SessionFolder, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = rlgpt("store", "backup", tmp_path / "file" / "inside", finished.id, "--json")
    assert refused.code != 0 and refused.document["exit_code"] == refused.code and refused.document["error"]
    copied = rlgpt("store", "backup", tmp_path / "copies", "--json").document
    assert copied == {"copies": [str(tmp_path / "copies" / finished.id)], "refused": []}


def test_words_that_mean_nothing_are_usage(rlgpt: Cli, finished: SessionFolder) -> None:
    for words in (("store", "init", "foo"), ("tag", finished.id, "a" * 300), ("store", "push", "--to", "http://x")):
        assert rlgpt(*words).code == 2, words
    assert "Value error" not in rlgpt("experiment", "nope").err
    assert "did you mean" not in rlgpt("run", "", "--detach").err


def test_a_worker_is_not_started_where_the_shared_store_cannot_be_spoken_to(
    monkeypatch: pytest.MonkeyPatch, rlgpt: Cli
) -> None:
    monkeypatch.setenv("RLGPT_STORE", "postgresql://host/base")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert rlgpt("run", "collect_drink", "--detach").code == 5
    assert not sessions()


def test_a_fork_whose_world_is_gone_is_not_made_to_fail_at_once(rlgpt: Cli) -> None:
    parent = make(world="a_world_that_is_gone")
    with Writer(parent) as writer:
        write_plan(writer)
        writer.event(events.Phase(name="Plan"))
    refused = rlgpt("fork", parent.id, "--detach")
    assert refused.code == 2 and "a_world_that_is_gone" in refused.err
    assert [session.id for session in sessions()] == [parent.id]
    assert rlgpt("fork", parent.id, "--no-start").code == 0, "it may be looked at without its world"


@pytest.fixture
def parent() -> SessionFolder:
    parent = make(critic="none")
    with Writer(parent) as writer:
        write_plan(writer)
        writer.event(events.Phase(name="Plan"))
    return parent


@pytest.mark.parametrize("start", ["--detach", "--no-start"])
def test_a_fork_that_nobody_could_answer_is_not_made_to_fail_at_once(
    rlgpt: Cli, parent: SessionFolder, start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    other = make("other", critic="model")
    for kind, code, words in (
        ("replay:nope", 3, "there is no session 'nope'"),
        ("openai", 5, "set OPENAI_API_KEY"),
        (f"replay:{other.id}", 4, "critic model, not none"),
        ("banana", 2, "there is no --llm 'banana'"),
    ):
        refused = rlgpt("fork", parent.id, "--set", f"llm.kind={kind}", start)
        assert refused.code == code and words in refused.err
    assert sorted(session.id for session in sessions()) == sorted([parent.id, other.id])


def test_a_name_that_is_set_names_the_fork(rlgpt: Cli, parent: SessionFolder) -> None:
    made = rlgpt("fork", parent.id, "--set", "name=foo", "--no-start", "--json")
    assert made.document["name"] == "foo"
    both = rlgpt("fork", parent.id, "--set", "name=foo", "--name", "bar", "--no-start")
    assert both.code == 2 and "say one" in both.err

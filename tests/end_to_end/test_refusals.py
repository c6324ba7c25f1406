"""What cannot be done is said in one clear sentence with its exit code, and nothing is lost by asking."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rlgpt.agents.rules.model import respond
from rlgpt.store.folder import SessionFolder
from rlgpt.store.reader import Reader
from tests.agents.chat_server import ChatServer
from tests.end_to_end.conftest import Make
from tests.end_to_end.typed import rlgpt

USAGE, REFUSED, UNAVAILABLE, BUDGET = 2, 4, 5, 8
RUN = ("run", "make_wood_pickaxe", "--llm", "rules", "--headless")
LOCAL = ("run", "make_wood_pickaxe", "--base-url", "http://127.0.0.1:9/v1", "--model", "m")
MOUNTS_DOUBLE = """
import psutil

psutil.disk_partitions = lambda all=False: [psutil._ntp.sdiskpart("server:/share", "/", "nfs4", "rw")]
"""
"""A machine whose only disk is a share: stands in for what the system says of its mounts, and for nothing else."""


def spent_in(home: Path) -> float:
    """USD of all sessions of this home."""
    spent = 0.0
    for folder in (home / "sessions").iterdir():
        with Reader(SessionFolder(folder)) as reader:
            spent += reader.history_at().spent.cost
    return spent


@pytest.mark.parametrize(
    ("words", "code", "clause"),
    [
        (("run", "make_wooden_pickaxe"), USAGE, "the world crafter has no task 'make_wooden_pickaxe'; did you mean"),
        (("run", "dance"), USAGE, "the world crafter has no task 'dance'; `rlgpt tasks --world crafter` lists them"),
        (("run", "dance", "--world", "minecraft2"), USAGE, "minecraft2"),
        (("run", "make_wood_pickaxe", "--llm", "openai"), UNAVAILABLE, "needs an API key: set OPENAI_API_KEY"),
        (("run", "make_wood_pickaxe", "--provider", "mistral"), UNAVAILABLE, "needs an API key: set MISTRAL_API_KEY"),
        (("run", "make_wood_pickaxe", "--provider", "azure"), USAGE, "give the one of your resource with --base-url"),
        (("run", "make_wood_pickaxe", "--provider", "acme"), USAGE, "llm.provider"),
        (("run", "make_wood_pickaxe", "--provider", "ollama", "--price-in", "cheap"), USAGE, "llm.price_in"),
        (
            (*LOCAL, "--max-cost", "1"),
            USAGE,
            "a budget of 1 USD cannot hold, because no price of m at http://127.0.0.1:9",
        ),
        (("run", "make_wood_pickaxe", "--llm", "replay:nobody"), 3, "there is no session 'nobody'"),
        (("run", "make_wood_pickaxe", "--device", "tpu"), USAGE, "device"),
        (("run", "make_wood_pickaxe", "--llm", "rules", "--on", ""), USAGE, "it is empty: name a place"),
        (("run", "make_wood_pickaxe", "--llm", "rules", "--games-on", ""), USAGE, "it is empty: name a place"),
        (("run", "make_wood_pickaxe", "--llm", "rules", "--candidates", "x"), USAGE, "as an integer. `rlgpt run"),
        (
            ("run", "make_wood_pickaxe", "--llm", "rules", "--games-on", "local"),
            UNAVAILABLE,
            "are not played elsewhere",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)
def test_a_session_that_cannot_be_is_refused_before_there_is_one(
    tmp_path: Path, words: tuple[str, ...], code: int, clause: str
) -> None:
    said = rlgpt(tmp_path / "home", *words, "--headless")
    assert said.code == code, said.err
    assert clause in said.sentence
    assert not list((tmp_path / "home").glob("sessions/*"))


def test_a_network_file_system_is_refused_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "double").mkdir()
    (tmp_path / "double" / "sitecustomize.py").write_text(MOUNTS_DOUBLE)
    said = rlgpt(tmp_path / "home", *RUN, PYTHONPATH=str(tmp_path / "double"))
    assert said.code == UNAVAILABLE
    assert "is on a network file system (nfs4), where SQLite loses data: set RLGPT_HOME" in said.sentence
    assert not (tmp_path / "home" / "sessions").exists()


def test_a_session_moved_to_a_network_file_system_is_not_resumed_there(make: Make, tmp_path: Path) -> None:
    session = make("make_wood_pickaxe", start=False)
    (tmp_path / "double").mkdir()
    (tmp_path / "double" / "sitecustomize.py").write_text(MOUNTS_DOUBLE)
    said = rlgpt(tmp_path / "home", "resume", session.folder.id, PYTHONPATH=str(tmp_path / "double"))
    assert said.code == UNAVAILABLE and "network file system (nfs4)" in said.sentence
    assert session.history().status == "created"


def test_a_reached_budget_ends_the_session_with_what_it_has(make: Make, tmp_path: Path) -> None:
    said = rlgpt(tmp_path / "home", *RUN, "--env-steps", "300", "--seed", "1")
    assert said.code == BUDGET, said.out + said.err
    last = said.out.splitlines()[-1]
    assert "finished: the budget of 300 env steps is used up" in last
    (folder,) = (tmp_path / "home" / "sessions").iterdir()
    with Reader(SessionFolder(folder)) as reader:
        history = reader.history_at()
    assert history.status == "ended" and history.spent.env_steps >= 300 and history.attempts


def test_the_budget_of_a_day_counts_all_sessions_and_ends_the_next_one(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    with ChatServer(lambda request: respond(request) | {"usage": usage}) as server:
        asked = ("run", "make_wood_pickaxe", "--headless", "--base-url", server.url, "--model", "m")
        priced = (*asked, "--price-in", "100", "--price-out", "100", "--env-steps", "300")
        first = rlgpt(tmp_path / "home", *priced)
        assert first.code == BUDGET and "300 env steps is used up" in first.out, first.out + first.err
        spent = spent_in(tmp_path / "home")
        said = rlgpt(tmp_path / "home", *priced, RLGPT_BUDGET__DAILY_COST=f"{spent:.6f}")
    assert spent > 0 and said.code == BUDGET, said.out + said.err
    assert "today's budget of" in said.out.splitlines()[-1] and "over all sessions is reached" in said.out


def test_a_worker_without_its_key_says_so_once_and_is_not_started_again(make: Make) -> None:
    llm = {"kind": "openai", "base_url": "http://127.0.0.1:9/v1", "api_key_env": "NOBODY_HAS_THIS_KEY"}
    session = make("make_wood_pickaxe", llm=llm)
    history = session.finish()
    assert (history.status, history.result) == ("ended", "failed")
    assert "needs an API key: set NOBODY_HAS_THIS_KEY in the environment" in history.reason
    assert [row["kind"] for row in session.rows("event")] == ["ended"]


def test_a_database_of_a_newer_rlgpt_is_not_opened(make: Make, tmp_path: Path) -> None:
    session = make("make_wood_pickaxe", start=False)
    with closing(sqlite3.connect(session.folder.database)) as base:
        base.execute("UPDATE alembic_version SET version_num = '9999'")
        base.commit()
    before = session.folder.database.read_bytes()
    for words in (("show",), ("resume",), ("wait",), ("logs",), ("export", "--format", "bundle")):
        said = rlgpt(tmp_path / "home", words[0], session.folder.id, *words[1:])
        assert said.code == UNAVAILABLE, (words, said.out, said.err)
        assert "has schema 9999, newer than this rlgpt's" in said.sentence and "update rlgpt" in said.sentence
    assert session.folder.database.read_bytes() == before


def test_a_stale_revision_and_a_second_worker_are_turned_away_while_the_session_runs(
    make: Make, tmp_path: Path
) -> None:
    session = make("make_wood_pickaxe", review=True)
    plan = session.until(lambda h: h.pending_plan, 150).pending_plan
    assert plan is not None
    stale = ("--sub-action", plan.items[0].name, "--pin", "--revision", "7")
    said = rlgpt(tmp_path / "home", "override", session.folder.id, *stale)
    assert said.code == REFUSED
    assert "you saw revision 7, by now it is revision 1: look at it and edit again" in said.sentence
    said = rlgpt(tmp_path / "home", "approve", session.folder.id, "--revision", "7")
    assert said.code == REFUSED and "you saw revision 7, the plan that waits is revision 1" in said.sentence
    said = rlgpt(tmp_path / "home", "resume", session.folder.id)
    assert said.code == REFUSED and "the session is not paused" in said.sentence
    assert not session.history().plans[1].items[0].pinned
    said = rlgpt(tmp_path / "home", "approve", session.folder.id, "--revision", "1")
    assert said.code == 0, said.err
    session.until(lambda h: h.revision == 1, 100)

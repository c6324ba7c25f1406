"""A finished session in the console: replayed, forked, compared, exported, deleted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rlgpt.store.folder import SessionFolder
from rlgpt.store.reader import Reader
from tests.console.terminal import Terminal
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.consoles import CTRL_S, CTRL_U, ENTER, ESCAPE, RIGHT, SPACE, command, console, filtered
from tests.end_to_end.sameness import outcome

TRAINED = {"loop": {"iterations": 1, "dev_first": 4, "target": 1.0}, "budget": {"env_steps": 9_000}}


@pytest.fixture(scope="module")
def session(make_shared: Make) -> Running:
    """Two iterations, the second with PPO; it took no commands."""
    session = make_shared("collect_iron", **TRAINED)
    assert session.finish(200).runs, "this session never trained, so it shows nothing"
    return session


def home(session: Running) -> str:
    return session.environment["RLGPT_HOME"]


def row(t: Terminal) -> int:
    """Where the timeline stands."""
    found = re.search(r"row ([\d,]+) of", t.text())
    assert found is not None, t.text()
    return int(found[1].replace(",", ""))


def firsts(session: Running) -> dict[str, list[int]]:
    """Rows that a jump leads to."""
    history = session.history()
    verdicts = [a.verdict for a in history.attempts] + [i.verdict for i in history.iterations]
    return {
        "P": [plan.seq + len(plan.items) for plan in history.plans.values()],
        "C": [attempt.seq for attempt in history.attempts],
        "V": sorted(v.seq for v in verdicts if v),
    }


def test_a_replay_plays_stands_steps_and_jumps_and_its_right_end_is_the_end(session: Running) -> None:
    end, marks = session.history().seq, firsts(session)
    with console(home(session), "replay", session.folder.id) as t:
        t.until("▶ PLAY")
        t.press(",,")
        t.until("0.25x")
        t.keys(SPACE)
        t.until("❚❚ REPLAY")
        t.press("." * 10)
        t.until("500x")
        t.keys(SPACE)
        t.until(" END ")
        t.keys("H")
        t.until(lambda text: "❚❚ REPLAY" in text and "row 1 of" in text and "has not planned yet" in text)
        t.keys("]", "]")
        t.until("row 3 of")
        t.keys("[")
        t.until("row 2 of")
        for key, wanted in marks.items():
            t.keys("H")
            t.until("row 1 of")
            for place in wanted[:2]:
                t.keys(key)
                t.until(f"row {place:,} of {end:,}")
        t.keys("O")
        t.until("no later override")
        t.keys("l")
        t.until(" END ")
        t.keys("{")
        t.until(lambda text: "❚❚ REPLAY" in text and "row " in text)
        assert 1 < row(t) < end
        t.keys("}", "}")
        t.until(" END ")


def test_the_replay_of_a_row_shows_what_was_known_then_and_nothing_later(session: Running) -> None:
    history = session.history()
    second = history.plans[2].seq + len(history.plans[2].items)
    with console(home(session), "replay", session.folder.id, size=(200, 60)) as t:
        t.until("▶ PLAY")
        t.keys(SPACE, "H", "P")
        t.until("Plan 1 ·")
        t.until(lambda text: "not tried" in text and "accepted" not in text)
        t.keys("P")
        t.until(f"row {second:,} of")
        text = t.until(lambda text: "Plan 2 ·" in text)
        assert "iteration 1/1" in text and "test" not in text
        t.keys("l")
        t.until(lambda text: "test · code alone" in text)


def test_an_unchanged_fork_repeats_its_parents_next_iteration_exactly(session: Running) -> None:
    verdict = session.history().iterations[0].verdict
    assert verdict is not None
    with console(home(session)) as t:
        t.until("collect-iron-1")
        t.keys("r")
        t.until("▶ PLAY")
        t.keys(SPACE, "H", "n")
        while row(t) <= verdict.seq:
            before = row(t)
            t.keys("n")
            t.until(lambda text, before=before: f"row {before:,} of" not in text)  # type: ignore[misc]
        t.keys("f")
        t.until("A new session starts from the last complete phase")
        t.keys(CTRL_S)
        t.until(lambda text: "collect-iron-1-fork" in text and "LIVE" in text, 60)
        t.until(lambda text: "finished" in text and " END " in text, 120)
    forked = next(f for f in find(home(session)) if f.id != session.folder.id)
    with Reader(forked) as reader:
        history = reader.history_at()
    assert history.session["parent_id"] == session.folder.id
    assert verdict.seq <= history.session["parent_seq"] <= history.iterations[1].seq
    expected, got = outcome(session.folder), outcome(forked)
    for table, rows in expected.items():
        assert got[table] == rows, f"{table} differs"
    assert len([run for run in got["training_run"] if run["iteration"] == 1]) == 1


def test_the_command_forks_without_a_worker_and_the_console_says_how_to_start_one(session: Running) -> None:
    made = command(session, "fork", session.folder.id, "--iteration", "0", "--name", "twin", "--no-start")
    forked = SessionFolder(session.folder.path.parent / made["id"])
    with Reader(forked) as reader:
        copied = reader.history_at()
    assert [i.number for i in copied.iterations if i.verdict] == [0] and not copied.runs
    assert (made["parent"], made["seq"]) == (session.folder.id, copied.session["parent_seq"])
    with console(home(session), "attach", "twin") as t:
        t.until(lambda text: "not started" in text and "R starts one" in text)
        t.until(lambda text: "collect_iron" in text and "Plan 1 ·" in text)


def test_sessions_side_by_side(session: Running) -> None:
    command(session, "fork", session.folder.id, "--iteration", "0", "--name", "other", "--no-start")
    with console(home(session), size=(120, 40)) as t:
        t.until(lambda text: "collect-iron-1" in text and "other" in text)
        filtered(t, session.folder.id)
        t.until("1 of ")
        t.keys(SPACE)
        t.until("1 marked")
        filtered(t, "other")
        t.until(lambda text: "1 of " in text and "other ⑂" in text)
        t.keys(SPACE)
        t.until("2 marked")
        t.keys("c")
        t.until(lambda text: "Compare  2 sessions" in text and "collect-iron-1" in text and "other" in text)
        base = re.search(r"(\S+) base", t.text())
        assert base is not None
        t.keys("b")
        t.until(lambda text: " base" in text and f"{base[1]} base" not in text)
        t.keys(RIGHT)
        t.until("chart 2 of")
        t.keys(ESCAPE)
        t.until("2 marked")


def test_a_session_is_exported_copied_and_deleted_only_after_a_question(session: Running, tmp_path: Path) -> None:
    made = command(session, "fork", session.folder.id, "--iteration", "0", "--name", "short-lived", "--no-start")
    bundle = tmp_path / "one.rlgpt"
    place = SessionFolder(session.folder.path.parent / made["id"])
    with console(home(session)) as t:
        t.until("short-lived")
        filtered(t, "short")
        t.until("1 of ")
        t.keys("e")
        t.until("File to write:")
        t.keys(CTRL_U, str(bundle), ENTER)
        t.until("written to")
        assert bundle.stat().st_size > 1_000
        t.keys("d")
        t.until("permanently.")
        t.keys("n")
        t.until(lambda text: "permanently." not in text)
        assert place.database.exists()
        t.keys("d")
        t.until("permanently.")
        t.keys("y")
        t.until(lambda text: "short-lived" not in text, 60)
    assert not place.path.exists()
    found = command(session, "import", str(bundle))
    assert found["id"] == made["id"]


def find(place: str) -> list[SessionFolder]:
    return [SessionFolder(path) for path in sorted((Path(place) / "sessions").iterdir())]

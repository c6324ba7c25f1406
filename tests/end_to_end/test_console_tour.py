"""A whole visit in tmux: start a session, review its plans, leave, lose the console, come back, replay, leave."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rlgpt.store.folder import SessionFolder
from rlgpt.store.history import History
from rlgpt.store.reader import Reader
from tests.console.tmux import Tmux
from tests.end_to_end.consoles import RLGPT, worker_of

pytestmark = pytest.mark.tmux
QUICK = {"RLGPT_LOOP__DEV_FIRST": "4", "RLGPT_LOOP__DEV_MORE": "0", "RLGPT_LOOP__TEST_EPISODES": "4"}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "home"
    yield place
    for process in psutil.process_iter():
        try:
            if process.environ().get("RLGPT_HOME") == str(place):
                process.kill()
        except psutil.Error:
            continue


def history(session: SessionFolder) -> History:
    with Reader(session) as reader:
        return reader.history_at()


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_a_session_is_started_reviewed_left_lost_found_again_and_replayed(home: Path) -> None:
    with Tmux(RLGPT, (120, 40), {"RLGPT_HOME": str(home), **QUICK}) as t:
        # a new session, every plan of which waits
        t.until("Welcome to rlgpt")
        t.keys("Escape")
        t.until(lambda text: "No sessions yet" in text and "Welcome" not in text)
        t.keys("n")
        t.until("collect_diamond")
        t.type("collect_iron")
        t.until(lambda text: "collect_iron: " in text and "collect_diamond" not in text)
        t.keys("F6", *["Tab"] * 12)
        t.until("review: plans wait for me")
        t.keys("Space", "C-s")
        t.until("Plan 1 waits for you: A makes it active, X rejects it, o edits it.")
        session = SessionFolder(next((home / "sessions").iterdir()))

        # it is rejected with a reason, the next one is edited, and approved
        t.keys("X")
        t.until("The slow agent reads this word for word.")
        t.type("A table is learnt, not coded.")
        t.keys("C-s")
        t.until("Plan 2 waits for you")
        t.keys("o")
        t.until("override the plan")
        t.keys("p", "Down", "m")
        t.until("2 edits")
        t.keys("A")
        t.until("Plan 3 waits for you")
        t.keys("A")
        t.until(lambda text: "waits for you" not in text and "active" in text)
        plans = history(session).plans
        assert [plans[r].status for r in (1, 2, 3)] == ["rejected", "superseded", "in_force"]
        assert plans[1].rejection == "A table is learnt, not coded." and plans[3].author == "operator"
        assert plans[3].items[0].pinned and plans[3].items[1].mode == "rl"

        # the console is left, and the next one is killed: the worker goes on
        t.keys("q")
        t.until("1 session")
        worker = worker_of(session.path)
        os.kill(t.pid, signal.SIGKILL)
        t.until(lambda _: t.gone)
        assert worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE
        before = history(session).seq
        t.run([*RLGPT, "attach", session.id])
        text = t.until(lambda text: "LIVE" in text and "Plan 3" in text and "⚑" in text)
        assert "●" in text, "no override on the timeline"
        assert history(session).seq >= before

        # every pane by its number, in any size
        for size in ((80, 24), (200, 60), (120, 40)):
            t.resize(*size)
            for number, name in enumerate(("Plan", "Code", "Curves", "Verdicts", "World", "Log", "Calls", "System"), 1):
                t.keys(str(number))
                t.until(f"{number} {name}")
        t.keys("0", "1")

        # copying reaches the terminal's clipboard by OSC 52
        t.keys("g", "j", "y")
        t.until("to tmux's buffer")
        t.until(lambda _: "done_when" in t.tmux("show-buffer"))

        # it ends; its replay shows the same, from the start
        t.keys("Q")
        t.until("The session ends cleanly")
        t.keys("y")
        t.until("R goes on where it stopped", 90)
        end = history(session).seq
        t.keys("H")
        t.until(lambda text: "REPLAY" in text and f"row 1 of {end:,}" in text and "has not planned yet" in text)
        t.keys("O")
        t.until("● advice to the slow")
        t.keys("l")
        t.until(" END ")
        t.keys("q")
        t.until(lambda _: t.gone)
        assert "Traceback" not in t.text()

"""A worker that died and a worker that hangs: told apart, with last words, and started again from the console."""

from __future__ import annotations

import json
import os
import signal
import time

from rlgpt.store import progress
from rlgpt.store.lease import Lease
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.consoles import ENTER, attached, console, freeze, thaw, training

LONG = {
    "loop": {"iterations": 2, "target": 1.0, "dev_first": 8},
    "budget": {"env_steps": 5_000_000},
    "method": {"whole_budget": True},
}


def silent_for(session: Running, seconds: float) -> None:
    """As if the last progress lay that far back: a test does not wait for minutes."""
    beat = progress.read(session.folder.path) | {"at": time.time() - seconds}
    (session.folder.path / progress.NAME).write_bytes(json.dumps(beat).encode().ljust(progress.SIZE))


def test_hung_is_not_dead_and_a_dead_session_goes_on_by_one_key(make: Make) -> None:
    session = make("collect_iron", **LONG)
    session.until(training, 150)

    # hung: it holds its lock and makes no progress
    pids = freeze(session)
    silent_for(session, 600)
    with attached(session) as t:
        t.until(lambda text: "hung" in text and "No progress for 10m" in text and "still holds its lock" in text)
        assert "dead" not in t.text()
        with console(session.environment["RLGPT_HOME"]) as listed:
            listed.until("● hung")
        thaw(pids)
        t.until(lambda text: "hung" not in text and "♥" in text)

        # the worker dies: the supervisor says how, and starts another
        session.trainer().kill()
        session.until(lambda h: h.incarnation == 2 and training(h), 90)

        # both die: nobody is left to say anything
        assert session.supervisor is not None
        trainer = session.trainer()
        for pid in (session.supervisor.pid, trainer.pid):
            os.kill(pid, signal.SIGKILL)
        session.supervisor.wait(100)
        t.until(lambda text: "dead" in text and "no process holds the session's lock" in text and "SIGKILL" in text)
        assert b"\x1b]9;" in t.raw and b"\x07" in t.raw

    # the list says so too, and one key starts it again
    with console(session.environment["RLGPT_HOME"]) as t:
        t.until(lambda text: "● dead" in text and "R resume" in text)
        t.keys(ENTER)
        t.until("The worker is dead")
        t.keys("R")
        t.until(lambda text: "♥" in text and "training" in text, 90)
    after = session.until(lambda h: h.incarnation == 3 and training(h), 90)
    assert Lease.held(session.folder.path)
    assert len(after.runs) == 1, "the run was begun anew"

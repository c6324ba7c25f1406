"""A session saved from damage is a session: its worker takes it to its end, and a fork of it too."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest

from rlgpt.store.folder import SessionFolder
from rlgpt.store.fork import fork
from rlgpt.store.repair import repair
from rlgpt.store.soundness import explained
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.story import STORY, TASK


@pytest.mark.slow
def test_a_repaired_session_and_a_fork_of_it_run_to_their_end(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    session = make(TASK, **STORY)
    monkeypatch.setenv("RLGPT_HOME", session.environment["RLGPT_HOME"])
    session.until(lambda h: any(run.updates >= 2 for run in h.runs.values()), 300)
    session.kill()
    for left in session.processes():
        left.kill()
    with contextlib.closing(sqlite3.connect(session.folder.database)) as base:
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    _tear(session.folder)
    assert explained(session.folder.database) is not None
    saved = repair(session.folder)
    assert saved.rows and saved.reason

    repaired = Running(SessionFolder(session.folder.path.parent / saved.id), session.environment)
    run = next(iter(repaired.history().runs.values()))
    assert run.state == "running" and run.checkpoint is not None
    (repaired.folder.artifacts / run.checkpoint.artifact).unlink(missing_ok=True)
    history = repaired.start().finish(400)
    assert history.result in ("finished", "succeeded"), history.reason
    causes = [row["payload"].get("cause") for row in repaired.rows("event") if row["kind"] == "resumed"]
    assert causes[0].startswith("the checkpoint of update")
    assert [run.state for run in history.runs.values()] == ["finished"]
    assert explained(repaired.folder.database) is None

    forked = Running(fork(repaired.folder), session.environment)
    again = forked.start().finish(400)
    assert again.result == history.result, again.reason
    assert [e.successes for i in again.iterations for e in i.evaluations] == [
        e.successes for i in history.iterations for e in i.evaluations
    ]


def _tear(folder: SessionFolder) -> None:
    """Other bytes in the row of the newest checkpoint."""
    with contextlib.closing(sqlite3.connect(folder.database)) as base:
        (name,) = base.execute("SELECT artifact FROM checkpoint ORDER BY seq DESC LIMIT 1").fetchone()
    body = folder.database.read_bytes()
    assert body.count(name.encode()) == 1
    folder.database.write_bytes(body.replace(name.encode(), b"\xff" * len(name)))

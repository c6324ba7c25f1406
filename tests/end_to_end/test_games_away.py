"""Whole sessions whose games are in other processes: their rows are those of the same session with its games within."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.sameness import folded, outcome
from tests.worlds import slow

STORY = {"world": slow.CRAFTER, "loop": {"iterations": 0, "dev_first": 4}, "budget": {"env_steps": 6_000}}


def games(session: Running) -> list[psutil.Process]:
    found = []
    for process in session.processes():
        try:
            if "rlgpt.training.worlds.away.process" in process.cmdline():
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_games_away_and_games_that_are_killed_change_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "PYTHONPATH", str(Path.cwd()))  # the worlds of the tests
    local = make("collect_iron", start=False, **STORY)
    local.environment = local.environment | {"PYTHONPATH": str(Path.cwd())}
    local.start().finish(400)
    away = make("collect_iron", start=False, **STORY)
    away.environment = local.environment | {"RLGPT_GAMES_ON": "local"}
    away.start()
    killed = 0
    while away.supervisor is not None and away.supervisor.poll() is None:
        if killed < 10 and (found := games(away)):
            found[killed % len(found)].kill()
            killed += 1
        psutil.wait_procs([psutil.Process(away.supervisor.pid)], timeout=1.5)
    assert killed == 10 and away.history().result == local.history().result
    assert outcome(away.folder) == outcome(local.folder)
    assert folded(away.folder) == folded(local.folder)
    told = [row for row in away.rows("log") if row["event"] == "fault"]
    assert told and "died of signal 9" in told[0]["fields"]["sentence"]
    assert not games(away)

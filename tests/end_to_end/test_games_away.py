"""Whole sessions whose games are in other processes: their rows are those of the same session with its games within."""

from __future__ import annotations

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


@pytest.fixture(autouse=True)
def worlds_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_games_away_and_games_that_are_killed_change_nothing(make: Make) -> None:
    local = make("collect_iron", **STORY)
    local.finish(400)
    away = make("collect_iron", start=False, **STORY)
    away.environment = local.environment | {"RLGPT_GAMES_ON": "local"}
    away.start()
    killed, rows = 0, 0
    while away.supervisor is not None and away.supervisor.poll() is None:
        now = sum(count for table, count in away.history().counts.items() if table != "log")
        if now > rows and (found := games(away)):  # something was done since: no game is killed again and again
            found[killed % len(found)].kill()
            killed, rows = killed + 1, now
        psutil.wait_procs([psutil.Process(away.supervisor.pid)], timeout=0.5)
    assert killed >= 3 and away.history().result == local.history().result, away.history().reason
    assert outcome(away.folder) == outcome(local.folder)
    assert folded(away.folder) == folded(local.folder)
    told = [row for row in away.rows("log") if row["event"] == "fault"]
    assert told and "died of signal 9" in told[0]["fields"]["sentence"]
    assert not games(away)

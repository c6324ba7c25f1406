"""One session that plans, codes, tries, trains and is judged: what is left of it after a mishap must be all of it."""

from __future__ import annotations

from typing import Any

from rlgpt.store.history import History
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.sameness import folded, outcome

TASK = "collect_iron"
STORY = {"loop": {"iterations": 1, "target": 1.0, "dev_first": 6}, "budget": {"env_steps": 16_000}}
_told: dict[str, dict[str, Any]] = {}


def training(history: History) -> bool:
    """PPO has made an update and goes on."""
    return any(run.state == "running" and run.updates >= 1 for run in history.runs.values())


def unbroken(make: Make, but: str = "") -> dict[str, Any]:
    """{rows, history, clock: when which event was written} of the story without a mishap; told once per test process,
    and apart for whoever may lack the rows of the table `but`: told on a small disk it lacks them too."""
    if but not in _told:
        session = make(TASK, **STORY)
        assert session.finish(300).runs, "the story must train"
        clock = [(row["seq"], row["at"]) for row in session.rows("event")]
        _told[but] = {"rows": outcome(session.folder), "history": folded(session.folder), "clock": clock}
    return _told[but]


def same_as_unbroken(make: Make, session: Running, but: str = "") -> int:
    """The finished session is the unbroken one but for times and incarnations, and for the rows of the table `but`;
    returns how many rows were compared."""
    history = session.history()
    assert history.result in ("finished", "succeeded"), history.reason
    expected = unbroken(make, but)
    got = outcome(session.folder)
    for table, rows in expected["rows"].items():
        assert table == but or got[table] == rows, f"{table} differs"
    now = folded(session.folder)
    for name, value in expected["history"].items():
        assert now[name] == value, f"{name} of the fold differs"
    return sum(len(rows) for table, rows in expected["rows"].items() if table != but)

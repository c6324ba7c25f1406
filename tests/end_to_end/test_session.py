"""A whole session: it ends, its rows tell the story, and it is the same story every time."""

from __future__ import annotations

from tests.end_to_end.conftest import Make
from tests.end_to_end.sameness import every_row

TRAINED = {"loop": {"iterations": 1, "dev_first": 4, "target": 1.0}, "budget": {"env_steps": 9_000}}
"""A session that gets to PPO: the script alone does not always find iron."""


def test_a_session_goes_from_the_task_to_a_tested_incumbent(make: Make) -> None:
    session = make("make_wood_pickaxe")
    history = session.finish()
    assert (history.status, history.result) == ("ended", "succeeded")
    assert {a.trial.outcome for a in history.attempts if a.trial} == {"accepted"}
    assert history.incumbent is not None and history.incumbent.verdict is not None
    tested = [e for e in history.incumbent.evaluations if e.split == "test"]
    assert [(e.variant, e.episodes) for e in tested] == [("full", 6)]
    assert not session.processes()


def test_the_same_session_twice_gives_the_same_rows(make: Make) -> None:
    first, second = (make("collect_iron", **TRAINED) for _ in range(2))
    assert first.finish(200).runs, "this session never trained, so it shows nothing"
    second.finish(200)
    left, right = every_row(first.folder), every_row(second.folder)
    for table in left:
        assert left[table] == right[table], f"{table} differs"


def test_nothing_is_decided_after_the_first_test_episode(make: Make) -> None:
    session = make("make_wood_pickaxe")
    session.finish()
    first = min(row["seq"] for row in session.rows("episode") if row["split"] == "test")
    for table in ("llm_call", "plan", "training_run", "code_version", "trial", "verdict", "rl_config"):
        assert all(row["seq"] < first for row in session.rows(table)), f"a {table} row is later"

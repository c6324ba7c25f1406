"""What the loop says is ahead, on every phase of real sessions."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlgpt.agents import loop
from rlgpt.agents.remaining import steps_ahead
from rlgpt.console.view.ahead import Left, left, words
from rlgpt.store import event_payloads, events
from rlgpt.store.bundle import viewed
from rlgpt.store.event_payloads import read_event
from rlgpt.store.history import History, fold
from rlgpt.store.reader import Reader

ROOT = Path(__file__).parents[2]
SESSIONS = sorted((ROOT / "tests" / "sessions").glob("*.rlgpt"))
STEPS = {
    cls.__name__: cls
    for cls in (
        loop.PlanTasks, loop.OpenIteration, loop.Plan, loop.Code, loop.Trial, loop.JudgeItem, loop.Configure,
        loop.Train, loop.Evaluate, loop.JudgeIteration,
    )
}  # fmt: skip


def limits_of(h: History) -> loop.Limits:
    settings = h.session["settings"]
    asked = {k: v for k, v in settings["loop"].items() if k in loop.Limits.__dataclass_fields__}
    return loop.Limits(**asked, review=settings["review"], critic=settings["critic"])


def step_of(phase: events.Phase) -> Any:
    cls = STEPS[phase.name]
    told = {k: getattr(phase, k) for k in cls.__dataclass_fields__}
    if phase.name == "Plan":
        told["failed"] = tuple(phase.failed or ())
        told["last_depth"] = bool(phase.last_depth)
    if phase.name == "Evaluate":
        told["first"] = phase.first or 0
    return cls(**told)


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_at_every_step_of_a_real_session_the_rest_can_be_planned_and_nothing_is_changed(path: Path) -> None:
    with viewed(path) as folder, Reader(folder) as reader:
        rows = reader.changes_since(0, None)
    h = History()
    seen: list[dict[str, int]] = []
    for table, row in rows:
        if table == "event" and row["kind"] == "phase":
            phase = read_event(row["kind"], row["payload"])
            assert isinstance(phase, events.Phase)
            if phase.name in STEPS and phase != h.phase:
                before = h.copy()
                seen.append(steps_ahead(h, limits_of(h), step_of(phase), 1_000_000))
                assert h == before
        fold(h, table, row)
    assert len(seen) > 5
    assert all(set(found) <= set(STEPS) and all(n >= 0 for n in found.values()) for found in seen)
    assert seen[0].get("JudgeIteration", 0) == limits_of(h).iterations + 1 or h.task_plans
    assert "Evaluate" in seen[0] and seen[-1].get("JudgeIteration", 0) == 0


def test_a_budget_of_env_steps_that_is_nearly_spent_ends_the_plan_of_steps() -> None:
    h = History(session={"settings": {}, "task_info": {}})
    long = steps_ahead(h, loop.Limits(), loop.OpenIteration(0, 0), 10_000_000)
    short = steps_ahead(h, loop.Limits(), loop.OpenIteration(0, 0), 1_000)
    assert long["JudgeIteration"] >= short["JudgeIteration"] >= 1
    assert short["Train"] == 1_000 and long["Train"] == 10_000_000


def test_the_pace_of_a_step_is_what_it_took_so_far() -> None:
    h = History()
    rows = [
        (0.0, events.Phase("Code", item="a", attempt=1, ahead={"Code": 2, "Train": 1000})),
        (10.0, events.Phase("Trial", item="a", version=1, ahead={"Code": 2})),
        (14.0, events.Phase("Code", item="b", attempt=1, ahead={"Code": 1, "Trial": 2})),
    ]
    for seq, (active, event) in enumerate(rows, 1):
        row = SimpleNamespace(kind=event_payloads.kind_of(event), payload=event_payloads.payload_of(event))
        fold(h, "event", {"seq": seq, "incarnation": 1, "at": active, "active": active, **vars(row)})
    found = left(h, since=4.0)
    assert found.step == pytest.approx(6.0)  # coding took 10 s before
    assert found.session == pytest.approx(6.0 + 10.0 + 2 * 4.0) and found.whole
    assert words(found) == "step 6s, session about 24s left"


def test_an_unknown_pace_makes_the_rest_a_lower_bound() -> None:
    h = History(status="running", phase=events.Phase("Code", item="b", ahead={"Code": 1, "Train": 5_000}))
    h.worked = {"Code": (2.0, 20.0)}
    assert words(left(h)) == "step 10s, session at least 20s left"


def test_a_bound_of_no_seconds_is_not_told() -> None:
    assert words(Left(7.0, 0.4, whole=False)) == "step 7s left"
    assert words(Left(None, 0.4, whole=False)) == ""
    assert words(Left(0.0, 0.0, whole=True)) == "step 0s, session about 0s left"


def test_a_pause_does_not_count_a_step_twice() -> None:
    h = History()
    train = events.Phase("Evaluate", iteration=0, split="dev", variant="full", first=0, episodes=20)
    for seq, event in enumerate((train, events.Waiting("paused"), train, events.Phase("Train", revision=1)), 1):
        row = {"kind": event_payloads.kind_of(event), "payload": event_payloads.payload_of(event)}
        fold(h, "event", {"seq": seq, "incarnation": 1, "at": 0.0, "active": 10.0 * seq, **row})
    assert h.worked == {"Evaluate": (20, 30.0)}

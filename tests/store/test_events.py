"""Events: what is written is what is read, and what a later version adds is passed over."""

from __future__ import annotations

import math
from typing import Any, get_args

import pytest

from rlgpt.agents import loop
from rlgpt.console.view import happenings
from rlgpt.store import event_payloads, events
from rlgpt.store.event_payloads import kind_of, payload_of, read_event
from rlgpt.store.history import History, fold
from rlgpt.store.plain import plain

WRITTEN: tuple[events.Event, ...] = (
    events.Started({"mode": "locked", "enforced": {"user": "enforced"}}, {"node": "n1", "cpu": "AVX2", "versions": {}}),
    events.Resumed(7, run=1, update=2, env_steps=400, cause="the last checkpoint is damaged"),
    events.Phase("Plan", sub_task=0, iteration=1, failed=["dig"], last_depth=False),
    events.Waiting("the model", role="slow", why="connection refused"),
    events.Ended("finished", "all is done"),
    events.Forked("s", 12, ["loop"]),
    events.PlanInForce(1),
    events.PlanWaiting(2),
    events.PlanApproved(2, "ada"),
    events.PlanRejected(2, "ada", "too long"),
    events.TrainingEnded(1, "finished", 2048, 300, 1),
    events.VersionChosen(1, "dig", None, False, "it never worked"),
    events.IterationResult(0, 0, "full", 0.5, 0.3, 0.7, "the only one there is"),
    events.Incumbent(0, 0, "the only one"),
    events.Command("c", "override", "ada", None, {"edits": 3}, "refused", "no", {"work": 3, "clock": 5}),
    events.Advice("slow", "use the tunnel", "ada"),
    events.Budget("cost", None, "ada"),
    events.PauseRequested("ada"),
    events.ResumeRequested("ada"),
    events.StopRequested("ada", now=True),
    events.TrainingStopRequested("ada"),
    events.HostDeath("the host was killed by signal 9 while running dig, death 2 of this source", "ab12", 3, True),
    events.Nondeterministic("the action host died"),
    events.TrainerDied(None, "SIGKILL", ["", "MemoryError"], restart=True, peak_mb=512),
    events.Probed("write/0.0/dig/1", "ab12", 0, "look", "where it begins\n...", 12),
    events.SkillKept("dig", "ab12"),
)


def test_every_kind_is_read_as_it_was_written() -> None:
    assert {type(event) for event in WRITTEN} == set(event_payloads.KINDS.values())
    for event in WRITTEN:
        assert read_event(kind_of(event), plain(payload_of(event))) == event


def test_an_event_that_is_read_has_every_field_that_one_made_by_its_class_has() -> None:
    """`read_event` does not call the class."""
    for event in WRITTEN:
        read = read_event(kind_of(event), plain(payload_of(event)))
        assert read is not None and vars(read).keys() == vars(event).keys()
        assert not hasattr(event, "__post_init__"), "read_event would pass it over"


def test_kinds_and_keys_of_a_later_version_only_move_the_cursor() -> None:
    assert read_event("teleported", {"to": 3}) is None
    assert read_event("plan_in_force", {"revision": 1, "mood": [None]}) == events.PlanInForce(1)
    assert read_event("ended", {"status": "retired", "reason": ""}) is not None, "a word of a later version"
    before, after = History(seq=1), History(seq=1)
    fold(after, "event", {"seq": 1, "incarnation": 0, "at": 0.0, "active": 0.0, "kind": "teleported", "payload": {}})
    assert after.counts.pop("event") == 1 and after == before


@pytest.mark.parametrize(
    ("kind", "payload", "sentence"),
    [
        ("plan_in_force", {}, "an event plan_in_force has no revision"),
        ("plan_in_force", {"revision": "1"}, "revision of an event plan_in_force cannot be '1'"),
        ("waiting", {"for": None}, "for of an event waiting cannot be None"),
        ("trainer_died", {"exit_code": 1, "signal": None, "last_lines": [1]}, "last_lines .* cannot be"),
        ("phase", {"name": "Plan", "failed": "dig"}, "failed .* cannot be 'dig'"),
        ("command", {"id": "c", "kind": "stop", "author": "", "revision": 1.5, "payload": {}}, "revision .* 1.5"),
    ],
)
def test_a_payload_that_no_version_wrote_is_refused(kind: str, payload: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        read_event(kind, payload)


def test_what_was_not_a_number_comes_back_as_not_a_number() -> None:
    event = events.IterationResult(0, 0, "full", math.nan, 0.0, 1.0, "")
    read = read_event("iteration_result", plain(payload_of(event)))
    assert isinstance(read, events.IterationResult) and math.isnan(read.score)


def test_every_step_of_the_loop_can_be_told_as_a_phase() -> None:
    """The worker writes `Phase(name, **arguments of the step)`."""
    for step in get_args(loop.Step):
        if step not in (loop.Wait, loop.Done):
            events.Phase(step.__name__, **dict.fromkeys(step.__dataclass_fields__))


def test_the_log_says_why_the_action_host_died() -> None:
    death = next(event for event in WRITTEN if isinstance(event, events.HostDeath))
    row = {"seq": 1, "at": 0.0, "active": 0.0, "kind": "host_death", "payload": payload_of(death)}
    said = happenings.logged(("event", row))
    assert said is not None and said["level"] == "warning"
    assert said["event"] == (
        "the action host died: the host was killed by signal 9 while running dig, death 2 of this source; "
        "that source is not run again"
    )

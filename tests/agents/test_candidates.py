"""Several drafts of an attempt: what the loop asks and tries, what goes on, and what each draft is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rlgpt.agents import choice, fast
from rlgpt.agents.client import make_client
from rlgpt.agents.loop import Code, JudgeItem, Limits, Plan, Step, Trial, next_step
from rlgpt.agents.rules.question import fenced
from rlgpt.training.worlds import registry
from tests.agents.histories import Told, context
from tests.agents.toys import Ledger

THREE = Limits(candidates=3, inner=2)


def step(told: Told, limits: Limits = THREE) -> Step:
    return next_step(told.history, limits)


def begun() -> Told:
    return Told().iteration().plan("sequence", dig="code")


def drafts(told: Told, *successes: int) -> Told:
    for number, count in enumerate(successes, 1):
        told.code("dig", draft=number).trial("dig", count)
    return told


def test_every_draft_is_asked_for_and_tried_before_the_best_is_judged_and_repaired() -> None:
    told = begun()
    for number, successes in enumerate((0, 2, 1), 1):
        assert step(told) == Code("dig", 1, number)
        told.code("dig", draft=number)
        assert step(told) == Trial("dig", number)
        told.trial("dig", successes)
    assert step(told) == JudgeItem("dig", 2)
    told.verdict("dig", version=2)
    assert step(told) == Code("dig", 2, 1)
    drafts(told, 1, 0)
    assert step(told) == Code("dig", 2, 3)
    told.code("dig", draft=3).trial("dig", 0)
    assert [len(found) for found in choice.rounds(told.history.attempts)] == [3, 3]
    assert isinstance(step(told, Limits(candidates=3, inner=2, critic="none")), Plan), "both attempts have failed"


def test_an_accepted_draft_does_not_end_its_attempt_and_the_rule_chooses_among_them() -> None:
    told = drafts(begun(), 5)
    assert step(told) == Code("dig", 1, 2)
    drafts(told, 5)
    told = drafts(begun(), 5, 3, 4)
    plan = told.history.plan
    assert plan is not None and plan.chosen["dig"].version == 1, "the later ones did clearly less"
    assert not isinstance(step(told), Code | Trial)


def test_one_draft_without_code_does_not_give_the_attempt_up_and_all_of_them_do() -> None:
    told = begun().code("dig", admitted=False, rule="empty", draft=1).trial("dig", 0, "refused")
    assert step(told) == Code("dig", 1, 2)
    told.code("dig", draft=2).trial("dig", 1)
    told.code("dig", admitted=False, rule="empty", draft=3).trial("dig", 0, "refused")
    assert step(told) == JudgeItem("dig", 2)
    told = begun()
    for number in (1, 2, 3):
        told.code("dig", admitted=False, rule="empty", draft=number).trial("dig", 0, "refused")
    assert isinstance(step(told), Plan)


@pytest.mark.parametrize("outcome", ["vacuous", "unreached"])
def test_what_no_draft_could_be_measured_in_ends_the_attempt(outcome: str) -> None:
    told = begun().code("dig", draft=1).trial("dig", 0, outcome)
    assert not isinstance(step(told), Code)


def test_an_operators_version_ends_the_attempt() -> None:
    told = begun().code("dig", draft=1).trial("dig", 1).code("dig", author="operator").trial("dig", 5)
    assert not isinstance(step(told), Code | Trial)


def test_a_session_with_one_draft_keeps_no_number_of_it() -> None:
    told = begun().code("dig").trial("dig", 0)
    assert step(told, Limits()) == JudgeItem("dig", 1)
    assert step(begun(), Limits()) == Code("dig", 1) and Code("dig", 1).draft is None


def asked(told: Told, draft: int, attempt: int = 1) -> tuple[str, dict[str, Any], float]:
    """(step, blocks by name, warmth) of the question for a draft."""
    world = registry.get("crafter")
    task = world.tasks["collect_diamond"]
    client = make_client({"kind": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}, Ledger(), {})
    sent: list[Any] = []

    def keep(role: str, step: str, messages: Any, contract: Any, useless: Any, warmth: float, tools: Any) -> Any:
        sent.append((step, messages[1]["content"], warmth))
        raise LookupError

    client.ask = keep  # type: ignore[method-assign,assignment]
    plan = told.history.plan
    assert plan is not None
    with pytest.raises(LookupError):
        there = context(told, world.sheet(task.id), task, limits=THREE, text=lambda name: f"# {name}")
        fast.write(client, there, plan.items[0], attempt, draft)
    ((name, text, warmth),) = sent
    return name, {block: body for _, block, body in fenced(text)}, warmth


def test_drafts_are_asked_the_same_but_for_their_number_whether_before_or_after_the_others() -> None:
    ahead = [asked(begun(), draft) for draft in (1, 2, 3)]
    told = begun()
    for draft in (1, 2, 3):
        assert asked(told, draft) == ahead[draft - 1]
        told.code("dig", draft=draft).trial("dig", draft)
    assert [name for name, _, _ in ahead] == ["write/0.0/dig/1", "write/0.0/dig/2", "write/0.0/dig/3"]
    assert [warmth for _, _, warmth in ahead] == [0.0, 0.5, 1.0]
    requests = [json.loads(blocks["request"]) for _, blocks, _ in ahead]
    assert [request.pop("draft") for request in requests] == [1, 2, 3] and requests[0] == requests[1] == requests[2]


def test_every_draft_for_a_changed_goal_is_told_the_goal_before() -> None:
    told = drafts(begun(), 3, 5, 3).evaluate(17, funnel={"dig": 20}).verdict().iteration(1)
    told.plan("sequence", dig="code", goals={"dig": "Dig deep."})
    for draft in (1, 2, 3):
        assert step(told) == Code("dig", 1, draft)
        _, blocks, _ = asked(told, draft)
        assert blocks["goal_before"] == "Do dig." and blocks["previous"] == "# dig2"
        told.code("dig", draft=draft).trial("dig", 4)
    assert not isinstance(step(told), Code | Trial)


def test_a_repair_goes_on_from_the_best_draft_and_shows_the_second_best() -> None:
    told = begun().code("dig", "a", draft=1).trial("dig", 1).code("dig", "b", draft=2).trial("dig", 2)
    told.code("dig", "c", draft=3).trial("dig", 0)
    for draft in (1, 2, 3):
        name, blocks, _ = asked(told, draft, 2)
        assert (blocks["previous"], blocks["second_source"]) == ("# b", "# a")
        assert [each["version"] for each in json.loads(blocks["earlier"])] == [3]
        assert name == f"write/0.0/dig/{3 + draft}"
        told.code("dig", draft=draft).trial("dig", 0)

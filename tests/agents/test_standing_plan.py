"""The slow agent returns the plan that will stand, whatever the model answered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rlgpt.agents import slow
from rlgpt.agents.contracts import PlanReply, SubActionReply
from rlgpt.agents.errors import UselessReply
from rlgpt.agents.loop import Limits
from rlgpt.store import events
from tests.agents.histories import Told, context
from tests.agents.toys import BREAD, bakery


def reply(executor: str = "sequence", **modes: str) -> PlanReply:
    items = [
        SubActionReply(name=n, mode=m, goal=f"Do {n}.", reason="r", done_when=f"view.{n}", max_steps=50)  # type: ignore[arg-type]
        for n, m in modes.items()
    ]
    return PlanReply(executor=executor, sub_actions=items, rationale="so")  # type: ignore[arg-type]


class Answering:
    """A client whose model gives this reply, or fails with this error."""

    def __init__(self, answer: PlanReply | Exception) -> None:
        self.answer = answer
        self.checked = ""

    def ask(self, role: str, step: str, messages: object, contract: object, check: Any = None) -> PlanReply:
        if isinstance(self.answer, Exception):
            raise self.answer
        self.checked = check(self.answer)
        return self.answer


@pytest.fixture(autouse=True)
def no_script_book(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow, "contents", lambda client, role, context: [])


def standing(told: Told, answer: PlanReply | Exception, *failed: str, limits: Limits | None = None, **more: Any) -> Any:
    where = context(told, bakery(), BREAD)
    where = replace(where, limits=limits or where.limits)
    return slow.next_plan(Answering(answer), where, told.history.plan, failed, **more)  # type: ignore[arg-type]


def modes(plan: slow.StandingPlan) -> dict[str, str]:
    return {item.name: item.mode for item in plan.items}


def test_a_first_plan_is_that_of_the_model() -> None:
    plan = standing(Told().iteration(), reply(dig="code", fight="rl", executor="policy"))
    assert modes(plan) == {"dig": "code", "fight": "rl"} and not plan.attempted
    assert (plan.author, plan.executor, plan.rationale, plan.depth) == ("slow", "policy", "so", 0)


def test_a_refinement_is_one_deeper_and_at_the_last_depth_leaves_what_failed_to_rl() -> None:
    told = Told().iteration().plan(dig="code", build="code")
    plan = standing(told, reply(dig="code", build="code"), "dig", last_depth=True)
    assert (plan.author, plan.depth) == ("refine", 1)
    assert modes(plan) == {"dig": "rl", "build": "code"} and plan.attempted["dig"] == {"mode": "code"}


def test_a_name_that_cannot_be_is_replaced() -> None:
    plan = standing(Told().iteration(), reply(open="code"), impossible=lambda item: item.name == "open")
    assert modes(plan) == {"open_it": "code"} and plan.attempted["open_it"]["name"] == "open"


@pytest.mark.parametrize(("arm", "executor"), [("code", "sequence"), ("rl", "policy")])
def test_an_arm_confines_every_plan(arm: Any, executor: str) -> None:
    plan = standing(Told().iteration(), reply(dig="code", fight="rl"), limits=Limits(arm=arm))
    assert plan.executor == executor and set(modes(plan).values()) == {arm} and plan.attempted


def test_a_fixed_plan_is_kept_without_a_question_and_is_no_ablation_of_rl() -> None:
    told = Told().iteration().plan(dig="code")
    plan = standing(told, AssertionError("the model was asked"), limits=Limits(fixed_plan=True))
    assert modes(plan) == {"dig": "code"} and plan.executor == "policy"


def test_where_the_model_says_nothing_of_use_the_plan_before_is_kept_and_what_failed_left_to_rl() -> None:
    told = Told().iteration().plan(dig="code", build="code")
    plan = standing(told, UselessReply("nothing of use"), "dig")
    assert modes(plan) == {"dig": "rl", "build": "code"} and plan.executor == "policy"
    assert "the previous plan is kept: nothing of use" in plan.rationale


def test_a_plan_is_kept_that_no_model_could_answer_with() -> None:
    """An operator's goal may be longer, pins may make it more sub-actions, and the last refinement may leave none."""
    useless = UselessReply("nothing of use")
    long = standing(Told().iteration().plan(dig="code", goals={"dig": "x" * 801}), useless)
    assert [len(item.goal) for item in long.items] == [801]
    names = [f"dig_{number}" for number in range(25)]
    many = standing(Told().iteration().plan(**dict.fromkeys(names, "code")), useless)
    assert [item.name for item in many.items] == names
    assert not standing(Told().iteration().plan(), useless).items


def test_an_option_that_failed_does_not_become_a_guard_where_the_model_says_nothing_of_use() -> None:
    told = Told().iteration().plan(dig="code", dash="option", triggers={"dash": "view.late"})
    plan = standing(told, UselessReply("nothing of use"), "dash")
    assert modes(plan) == {"dig": "code", "dash": "option"}
    assert modes(standing(told, UselessReply("nothing of use"), "dash", last_depth=True)) == {"dig": "code"}


def test_a_pin_of_a_plan_that_was_rejected_holds() -> None:
    told = Told().iteration().plan(dig="code", pinned=("dash",), force=False, dash="rl")
    told.event(events.PlanRejected(revision=1, author="operator", text="dig deeper"))
    assert told.history.plan is None
    plan = standing(told, reply(dig="code"))
    assert modes(plan) == {"dig": "code", "dash": "rl"} and plan.items[1].pinned
    assert [pin.name for pin in context(told, bakery(), BREAD).pins] == ["dash"]


def test_a_reply_that_was_nearly_a_plan_is_taken_where_the_repair_failed() -> None:
    error = UselessReply("the name is taken", reply(dig="code"))
    assert modes(standing(Told().iteration(), error)) == {"dig": "code"}


def test_without_a_plan_before_a_useless_reply_is_an_error() -> None:
    with pytest.raises(UselessReply):
        standing(Told().iteration(), UselessReply("nothing of use"))

"""The loop keeps its rules whatever a model answers, and remembers what the model asked for."""

from __future__ import annotations

from typing import Any

from rlgpt.agents.contracts import PlanReply, SubActionReply
from rlgpt.agents.enforce import Enforced, enforce
from rlgpt.store.history import PlanState
from tests.agents.histories import Told


def reply(**modes: str) -> PlanReply:
    items = [
        SubActionReply(name=n, mode=m, goal=f"Do {n}.", reason="r", done_when=f"view.{n}", max_steps=50)  # type: ignore[arg-type]
        for n, m in modes.items()
    ]
    return PlanReply(executor="sequence", sub_actions=items, rationale="")


def plan(pinned: tuple[str, ...] = (), **modes: str) -> PlanState:
    state = Told().iteration().plan(pinned=pinned, **modes).history.plan
    assert state
    return state


def names(out: Enforced) -> dict[str, str]:
    return {item.name: item.mode for item in out.items}


def test_a_plan_without_pins_is_taken_as_it_is() -> None:
    out = enforce(reply(dig="code", dodge="rl"), None)
    assert names(out) == {"dig": "code", "dodge": "rl"} and out.attempted == {}
    assert {item.author for item in out.items} == {"slow"}


def test_a_pin_survives_three_iterations_in_which_the_model_tries_to_change_it() -> None:
    told = Told().iteration().plan(pinned=("dig",), dig="rl", build="code")
    for number, attempt in enumerate((reply(dig="code", build="code"), reply(build="code"), reply(dig="code"))):
        out = enforce(attempt, told.history.plan)
        assert names(out)["dig"] == "rl" and out.items[0].pinned
        assert out.attempted["dig"] == ({"removed": True} if number == 1 else {"mode": "code"})
        told.iteration(number + 1).plan(pinned=("dig",), **names(out))


def test_a_pin_fixes_goal_predicate_and_steps_too() -> None:
    changed = reply(dig="code").sub_actions[0].model_copy(update={"done_when": "True", "goal": "Rest.", "max_steps": 1})
    out = enforce(PlanReply(executor="sequence", sub_actions=[changed], rationale=""), plan(("dig",), dig="code"))
    assert (out.items[0].done_when, out.items[0].goal, out.items[0].max_steps) == ("view.dig", "Do dig.", 50)
    assert out.attempted["dig"] == {"done_when": "True", "goal": "Rest.", "max_steps": 1}


def test_a_pin_that_was_left_out_returns_behind_what_it_followed() -> None:
    out = enforce(reply(dig="code", sell="code"), plan(("wash",), dig="code", wash="code", sell="code"))
    assert list(names(out)) == ["dig", "wash", "sell"]
    assert list(names(enforce(reply(sell="code"), plan(("dig",), dig="code", sell="code")))) == ["dig", "sell"]


def test_the_last_refinement_leaves_failures_to_rl_or_lets_them_go() -> None:
    before = plan(dig="code", build="code", sell="code")
    out = enforce(reply(dig="code", sell="code"), before, failed=("dig", "build"), last_depth=True)
    assert names(out) == {"dig": "rl", "sell": "code"}
    assert out.attempted == {"dig": {"mode": "code"}} and out.items[0].author == "loop"
    assert names(enforce(reply(dig="code"), before, failed=("dig",)))["dig"] == "code"


def test_an_option_has_a_trigger_and_goes_when_it_cannot_be_coded() -> None:
    offered = reply(dig="code", dash="option")
    assert names(enforce(offered, None)) == {"dig": "code", "dash": "code"}, "it could not be tried"
    offered.sub_actions[1].trigger = "view.late"
    out = enforce(offered, None)
    assert names(out) == {"dig": "code", "dash": "option"} and out.items[1].is_option and not out.attempted
    before = Told().iteration().plan(dig="code", dash="option", triggers={"dash": "view.late"}).history.plan
    learnt = offered.model_copy(deep=True)
    learnt.sub_actions[1].mode = "rl"
    assert names(enforce(learnt, None))["dash"] == "code", "what interrupts is code"
    assert names(enforce(learnt, before))["dash"] == "option", "when to call it is learnt already"
    out = enforce(offered, before, failed=("dash",), last_depth=True)
    assert names(out) == {"dig": "code"} and out.attempted == {"dash": {"dropped": "an option that could not be coded"}}


def test_a_pinned_failure_stays_code_even_at_the_last_depth() -> None:
    out = enforce(reply(dig="rl"), plan(("dig",), dig="code"), failed=("dig",), last_depth=True)
    assert names(out) == {"dig": "code"} and out.attempted == {"dig": {"mode": "rl"}}


def test_names_become_unique_and_never_keywords() -> None:
    twice: list[Any] = [
        *reply(dig="code").sub_actions,
        *reply(dig="rl").sub_actions,
        *reply(**{"if": "rl"}).sub_actions,
    ]
    out = enforce(PlanReply(executor="policy", sub_actions=twice, rationale=""), None)
    assert [item.name for item in out.items] == ["dig", "dig_2", "if_it"]
    assert out.attempted == {"dig_2": {"name": "dig"}, "if_it": {"name": "if"}}


def test_an_unchanged_item_keeps_its_author() -> None:
    before = plan(dig="code", build="code")
    before.items[0].author = "operator"
    out = enforce(reply(dig="code", build="rl"), before, author="refine")
    assert [item.author for item in out.items] == ["operator", "refine"]

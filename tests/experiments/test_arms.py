"""What the arms and ablations of an experiment change in a session, and what stands against the fast agent."""

from __future__ import annotations

from typing import Any

import pytest

from rlgpt.agents.arms import confined
from rlgpt.agents.enforce import Enforced
from rlgpt.agents.loop import (
    Code,
    Configure,
    Evaluate,
    JudgeIteration,
    Limits,
    OpenIteration,
    Plan,
    Step,
    Train,
    next_step,
)
from rlgpt.store.history import Item
from rlgpt.training.rollouts.script_bot import script_bot
from rlgpt.training.worlds.crafter.world import make_world
from tests.agents.histories import Told
from tests.worlds.corridor import make_world as make_corridor


def item(name: str, mode: str, pinned: bool = False) -> Item:
    return Item(name, mode, f"Do {name}.", "", f"view.{name}", 50, pinned, "slow")


def step(told: Told, over_budget: str = "", **limits: Any) -> Step:
    return next_step(told.history, Limits(**({"iterations": 0, "inner": 1} | limits)), over_budget)


@pytest.mark.parametrize(("arm", "executor"), [("code", "sequence"), ("rl", "policy")])
def test_an_arm_has_one_mode_and_its_executor_and_keeps_what_was_asked_for(arm: str, executor: str) -> None:
    asked = Enforced([item("dig", "code"), item("fight", "rl", pinned=True)], {"dig": {"name": "Dig"}})
    chosen, plan = confined(arm, "policy" if arm == "code" else "sequence", asked)
    assert chosen == executor and {i.mode for i in plan.items} == {arm}
    other = "fight" if arm == "code" else "dig"
    assert plan.attempted[other]["mode"] == ("rl" if arm == "code" else "code")
    assert plan.attempted["dig"]["name"] == "Dig" and asked.attempted == {"dig": {"name": "Dig"}}


def test_the_whole_method_leaves_a_plan_as_it_is() -> None:
    asked = Enforced([item("dig", "code")])
    assert confined("rlgpt", "policy", asked) == ("policy", asked)


@pytest.mark.parametrize(("arm", "other"), [("rlgpt", "code"), ("code", "code"), ("rl", "rl")])
def test_what_is_to_have_no_code_has_none_in_any_arm(arm: str, other: str) -> None:
    asked = Enforced([item("dig", "code"), item("fight", "code")])
    _, plan = confined(arm, "sequence", asked, ["fight"])
    assert [i.mode for i in plan.items] == [other, "rl"] and plan.attempted["fight"] == {"mode": "code"}


@pytest.mark.parametrize(("arm", "uncoded"), [("code", ()), ("rl", ()), ("rlgpt", ("dash",))])
def test_an_option_is_only_for_a_policy_that_has_code(arm: str, uncoded: tuple[str, ...]) -> None:
    dash = Item("dash", "option", "Do dash.", "", "view.there", 50, False, "slow", "view.late")
    _, plan = confined(arm, "policy", Enforced([item("dig", "code"), dash]), uncoded)
    assert [i.name for i in plan.items] == ["dig"] and "dropped" in plan.attempted["dash"]
    assert [i.mode for i in confined("rlgpt", "policy", Enforced([dash]))[1].items] == ["option"]


def test_an_option_that_works_is_what_a_policy_is_trained_for() -> None:
    told = Told().iteration().plan(dig="code", dash="option", triggers={"dash": "view.late"})
    told.code("dig").trial("dig")
    assert step(told) == Code("dash", 1), "after the steps, like a guard"
    unreached = told.code("dash").trial("dash", 0, "unreached", episodes=0)
    assert step(unreached) == Evaluate(0, "dev", "full", 0, 20), "nothing to learn: the sequence acts"
    assert step(told.code("dash").trial("dash")) == Configure(1)


def test_code_alone_does_not_learn_what_has_no_code() -> None:
    told = Told().iteration().plan(dig="code", fight="rl").code("dig").trial("dig")
    assert step(told) == Configure(1)
    assert step(told, arm="code") == Evaluate(0, "dev", "full", 0, 20)


def test_a_fixed_plan_is_not_refined_when_code_fails() -> None:
    told = Told().iteration().plan(dig="code").code("dig").trial("dig", 0).verdict("dig")
    assert step(told) == Plan(0, 0, ("dig",), False)
    assert step(told, fixed_plan=True) == Evaluate(0, "dev", "full", 0, 20)


def learnt(told: Told, coded: bool) -> Told:
    """An iteration whose run of PPO used up everything."""
    told.iteration().plan("policy", dig="code" if coded else "rl", fight="rl")
    if coded:
        told.code("dig").trial("dig")
    return told.config().train()


def test_what_the_last_env_steps_bought_is_evaluated_judged_and_tested() -> None:
    told = learnt(Told(), coded=False)
    assert step(told, "used up") == Evaluate(0, "dev", "full", 0, 20)
    told.evaluate(5, run=1).evaluate(5, run=1, variant="greedy")
    assert step(told, "used up") == JudgeIteration(0)
    assert step(told.verdict(), "used up") == Evaluate(0, "test", "full", 0, 100)


def test_a_reached_budget_opens_no_further_iteration_and_trains_nothing() -> None:
    told = learnt(Told(), coded=False).evaluate(5, run=1).verdict()
    assert isinstance(step(told, iterations=3), OpenIteration)
    assert isinstance(step(told, "used up", iterations=3), Evaluate)
    assert isinstance(step(Told().iteration().plan("policy", dig="rl").config()), Train)
    assert not isinstance(step(Told().iteration().plan("policy", dig="rl").config(), "used up"), Train)


def variants(told: Told) -> list[str]:
    found = []
    while isinstance(asked := step(told, controls=("plan", "random", "prior", "script")), Evaluate):
        found.append(asked.variant)
        told.evaluate(1, 100, "test", asked.variant, run=1)
    return found


def test_controls_are_tested_beside_a_learnt_incumbent() -> None:
    with_code = learnt(Told(), coded=True).evaluate(15, run=1).evaluate(5, variant="plan", run=1).verdict()
    own = ["full", "greedy", "options_off", "primitives_off"]
    assert variants(with_code) == [*own, "plan", "random", "prior", "script"]
    without = learnt(Told(), coded=False).evaluate(5, run=1).verdict()
    assert variants(without) == [*own, "random", "prior", "script"]


def test_beside_code_alone_only_the_script_is_a_control() -> None:
    told = Told().iteration().plan(dig="code").code("dig").trial("dig").evaluate(5).verdict()
    found = []
    while isinstance(asked := step(told, controls=("plan", "random", "script")), Evaluate):
        found.append(asked.variant)
        told.evaluate(1, 100, "test", asked.variant)
    assert found == ["full", "script"]


def test_the_script_bot_runs_the_last_versions_in_the_order_of_their_needs() -> None:
    world = make_world()
    book = {script.name: script for script in world.scripts("make_stone_pickaxe")}
    bot = script_bot(world, "make_stone_pickaxe")
    order = [next(name for name, script in book.items() if script.sources[-1] == one.source) for one in bot]
    assert order == ["collect_wood", "place_table", "make_wood_pickaxe", "collect_stone", "make_stone_pickaxe"]
    assert all(order.index(need) < order.index(name) for name in order for need in book[name].needs)


def test_a_world_without_a_script_book_has_no_bot() -> None:
    assert script_bot(make_corridor(), "open_door") == ()

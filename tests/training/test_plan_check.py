"""A plan that cannot be is told so in its repair turn, before anything is coded; what is left is renamed."""

from __future__ import annotations

from typing import Any

import pytest

from rlgpt.agents.contracts import PlanReply, SubActionReply
from rlgpt.agents.enforce import enforce
from rlgpt.store.history import Item
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.steps.plan_check import wrong_name, wrong_with, wrong_with_edits
from tests.training.opened import opened


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with opened(tmp_path_factory.mktemp("home")) as session:
        yield session


def item(name: str, done_when: str = 'view.inventory["wood"] >= 1') -> SubActionReply:
    return SubActionReply(name=name, mode="code", goal="g", reason="r", done_when=done_when, max_steps=100)


def plan(*items: SubActionReply) -> PlanReply:
    return PlanReply(executor="sequence", sub_actions=list(items), rationale="r")


@pytest.mark.parametrize("name", ["shelter", "fight", "explore", "go", "available", "follow_plan", "min", "while"])
def test_a_name_that_code_calls_itself_is_told_and_replaced(live: SessionRuntime, name: str) -> None:
    said = wrong_with(live, plan(item(name)))
    assert repr(name) in said and "call the sub-action otherwise" in said
    enforced = enforce(plan(item(name)), None, impossible=[name])
    assert [i.name for i in enforced.items] == [f"{name}_it"]
    assert wrong_name(live, item(f"{name}_it")) == ""


def test_every_predicate_is_checked_at_once(live: SessionRuntime) -> None:
    said = wrong_with(
        live,
        plan(
            item("chop", "view.inventory['wood'] >"), item("dig", "view.no_such_thing > 1"), item("walk", "open('x')")
        ),
    )
    assert all(f"done_when of {name}" in said for name in ("chop", "dig", "walk"))


def test_a_plan_that_can_be_is_left_alone(live: SessionRuntime) -> None:
    assert wrong_with(live, plan(item("collect_wood"), item("place_table"), item("noop"))) == ""


def test_every_name_and_predicate_of_the_script_book_can_be(live: SessionRuntime) -> None:
    book = live.world.sheet("collect_diamond")
    assert book["scripts"]
    assert wrong_with(live, plan(*(item(s["name"], s["done_when"]) for s in book["scripts"]))) == ""


def test_an_operators_edit_is_checked_for_what_it_changes(live: SessionRuntime) -> None:
    def step(name: str, done_when: str = "view.health > 0", trigger: str = "", mode: str = "code") -> Item:
        return Item(name, mode, "g", "r", done_when, 100, False, "operator", trigger)

    broken_before = [step("chop", "view.no_such_thing > 1"), step("dig")]
    assert wrong_with_edits(live, broken_before, [*broken_before, step("rest", trigger="view.energy < 3")]) == ""
    for trigger, told in (
        ("view.energy <", "rule syntax"), ("view.enregy < 3", "enregy"), ("open('x')", "open"), ("3 +", "rule syntax"),
    ):  # fmt: skip
        said = wrong_with_edits(live, broken_before, [*broken_before, step("rest", trigger=trigger)])
        assert said.startswith(f"trigger of rest ({trigger!r}) is refused") and told in said
    assert "a guard is code" in wrong_with_edits(
        live, broken_before, [*broken_before, step("rest", "True", "True", "rl")]
    )
    for guards_only in ("code", "option"):
        said = wrong_with_edits(live, [step("dig")], [step("dig", trigger="view.energy < 3", mode=guards_only)])
        assert "no sub-action is a step" in said
    assert "needs a trigger" in wrong_with_edits(live, [step("dig")], [step("dig"), step("dash", mode="option")])
    dash = step("dash", trigger="view.energy < 3", mode="option")
    assert wrong_with_edits(live, [step("dig")], [step("dig"), dash]) == ""
    assert "done_when of dig" in wrong_with_edits(live, broken_before, [broken_before[0], step("dig", "view.wod > 1")])
    assert "'fight' is taken" in wrong_with_edits(live, broken_before, [*broken_before, step("fight")])

"""The rule-based model judges by what stands in the request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rlgpt.agents import critic
from rlgpt.agents.client import Client
from rlgpt.agents.rules.judging import compare
from tests.agents.histories import Told
from tests.agents.rule_based import accepted_plan, where
from tests.agents.toys import BREAD

EMPTY = {"bag": {"flour": 0, "dough": 2}, "near": ["mill", "field"], "facing": "mill"}
FULL = {"bag": {"flour": 1, "dough": 2}, "near": ["mill", "field"], "facing": "mill"}


def judge(client: Client, good: Any, bad: Any = None, name: str = "get_flour") -> Any:
    told = Told().iteration().plan(**{name: "code"}).code(name)
    assert told.history.plan

    def trial(pair: Any) -> Any:
        return pair and {"before": pair[0], "after": pair[1], "end": "return", "message": "", "yields": ["use"]}

    evidence = {"good": trial(good), "bad": trial(bad)}
    return critic.judge_item(client, where(told), told.history.plan.items[0], evidence)


def test_the_critic_sees_success_in_the_views(client: Client) -> None:
    verdict = judge(client, (EMPTY, FULL))
    assert verdict.success and "flour 0 -> 1" in verdict.cause


def test_swapped_views_flip_the_verdict(client: Client) -> None:
    assert not judge(client, (FULL, EMPTY)).success


def test_an_untouched_world_fails(client: Client) -> None:
    verdict = judge(client, (EMPTY, EMPTY))
    assert not verdict.success and "nothing that can be seen has changed" in verdict.cause


def test_a_change_of_something_else_fails(client: Client) -> None:
    elsewhere = EMPTY | {"facing": "field"}
    assert not judge(client, (EMPTY, elsewhere)).success
    assert not judge(client, (EMPTY, EMPTY | {"bag": {"flour": 0, "dough": 9}})).success


def test_one_bad_trial_of_two_is_no_success_and_its_end_is_named(client: Client) -> None:
    verdict = judge(client, (EMPTY, FULL), (EMPTY, EMPTY))
    assert not verdict.success and "ended by return" in verdict.cause and verdict.advice_fast


def test_reached_milestones_and_things_built_or_beaten_count() -> None:
    def success(goal: str, before: object, after: object) -> bool:
        return compare(goal, {"before": before, "after": after}).success

    assert success("place_table Place a table.", {"seen": ["tree"]}, {"seen": ["table"]})
    assert success("wake_up Sleep.", {"achieved": [], "energy": 3}, {"achieved": ["wake_up"], "energy": 9})
    assert success("defeat_zombie Defeat a zombie.", {"near": ["zombie"], "x": 1}, {"near": ["cow"], "x": 1})
    assert not success("defeat_zombie Defeat a zombie.", {"near": ["cow"]}, {"near": ["zombie"]})
    assert not success("collect_wood Collect 5 wood.", {"wood": 0}, {"wood": 3})
    assert success("collect_wood Collect 5 wood.", {"wood": 0}, {"wood": 5})
    assert not success("make_wood_sword Make it.", {"wood": 1, "wood_sword": 0}, {"wood": 3, "wood_sword": 0})


def test_the_iteration_is_judged_by_its_numbers_and_says_where_episodes_are_lost(client: Client) -> None:
    funnel = {"get_flour": 19, "make_dough": 6, "build_oven": 5, "make_bread": 5}
    told = accepted_plan().evaluate(5, funnel=funnel)
    verdict = critic.judge_iteration(client, where(told), 0)
    assert not verdict.success and "make_dough: 13 of the 19 that came to it" in verdict.cause
    assert "policy" in verdict.advice_slow
    assert critic.judge_iteration(client, where(accepted_plan().evaluate(20)), 0).success


def test_the_interval_is_that_of_the_screen(client: Client) -> None:
    """The one of the request is rounded: rounded once more it would be 0.86."""
    cause = critic.judge_iteration(client, where(accepted_plan().evaluate(48, 50)), 0).cause
    assert "48/50 dev episodes succeeded (95% interval 0.87 to 0.99)" in cause


def test_a_step_that_fewer_reached_than_did_the_task_lost_nobody(client: Client) -> None:
    """The predicate of a step that is left to RL never holds."""
    funnel = {"get_flour": 19, "make_dough": 0, "build_oven": 0, "make_bread": 11}
    cause = critic.judge_iteration(client, where(accepted_plan().evaluate(11, funnel=funnel)), 0).cause
    assert "most are lost at make_bread: 8 of the 19 that came to it" in cause


def test_a_step_that_no_view_shows_is_counted_by_its_milestone(client: Client) -> None:
    """Its sheet has no done_when for it."""
    names = ("get_flour", "make_dough", "build_oven", "make_bread")
    told = Told().iteration().plan(done="False", **dict.fromkeys(names, "rl"))
    told.evaluate(5, funnel=dict.fromkeys(names, 0), milestones={"make_dough": 18, "make_bread": 5})
    task = replace(BREAD, milestones=("make_dough", "make_bread"))
    cause = critic.judge_iteration(client, where(told, task=task), 0).cause
    assert "most are lost at make_bread: 13 of the 18 that came to it" in cause


def test_the_iterations_critic_says_which_is_better_also_when_it_is_the_code(client: Client) -> None:
    def cause(policy: int, code: int) -> str:
        told = accepted_plan("policy").config().train().evaluate(policy, run=1)
        return critic.judge_iteration(client, where(told.evaluate(code, run=1, variant="plan")), 0).cause

    assert "the code alone is ahead" in cause(3, 9) and "the policy is ahead" in cause(9, 3)


def test_where_a_difference_was_measured_the_iterations_critic_goes_by_its_interval(client: Client) -> None:
    told = accepted_plan("policy").config().train().evaluate(9, run=1).evaluate(3, run=1, variant="plan")

    def cause(difference: tuple[float, float, float]) -> str:
        return critic.judge_iteration(client, where(told), 0, difference).cause

    assert "+0.15 [+0.04, +0.26] for the policy on the same seeds: the policy is better" in cause((0.15, 0.04, 0.26))
    assert "neither is better" in cause((0.15, -0.04, 0.34)) and "the code alone is better" in cause((-0.2, -0.3, -0.1))


def test_what_is_both_a_number_and_a_text_of_a_view_is_told_by_its_number() -> None:
    """A kitchen's door: how far it is open, and its milestone among those reached. They were added up to 2."""
    before = {"opened": {"microwave": 0.025}, "reached": []}
    after = {"opened": {"microwave": 1.0}, "reached": ["microwave"]}
    found = compare("Open the microwave.", {"before": before, "after": after})
    assert found.success and found.cause == "microwave 0.025 -> 1"

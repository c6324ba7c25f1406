"""When an iteration is the result, what is tested of it, and for which reason the loop stops."""

from __future__ import annotations

import pytest

from rlgpt.agents.loop import (
    TESTED,
    Done,
    Evaluate,
    JudgeIteration,
    OpenIteration,
)
from rlgpt.store import events
from rlgpt.store.history import Measured
from tests.agents.histories import Told
from tests.agents.stepping import coded, judged, step


def test_success_needs_fifty_dev_episodes_and_thirty_of_them_only_after_twenty_good_ones() -> None:
    told = coded().evaluate(19)
    assert step(told) == Evaluate(0, "dev", "full", 20, 30)
    told.evaluate(29, 30, first=20)
    assert step(told) == JudgeIteration(0)
    assert step(told.verdict()) == Evaluate(0, "test", "full", 0, 100)
    told.evaluate(97, 100, split="test")
    assert step(told) == Done("succeeded", "dev success 48/50 reached the target")


def test_twenty_good_episodes_and_thirty_bad_ones_are_no_success() -> None:
    told = coded().evaluate(20).evaluate(10, 30, first=20).verdict()
    assert step(told) == OpenIteration(0, 1)


def test_the_code_alone_is_evaluated_on_as_many_episodes_as_the_policy() -> None:
    told = coded(dodge="rl").config().train().evaluate(19, run=1).evaluate(29, 30, first=20, run=1)
    assert step(told) == Evaluate(0, "dev", "plan", 0, 50)


def test_iterations_are_counted_from_zero_to_the_limit() -> None:
    told = judged(1)
    assert step(told) == OpenIteration(0, 1)
    told.iteration(1).plan(dig="code", done="view.other_{}").code("dig").trial("dig").evaluate(9).verdict()
    assert step(told) == OpenIteration(0, 2)
    told.iteration(2).plan(dig="code").evaluate(1).verdict()
    assert step(told) == Evaluate(1, "test", "full", 0, 100)
    assert step(told, iterations=3) == OpenIteration(0, 3)


def test_an_only_iteration_is_not_told_as_all_of_them() -> None:
    told = judged(1).evaluate(50, 100, split="test")
    assert step(told, iterations=0) == Done("finished", "the one iteration is done")


def test_no_change_stops_and_says_so() -> None:
    told = judged(10, number=1, told=judged(9))
    assert step(told) == Evaluate(1, "test", "full", 0, 100)
    done = step(told.evaluate(50, 100, split="test"))
    assert isinstance(done, Done) and done.status == "finished" and done.reason.startswith("no change")


def test_the_same_plan_with_another_success_goes_on() -> None:
    assert step(judged(15, number=1, told=judged(5))) == OpenIteration(0, 2)


def test_the_same_plan_with_new_code_is_a_change() -> None:
    told = judged(9)
    told.iteration(1).plan(dig="code").code("dig", author="operator").trial("dig").evaluate(10).verdict()
    assert step(told) == OpenIteration(0, 2)


def test_the_incumbent_is_the_best_iteration_and_the_earlier_of_two_equal_ones() -> None:
    told = judged(5, number=2, told=judged(9, number=1, told=judged(9)))
    assert step(told) == Evaluate(0, "test", "full", 0, 100)


def test_an_iteration_good_enough_to_be_measured_on_more_episodes_is_not_punished_for_them() -> None:
    told = judged(17).iteration(1).plan(dig="code").evaluate(19).evaluate(24, 30, first=20).verdict()
    found = told.history.incumbents[0]
    assert (found.iteration, "over 50 episodes" in found.why) == (1, True), "17 of 20 is below 19 of the same 20"
    told.iteration(2).plan(dig="code").evaluate(20).evaluate(26, 30, first=20).verdict()
    assert told.history.incumbents[0].iteration == 2, "of two that were measured alike the better one"


def test_where_the_result_is_a_score_the_incumbent_has_the_highest() -> None:
    told = Told(kind="score", milestones=["wood", "stone", "iron", "coal"])
    for number, score in enumerate((0.25, 0.5, 0.5)):
        told.iteration(number).plan(dig="code")
        if not number:
            told.code("dig").trial("dig")
        told.evaluate(3 - number, 20, score=score).verdict()
    assert told.history.incumbent is told.history.iterations[1]
    result = told.history.iterations[1].result
    assert result and result.score == 0.5 and result.low < 0.5 < result.high
    assert told.history.developed(told.history.iterations[1]).successes == 2, "what was measured stays as it was"


def test_a_reached_budget_ends_with_the_test_of_the_incumbent_and_its_reason() -> None:
    assert step(judged(5).iteration(1), "no tokens left") == Evaluate(0, "test", "full", 0, 100)
    assert step(Told().iteration(), "no tokens left") == Done("finished", "no tokens left")


def test_a_policy_is_tested_greedily_and_with_each_half_of_its_actions_off() -> None:
    told = coded(dodge="rl").config().train().evaluate(9, run=1).evaluate(2, run=1, variant="plan").verdict()
    asked = []
    while isinstance(test := step(told, "over"), Evaluate):
        asked.append(test.variant)
        told.evaluate(50, 100, split="test", variant=test.variant, run=1)
    assert asked == ["full", "greedy", "options_off", "primitives_off", "plan"]
    assert step(told, "over") == Done("finished", "over")


def test_where_the_code_alone_was_better_than_the_policy_it_acts_and_only_it_is_tested() -> None:
    told = coded(dodge="rl").config().train().evaluate(3, run=1).evaluate(9, run=1, variant="plan").verdict()
    best = told.history.incumbent
    assert best is not None and best.result and best.result.variant == "plan"
    assert step(told, "over") == Evaluate(0, "test", "full", 0, 100)
    assert step(told.evaluate(50, 100, split="test"), "over") == Done("finished", "over")
    later = judged(6, number=1, told=told).history
    assert later.incumbent is later.iterations[0]


def test_a_policy_that_did_better_greedily_plays_greedily_and_is_tested_sampled_beside_it() -> None:
    told = coded(dodge="rl").config().train().evaluate(9, run=1).evaluate(5, run=1, variant="plan")
    told.evaluate(11, run=1, variant="greedy").verdict()
    best = told.history.incumbent
    assert best is not None and best.result and best.result.variant == "greedy"
    assert told.history.developed(best) == Measured(11, 20)
    asked = []
    while isinstance(test := step(told, "over"), Evaluate):
        asked.append(test.variant)
        told.evaluate(50, 100, split="test", variant=test.variant, run=1)
        assert best.result.variant == "greedy", "what is tested does not change while it is"
    assert asked == ["full", "sampled", "options_off", "primitives_off", "plan"]


@pytest.mark.parametrize(
    ("full", "plan", "greedy", "played"),
    [(9, 9, 9, "plan"), (10, 9, 10, "plan"), (13, 9, 12, "full"), (9, 9, 13, "greedy"), (1, 0, 0, "full")],
)
def test_a_policy_acts_where_it_is_ahead_of_its_code_by_more_than_a_standard_error(
    full: int, plan: int, greedy: int, played: str
) -> None:
    told = coded(dodge="rl").config().train().evaluate(full, run=1).evaluate(plan, run=1, variant="plan")
    told.evaluate(greedy, run=1, variant="greedy").verdict()
    iteration = told.history.iterations[0]
    assert iteration.result and iteration.result.variant == played
    assert told.history.developed(iteration) == Measured({"full": full, "plan": plan, "greedy": greedy}[played], 20)


def policy_and_code(policy: set[int], code: set[int], episodes: int = 20, told: Told | None = None) -> Told:
    """Development in which the policy and the code alone won these episodes."""
    told = told or coded(dodge="rl").config().train()
    first = 0 if episodes == 20 else 20
    for variant, won in (("full", policy), ("plan", code), ("greedy", set[int]())):
        won = {i for i in won if first <= i < episodes}
        told.evaluate(len(won), episodes - first, variant=variant, first=first, run=1, failures={"won": sorted(won)})
    return told


@pytest.mark.parametrize(
    ("policy", "code", "played"),
    [
        (set(range(12)), set(range(8)), "full"),  # 4 by the policy alone: 0.06 if neither were better
        (set(range(11)), set(range(8)), "full"),  # 3: 0.125
        (set(range(10)), set(range(8)), "plan"),  # 2: 0.25
        (set(range(4, 14)), set(range(8)), "plan"),  # 6 and 4
        (set(range(2, 16)), set(range(8)), "full"),  # 8 and 2: 0.055
        (set(range(8)), set(range(8)), "plan"),
        ({3}, set(), "full"),  # code that never won has nothing to lose
    ],
)
def test_the_episodes_that_only_one_of_policy_and_code_won_decide_which_acts(
    policy: set[int], code: set[int], played: str
) -> None:
    told = policy_and_code(policy, code).verdict()
    result = told.history.iterations[0].result
    assert result and result.variant == played
    alone = f"of 20 episodes {len(policy - code)} won by the policy alone, {len(code - policy)} by the code alone:"
    assert alone in result.why


def test_a_difference_that_may_be_luck_is_played_on_more_episodes() -> None:
    few = {"budget": {"env_steps": 180_000}}
    told = policy_and_code(
        set(range(12)),
        set(range(10)),
        told=Told(settings=few).iteration().plan(dig="code", dodge="rl").code("dig").trial("dig").config().train(),
    )
    assert step(told) == Evaluate(0, "dev", "full", 20, 30)
    told.evaluate(15, 30, first=20, run=1, failures={"won": list(range(20, 35))})
    assert step(told) == Evaluate(0, "dev", "plan", 20, 30)
    told.evaluate(12, 30, first=20, run=1, variant="plan", failures={"won": list(range(20, 32))})
    assert step(told) == Evaluate(0, "dev", "greedy", 20, 30)
    told.evaluate(12, 30, first=20, run=1, variant="greedy", failures={"won": list(range(20, 32))})
    assert step(told) == JudgeIteration(0)
    result = told.verdict().history.iterations[0].result
    assert result and (result.variant, result.score) == ("full", 27 / 50)
    assert "of 50 episodes 5 won by the policy alone, 0 by the code alone" in result.why


@pytest.mark.parametrize(
    ("policy", "code", "limits", "env_steps"),
    [
        (set(range(14)), set(range(10)), {}, 180_000),  # decided: the policy
        (set(range(10)), set(range(14)), {}, 180_000),  # decided: the code
        (set(range(10)), set(range(10)), {}, 180_000),  # they won the same: more of the same
        ({3}, set(), {}, 180_000),
        (set(range(12)), set(range(10)), {"dev_more": 0}, 180_000),
        (set(range(12)), set(range(10)), {}, 179_000),  # 90 more episodes of 100 env steps are more than a twentieth
    ],
)
def test_more_episodes_are_not_played_where_it_is_decided_or_they_cost_too_much(
    policy: set[int], code: set[int], limits: dict[str, int], env_steps: int
) -> None:
    told = Told(settings={"budget": {"env_steps": env_steps}}).iteration().plan(dig="code", dodge="rl")
    told = policy_and_code(policy, code, told=told.code("dig").trial("dig").config().train())
    assert step(told, **limits) == JudgeIteration(0)


@pytest.mark.parametrize("won", [None, [], [1, 2], "0123456789", [*range(10), "x", None]])
def test_where_it_is_not_known_which_episodes_were_won_their_shares_decide(won: object) -> None:
    told = coded(dodge="rl").config().train()
    told.evaluate(12, run=1, failures={"won": won}).evaluate(10, run=1, variant="plan").verdict()
    result = told.history.iterations[0].result
    assert result and result.variant == "plan" and "won by" not in result.why


@pytest.mark.parametrize(
    ("first", "more", "best"),
    [
        (15, 30, 1),  # 45 of 50 are more than 16 of 20
        (17, 20, 1),  # 37 of 50 are less, but of the 20 that both played it won more
        (16, 24, 0),  # 0.80 and 0.80: the earlier
        (15, 24, 0),
    ],
)
def test_what_was_played_on_more_episodes_does_not_lose_by_them(first: int, more: int, best: int) -> None:
    told = policy_and_code(set(range(16)), set(range(8))).verdict()
    told.iteration(1).plan("policy", dig="code", dodge="rl").config().train()
    for start, episodes, policy, code in ((0, 20, first, 5), (20, 30, more, 5)):
        for variant, successes in (("full", policy), ("plan", code), ("greedy", 0)):
            won = list(range(start, start + successes))
            told.evaluate(successes, episodes, variant=variant, first=start, run=2, failures={"won": won})
    told.verdict()
    found = told.history.incumbents[0]
    assert (found.iteration, "by those that the others played too" in found.why) == (best, True)


def test_of_a_score_the_better_acts() -> None:
    told = (
        Told(kind="score", milestones=["wood", "iron"]).iteration().plan("policy", dig="code").code("dig").trial("dig")
    )
    told.config().train().evaluate(0, 20, run=1, score=0.61).evaluate(9, 20, run=1, variant="plan", score=0.6).verdict()
    result = told.history.iterations[0].result
    assert result and (result.variant, result.score) == ("full", 0.61)


def test_nothing_is_decided_after_the_first_test_episode() -> None:
    told = judged(5)
    assert step(told, "over") == Evaluate(0, "test", "full", 0, 100)
    told.evaluate(50, 100, split="test")
    assert step(told) == Done("finished", TESTED)
    assert step(told.plan(dig="rl")) == Done("finished", TESTED)


def test_an_ended_session_stays_ended() -> None:
    told = judged(5).event(events.Ended(status="failed", reason="the disk is full"))
    assert step(told) == Done("failed", "the disk is full")


def test_a_policy_of_a_revision_that_the_operator_replaced_is_no_result() -> None:
    told = coded(dodge="rl").config().train().evaluate(12, run=1).evaluate(2, run=1, variant="plan")
    told.evaluate(16, run=1, variant="greedy").plan(dig="code").evaluate(1).verdict()
    result = told.history.iterations[0].result
    assert result and (result.variant, result.score) == ("full", 0.05)
    told.iteration(1).plan(dig="code").evaluate(10).verdict()
    assert told.history.incumbents[0].iteration == 1


def test_a_budget_that_ends_in_a_later_sub_task_ends_with_the_test_of_the_one_before() -> None:
    told = Told(long_horizon=True).tasks("a", "t").iteration().plan(dig="code").code("dig").trial("dig").evaluate(9)
    told.verdict().iteration(0, sub_task=1)
    assert step(told, "over") == Evaluate(0, "test", "full", 0, 100)

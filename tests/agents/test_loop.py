"""The loop is a pure function of the history: every step it names until the session ends."""

from __future__ import annotations

import pytest

from rlgpt.agents.choice import NO_CODE
from rlgpt.agents.loop import (
    Code,
    Configure,
    Done,
    Evaluate,
    JudgeItem,
    JudgeIteration,
    OpenIteration,
    Plan,
    PlanTasks,
    Step,
    Train,
    Trial,
    Wait,
)
from rlgpt.agents.outcome import warm_start_source
from rlgpt.store import events
from tests.agents.histories import Told
from tests.agents.stepping import LIMITS, coded, judged, step


# ---- the way through an iteration -----------------------------------------------------------------
def test_a_new_session_opens_iteration_0() -> None:
    assert step(Told()) == OpenIteration(0, 0)


def test_a_long_horizon_task_is_planned_first() -> None:
    assert step(Told(long_horizon=True)) == PlanTasks()
    assert step(Told(long_horizon=True).tasks("a", "b")) == OpenIteration(0, 0)


def test_an_iteration_begins_with_a_plan_even_if_an_older_one_is_in_force() -> None:
    assert step(Told().iteration()) == Plan(0, 0)
    assert step(judged(3).iteration(1)) == Plan(0, 1)


def test_coded_sub_actions_are_written_and_tried_in_the_order_of_the_plan() -> None:
    told = Told().iteration().plan(dig="code", build="code")
    assert step(told) == Code("dig", 1)
    assert step(told.code("dig")) == Trial("dig", 1)
    assert step(told.trial("dig")) == Code("build", 1)


def test_a_failed_trial_is_judged_once_and_then_repaired() -> None:
    told = Told().iteration().plan(dig="code").code("dig").trial("dig", 1)
    assert step(told) == JudgeItem("dig", 1)
    assert step(told.verdict("dig")) == Code("dig", 2)


def test_accepted_code_that_loses_episodes_of_the_whole_plan_is_written_anew() -> None:
    def after(**funnel: int) -> Step:
        told = Told().iteration().plan(dig="code", cut="code")
        for name in ("dig", "cut"):
            told.code(name).trial(name)
        told.evaluate(3, funnel=funnel).verdict().iteration(1).plan(dig="code", cut="code")
        return step(told)

    assert after(dig=20, cut=19) == Evaluate(1, "dev", "full", 0, 20), "two such sub-actions reach the target of 0.9"
    assert after(dig=20, cut=18) == Evaluate(1, "dev", "full", 0, 20), "two lost in twenty may be chance"
    assert after(dig=20, cut=16) == JudgeItem("cut", 1)
    assert after(dig=16, cut=16) == JudgeItem("dig", 1)
    assert after(dig=4, cut=0) == JudgeItem("dig", 1), "too few came to cut to say anything about it"


def test_accepted_code_whose_goal_has_changed_is_asked_for_once_however_good_it_is() -> None:
    def after(done: str = "view.{}", author: str = "fast", goal: str = "Dig deep.") -> Told:
        told = Told().iteration().plan(dig="code").code("dig", author=author).trial("dig")
        told.evaluate(17, funnel={"dig": 20}).verdict().iteration(1)
        return told.plan(dig="code", goals={"dig": goal}, done=done)

    evaluated = Evaluate(1, "dev", "full", 0, 20)
    assert step(after()) == Code("dig", 1)
    assert step(after(goal="Do dig.")) == evaluated, "as before"
    assert step(after(author="operator")) == evaluated, "the operator's code stays"
    assert step(after(done="view.{} > 1")) == Trial("dig", 1), "a changed done_when has the code tried first"
    assert step(after(done="view.{} > 1").trial("dig")) == Code("dig", 1), "and then asked for"
    assert step(after(done="view.{} > 1", goal="Do dig.").trial("dig")) == evaluated, "as before, and it does its work"
    assert step(after().code("dig").trial("dig")) == evaluated, "once"
    failed = after().code("dig").trial("dig", 0)
    assert step(failed) == JudgeItem("dig", 2)
    assert step(failed.verdict("dig")) == Code("dig", 2), "what failed at it is repaired"
    refused = after().code("dig", admitted=False).trial("dig", 0, "refused", episodes=0)
    assert step(refused) == Code("dig", 2), "and what was refused"
    for _ in range(LIMITS.inner - 1):
        refused.code("dig", admitted=False).trial("dig", 0, "refused", episodes=0)
    assert step(refused) == evaluated, "while attempts are left"
    assert step(after(goal="Do  dig.\n")) == evaluated, "white space asks for nothing"
    kept = after().code("dig", admitted=False, rule=NO_CODE).trial("dig", 0, "refused", episodes=0)
    assert step(kept) == evaluated, "the fast agent may keep what there is"
    again = kept.evaluate(17, funnel={"dig": 20}).verdict().iteration(2)
    assert step(again.plan(dig="code", goals={"dig": "Dig deep."})) == Evaluate(2, "dev", "full", 0, 20)
    assert step(again.plan(dig="code", goals={"dig": "Dig deeper."})) == Code("dig", 1), "another goal, another try"
    next_task = Told().tasks("a", "b").iteration().plan(dig="code").code("dig").trial("dig")
    next_task.evaluate(17, funnel={"dig": 20}).verdict().iteration(0, 1).plan(dig="code", goals={"dig": "Dig deep."})
    assert step(next_task) == Evaluate(0, "dev", "full", 0, 20), "every sub-task has its own words"


def test_the_newest_accepted_version_is_in_use_unless_it_is_clearly_below_an_earlier_one() -> None:
    def used(*successes: int) -> int:
        told = Told().iteration().plan(dig="code")
        for number in successes:
            told.code("dig").trial("dig", number)
        plan = told.history.plan
        found = told.history.accepted(plan, plan.items[0]) if plan else None
        return found.version if found else 0

    assert used(4, 4) == 2
    assert used(5, 4) == 1
    assert used(3, 5, 3) == 2
    assert used(2) == 0


def test_what_was_won_in_trials_does_not_keep_code_that_loses_in_the_plan() -> None:
    def used(done: int) -> int:
        told = Told().iteration().plan(dig="code").code("dig").trial("dig", 5)
        told.evaluate(done, funnel={"dig": done}).verdict().iteration(1).plan(dig="code")
        told.code("dig").trial("dig", 7, episodes=10)
        plan = told.history.plan
        found = told.history.accepted(plan, plan.items[0]) if plan else None
        return found.version if found else 0

    assert used(20) == 1, "5 of 5 and all of the plan, against 7 of 10"
    assert used(8) == 2, "5 of 5 and 8 of 20 in the plan, against 7 of 10"


def test_a_version_that_does_worse_in_the_plan_than_an_earlier_one_goes_back_but_for_the_operators() -> None:
    def used(first: int, second: int, author: str = "fast") -> list[int]:
        """Versions in use while the second was tried, after it, and when another one is written."""
        told = Told().iteration().plan(dig="code").code("dig").trial("dig")
        told.evaluate(first, funnel={"dig": first}).verdict()
        told.iteration(1).plan(dig="code").code("dig", author=author).trial("dig")
        now = [version(told)]
        told.evaluate(second, funnel={"dig": second}).verdict()
        assert told.history.iteration and told.history.iteration.verdict and told.history.plan
        assert version(told) == now[0], "what was in use is not changed by what it led to"
        now.append(version(told.iteration(2).plan(dig="code")))
        return [*now, version(told.code("dig").trial("dig"))]

    def version(told: Told) -> int:
        plan = told.history.plan
        found = told.history.accepted(plan, plan.items[0]) if plan else None
        return found.version if found else 0

    assert used(19, 12) == [2, 1, 3]
    assert used(12, 19) == [2, 2, 3]
    assert used(18, 17) == [2, 2, 3], "by one standard error or less: that may be luck"
    assert used(20, 19) == [2, 2, 3], "one lost episode is luck beside none, too"
    assert used(19, 12, author="operator") == [2, 2, 2]


def test_code_that_sometimes_works_stays_an_action_of_the_policy_but_not_against_the_operator() -> None:
    told = Told().iteration().plan(dig="code", cut="code")
    told.code("dig").trial("dig", 1).code("dig").trial("dig", 2).code("cut").trial("cut", 0)

    def usable(**modes: str) -> list[int]:
        plan = told.plan(**modes).history.plan
        return [plan.acts(item.name) or 0 for item in plan.items] if plan else []

    assert usable(dig="rl", cut="rl") == [2, 0]
    assert usable(dig="code", cut="code") == [2, 0]
    assert usable(pinned=("dig",), dig="rl", cut="rl") == [0, 0]  # type: ignore[arg-type]
    told.plan(dig="code").code("dig").trial("dig", 5)
    assert usable(dig="rl", cut="rl") == [0, 0], "what works as code and is to be learnt all the same is learnt"


def test_an_agent_that_cannot_code_it_is_not_asked_again_in_this_iteration() -> None:
    told = Told().iteration().plan(dig="code").code("dig").trial("dig", 1).verdict("dig")
    told.code("dig", admitted=False, rule=NO_CODE).trial("dig", 0, "refused")
    assert step(told, inner=10) == Plan(0, 0, ("dig",), False)
    told.plan(dig="code").evaluate(0).verdict().iteration(1).plan(dig="code")
    assert step(told, inner=10) == Code("dig", 1)


def test_refused_code_is_repaired_without_a_critic() -> None:
    told = Told().iteration().plan(dig="code").code("dig", admitted=False).trial("dig", 0, "refused")
    assert step(told) == Code("dig", 2)


def test_without_a_critic_nothing_is_judged() -> None:
    told = Told().iteration().plan(dig="code").code("dig").trial("dig", 1)
    assert step(told, critic="none") == Code("dig", 2)


def test_a_human_critic_is_waited_for_at_sub_action_and_iteration() -> None:
    told = Told().iteration().plan(dig="code").code("dig").trial("dig", 1)
    assert step(told, critic="human") == Wait("critic", item="dig")
    assert step(coded().evaluate(3), critic="human") == Wait("critic")


def test_a_plan_of_accepted_code_is_evaluated_without_training() -> None:
    told = coded()
    assert step(told) == Evaluate(0, "dev", "full", 0, 20)
    assert step(told.evaluate(3)) == JudgeIteration(0)


@pytest.mark.parametrize("reason", ["executor", "mode"])
def test_a_policy_is_configured_trained_and_evaluated_beside_the_code_alone(reason: str) -> None:
    told = Told().iteration()
    told = told.plan("policy", dig="code") if reason == "executor" else told.plan(dig="code", dodge="rl")
    told.code("dig").trial("dig")
    assert step(told) == Configure(1)
    assert step(told.config(rate=1)) == Train(1, None)
    assert step(told.train(ended="")) == Train(1, 1)
    told.event(events.TrainingEnded(run=1, state="finished", reason="", env_steps=9, decisions=5, updates=1))
    assert step(told) == Evaluate(0, "dev", "full", 0, 20)
    assert step(told.evaluate(3, run=1)) == Evaluate(0, "dev", "plan", 0, 20)
    assert step(told.evaluate(2, run=1, variant="plan")) == Evaluate(0, "dev", "greedy", 0, 20)
    assert step(told.evaluate(4, run=1, variant="greedy")) == JudgeIteration(0)


def test_a_policy_without_any_code_is_not_compared_with_code() -> None:
    told = Told().iteration().plan(dodge="rl").config().train().evaluate(3, run=1)
    assert step(told) == Evaluate(0, "dev", "greedy", 0, 20)
    assert step(told.evaluate(2, run=1, variant="greedy")) == JudgeIteration(0)


def test_a_failed_run_leaves_the_code_to_be_evaluated() -> None:
    told = coded(dodge="rl").config().train(ended="failed")
    assert step(told) == Evaluate(0, "dev", "full", 0, 20)
    assert step(told.evaluate(3)) == JudgeIteration(0)


# ---- refinement -----------------------------------------------------------------------------------
def failed_as_code(told: Told, name: str = "dig") -> Told:
    for _ in range(LIMITS.inner):
        told.code(name).trial(name, 0).verdict(name)
    return told


def test_after_all_attempts_the_plan_is_refined_and_the_last_refinement_is_said_to_be_the_last() -> None:
    told = failed_as_code(Told().iteration().plan(dig="code"))
    assert step(told) == Plan(0, 0, ("dig",), last_depth=False)
    told.plan(depth=1, dig="code", scratch="code")
    assert step(told) == Code("scratch", 1)
    failed_as_code(told, "scratch")
    assert step(told) == Plan(0, 0, ("dig", "scratch"), last_depth=True)


def test_a_sub_action_handed_to_rl_is_not_coded_again() -> None:
    told = failed_as_code(Told().iteration().plan(dig="code")).plan("policy", depth=1, dig="rl")
    assert step(told) == Configure(2)


def test_at_the_last_depth_a_pinned_failure_does_not_stop_the_iteration() -> None:
    told = failed_as_code(Told().iteration().plan(depth=2, pinned=("dig",), dig="code"))
    assert step(told) == Evaluate(0, "dev", "full", 0, 20)


def test_a_vacuous_predicate_is_refined_at_once() -> None:
    told = Told().iteration().plan(dig="code").code("dig").trial("dig", 0, "vacuous")
    assert step(told) == Plan(0, 0, ("dig",), last_depth=False)


def test_a_changed_predicate_means_new_attempts() -> None:
    told = failed_as_code(Told().iteration().plan(dig="code")).plan(depth=1, done="view.new_{}", dig="code")
    assert step(told) == Code("dig", 1)


def test_attempts_are_counted_anew_in_every_iteration() -> None:
    told = failed_as_code(Told().iteration().plan(dig="code")).plan(depth=1, dig="rl").config().train()
    told.evaluate(3, run=1).verdict().iteration(1).plan(dig="code")
    assert step(told) == Code("dig", 1)


def test_an_unreached_sub_action_waits_for_another_plan_and_is_no_failure() -> None:
    told = Told().iteration().plan(dodge="rl", dig="code").code("dig").trial("dig", 0, "unreached")
    assert step(told) == Configure(1)
    told.config().train().evaluate(3, run=1).verdict().iteration(1).plan(dodge="rl", dig="code")
    assert step(told) == Trial("dig", 1)


# ---- the operator ---------------------------------------------------------------------------------
def test_a_plan_under_review_waits_and_a_rejected_one_is_planned_again() -> None:
    told = Told().iteration().plan(force=False, dig="code")
    assert step(told, review=True) == Wait("approval", revision=1)
    assert step(told.event(events.PlanRejected(revision=1, author="o", text="no")), review=True) == Plan(0, 0)


def test_an_approved_plan_goes_on() -> None:
    told = Told().iteration().plan(force=False, dig="code")
    assert step(told.event(events.PlanInForce(1)), review=True) == Code("dig", 1)


def test_a_rejected_refinement_is_asked_for_again() -> None:
    told = failed_as_code(Told().iteration().plan(dig="code")).plan(depth=1, force=False, dig="rl")
    assert step(told) == Wait("approval", revision=2)
    told.event(events.PlanRejected(revision=2, author="o", text="split it"))
    assert step(told) == Plan(0, 0, ("dig",), last_depth=False)


def test_code_edited_by_the_operator_is_tried_though_an_older_version_is_accepted() -> None:
    told = coded().code("dig", author="operator")
    assert step(told) == Trial("dig", 2)
    assert step(told.trial("dig", 0)) == Evaluate(0, "dev", "full", 0, 20)


def test_operators_edits_do_not_use_up_attempts() -> None:
    told = Told().iteration().plan(dig="code").code("dig", author="operator").trial("dig", 0).verdict("dig")
    assert step(told) == Code("dig", 1)


def test_an_override_during_training_closes_the_run_and_trains_on_the_new_revision() -> None:
    told = coded(dodge="rl").config().train(ended="")
    told.plan("policy", dig="rl", dodge="rl")
    told.event(events.TrainingEnded(run=1, state="superseded", reason="", env_steps=1, decisions=1, updates=0))
    assert step(told) == Configure(2)
    assert step(told.config()) == Train(2, None)


def test_an_override_after_the_verdict_reopens_the_iteration() -> None:
    told = judged(3).plan(dig="rl")
    assert step(told) == Configure(2)
    told.config().train().evaluate(5, run=1).evaluate(5, run=1, variant="greedy")
    assert step(told) == JudgeIteration(0)
    assert step(told.verdict()) == OpenIteration(0, 1)


def test_pause_and_stop_come_before_everything() -> None:
    told = coded().event(events.PauseRequested(author="o"))
    assert step(told) == Wait("paused")
    assert step(told.event(events.ResumeRequested(author="o"))) == Evaluate(0, "dev", "full", 0, 20)
    assert step(told.event(events.StopRequested(author="o", now=False))) == Done("stopped", "stopped by the operator")


# ---- long-horizon tasks ---------------------------------------------------------------------------
def test_each_sub_task_runs_its_own_two_loops() -> None:
    told = Told(long_horizon=True).tasks("a", "b").iteration()
    told.plan(dig="code").code("dig").trial("dig").evaluate(20).evaluate(30, 30, first=20).verdict()
    assert step(told) == PlanTasks()
    assert step(told.tasks("a", "b")) == OpenIteration(1, 0)
    assert step(told.iteration(0, sub_task=1)) == Plan(1, 0)
    told.plan(build="code")
    assert step(told) == Code("build", 1)


def test_a_sub_task_below_the_target_hands_over_when_its_iterations_are_used_up() -> None:
    told = judged(5, told=Told(long_horizon=True).tasks("a", "b"))
    assert step(told, iterations=0) == PlanTasks()
    assert step(told.tasks("a", "b"), iterations=0) == OpenIteration(1, 0)
    assert step(judged(5, told=Told(long_horizon=True).tasks("a", "b")), iterations=0, fixed_plan=True) == (
        OpenIteration(1, 0)
    )


def test_the_last_sub_task_ends_the_session_with_its_own_incumbent() -> None:
    told = judged(15, told=Told(long_horizon=True).tasks("a", "b"))
    told.iteration(0, sub_task=1).plan(dig="code").evaluate(4).verdict()
    assert step(told, iterations=0) == Evaluate(0, "test", "full", 0, 100)
    assert told.history.incumbent is told.history.iterations[1]


def test_until_a_sub_task_has_an_incumbent_the_one_before_goes_ahead() -> None:
    told = judged(15, told=Told(long_horizon=True).tasks("a", "b"))
    told.iteration(0, sub_task=1).plan(dig="code").evaluate(4)
    assert told.history.incumbent is None and warm_start_source(told.history) is told.history.iterations[0]
    told.verdict()
    assert warm_start_source(told.history) is told.history.incumbent is told.history.iterations[1]


def test_code_accepted_for_another_predicate_is_tried_again_before_it_is_written_anew() -> None:
    told = judged(15, told=Told(long_horizon=True).tasks("a", "b")).iteration(0, sub_task=1)
    assert step(told.plan(dig="code")) == Evaluate(0, "dev", "full", 0, 20)
    told.plan(dig="code", done="view.more_{}")
    assert step(told) == Trial("dig", 1)
    told.trial("dig", 0)
    assert step(told) == Code("dig", 1)


# ---- code that failed behind other code -----------------------------------------------------------
def test_code_that_failed_is_tried_again_once_the_code_before_it_has_been_rewritten() -> None:
    told = Told().iteration().plan(dig="code", cut="code", build="code").code("dig").trial("dig").code("cut")
    told.trial("cut", 2, "failed").code("cut").trial("cut", 0).code("cut", rule=NO_CODE, admitted=False)
    told.trial("cut", 0, "refused", episodes=0)
    told.code("build").trial("build", 0, "unreached", episodes=0)
    told.plan(depth=LIMITS.depth, dig="code", cut="rl", build="code").trial("build", 0, "unreached", episodes=0)
    told.evaluate(2, funnel={"dig": 8, "cut": 2, "build": 2}).verdict().iteration(1)
    told.plan(dig="code", cut="code", build="code")
    assert step(told) == JudgeItem("dig", 1), "dig is done in 8 of 20 episodes"
    told.verdict("dig").code("dig").trial("dig")
    assert step(told) == Trial("cut", 1), "the version that did best, before anything is written"
    assert step(told.trial("cut", 3, version=1)) == Trial("build", 1), "accepted: what waited behind it is tried too"


@pytest.mark.parametrize(
    ("end", "max_steps", "again"),
    [("time", 100, True), ("time", 50, False), ("time", 20, False), ("death", 100, False)],
)
def test_code_that_ran_out_of_time_is_tried_again_once_the_plan_gives_it_more(
    end: str, max_steps: int, again: bool
) -> None:
    failed = [{"end": end, "arrived": True, "start_true": False, "end_true": False}]
    told = Told().iteration().plan(dig="code")
    for successes in (1, 0, 0)[: LIMITS.inner]:
        told.code("dig").trial("dig", successes, trials=failed).verdict("dig")
    told.plan(depth=1, dig="code", max_steps=max_steps)
    if again:
        assert step(told) == Trial("dig", 1), "the version that did best"
        told.trial("dig", 1, version=1, trials=failed)
    assert isinstance(step(told), Plan)


def test_more_time_is_of_no_use_to_the_best_version_where_only_another_ran_out_of_it() -> None:
    timed_out, died = ([{"end": e, "arrived": True, "start_true": False, "end_true": False}] for e in ("time", "death"))
    told = Told().iteration().plan(dig="code")
    for successes, trials in ((2, died), (0, timed_out), (0, timed_out))[: LIMITS.inner]:
        told.code("dig").trial("dig", successes, trials=trials).verdict("dig")
    assert isinstance(step(told.plan(depth=1, dig="code", max_steps=100)), Plan)


def test_code_that_failed_again_is_written_anew_and_not_tried_a_third_time() -> None:
    told = Told().iteration().plan(dig="code", cut="code").code("dig").trial("dig").code("cut").trial("cut", 0)
    told.evaluate(2, funnel={"dig": 8, "cut": 2}).verdict().iteration(1).plan(dig="code", cut="code")
    told.verdict("dig").code("dig").trial("dig").trial("cut", 0, version=1)
    assert step(told) == Code("cut", 1)


def test_code_that_failed_behind_the_code_that_is_there_is_not_tried_again() -> None:
    told = Told().iteration().plan(dig="code", cut="code").code("dig").trial("dig").code("cut").trial("cut", 0)
    told.evaluate(2, funnel={"dig": 20, "cut": 2}).verdict().iteration(1).plan(dig="code", cut="code")
    assert step(told) == Code("cut", 1)


def test_code_that_was_not_reached_when_it_was_tried_again_is_not_tried_once_more() -> None:
    told = Told().iteration().plan(dig="code", cut="code").code("dig").trial("dig").code("cut").trial("cut", 0)
    told.verdict("cut").code("cut").trial("cut", 0).evaluate(2, funnel={"dig": 8, "cut": 2}).verdict().iteration(1)
    told.plan(dig="code", cut="code").verdict("dig").code("dig").trial("dig")
    assert step(told) == Trial("cut", 2), "the newest of equals"
    assert step(told.trial("cut", 0, "unreached", episodes=1)) == Evaluate(1, "dev", "full", 0, 20)

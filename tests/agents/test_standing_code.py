"""Accepted code that loses is repaired while attempts are left, whatever was answered for other code before it."""

from __future__ import annotations

from rlgpt.agents.choice import NO_CODE
from rlgpt.agents.loop import Code, Evaluate, JudgeItem, Plan
from tests.agents.histories import Told
from tests.agents.stepping import step

EVALUATED_AGAIN = Evaluate(1, "dev", "full", 0, 20)


def kept(told: Told, draft: int = 1) -> Told:
    """An answer without code; one that cannot be used is stored so too."""
    told.code("dig", admitted=False, rule=NO_CODE, draft=draft)
    return told.trial("dig", 0, "refused", episodes=0)


def refused(told: Told, draft: int = 1) -> Told:
    return told.code("dig", admitted=False, draft=draft).trial("dig", 0, "refused", episodes=0)


def six_of_ten(told: Told) -> Told:
    return told.code("dig").trial("dig", 6, episodes=10, outcome="accepted")


def test_an_answer_without_code_for_failed_code_does_not_end_the_repairs_of_later_code() -> None:
    told = kept(Told().iteration().plan(dig="code").code("dig").trial("dig", 0).verdict("dig"))
    assert isinstance(step(told), Plan)
    told.plan(dig="rl", depth=2).evaluate(1).verdict().iteration(1).plan(dig="code")
    assert step(told) == Code("dig", 1)
    assert step(six_of_ten(told)) == JudgeItem("dig", 3)


def test_an_answer_without_code_for_another_goal_does_not_end_the_repairs_of_later_code() -> None:
    told = Told().iteration().plan(dig="code").code("dig").trial("dig")
    told.evaluate(4, funnel={"dig": 4}).verdict().iteration(1).plan(dig="code").verdict("dig")
    kept(told).evaluate(4, funnel={"dig": 4}).verdict().iteration(2).plan(dig="code", goals={"dig": "Dig deep."})
    assert step(told) == Code("dig", 1)
    told.code("dig").trial("dig").evaluate(4, funnel={"dig": 4}).verdict()
    assert step(told.iteration(3).plan(dig="code", goals={"dig": "Dig deep."})) == JudgeItem("dig", 3)


def test_code_that_an_answer_without_code_kept_is_not_asked_for_again_while_its_goal_stands() -> None:
    told = kept(six_of_ten(Told().iteration().plan(dig="code")).verdict("dig"))
    told.evaluate(4, funnel={"dig": 4}).verdict().iteration(1)
    assert step(told.plan(dig="code")) == EVALUATED_AGAIN


def test_a_draft_without_code_settles_nothing_where_another_draft_of_the_attempt_has_code() -> None:
    def asked_for_more() -> Told:
        told = Told().iteration().plan(dig="code").code("dig").trial("dig")
        told.evaluate(17, funnel={"dig": 20}).verdict().iteration(1)
        return told.plan(dig="code", goals={"dig": "Dig deep."})

    told = asked_for_more()
    assert step(told, candidates=2) == Code("dig", 1, 1)
    assert step(refused(told), candidates=2) == Code("dig", 1, 2)
    assert step(kept(told, draft=2), candidates=2) == Code("dig", 2, 1)
    assert step(kept(kept(asked_for_more()), draft=2), candidates=2) == EVALUATED_AGAIN


def test_code_is_asked_for_and_repaired_after_its_done_when_went_there_and_back() -> None:
    def there_and_back(won: int, goal: str) -> Told:
        told = Told().iteration().plan(dig="code").code("dig").trial("dig", won, episodes=10, outcome="accepted")
        told.evaluate(17, funnel={"dig": 20}).verdict().iteration(1).plan(dig="code", done="view.{} > 1").trial("dig")
        told.evaluate(17, funnel={"dig": 20}).verdict().iteration(2)
        return told.plan(dig="code", goals={"dig": goal})

    assert step(there_and_back(10, "Dig deep.")) == Code("dig", 1)
    assert step(there_and_back(6, "Do dig.")) == JudgeItem("dig", 1)
    assert step(there_and_back(10, "Do dig.")) == Evaluate(2, "dev", "full", 0, 20)


def test_attempts_of_another_sub_task_do_not_count() -> None:
    told = Told(long_horizon=True).tasks("a", "b").iteration().plan(dig="code")
    for _ in range(2):
        told.code("dig").trial("dig", 0).verdict("dig")
    six_of_ten(told).evaluate(4, funnel={"dig": 20}).verdict().iteration(0, 1)
    assert step(told.plan(dig="code")) == JudgeItem("dig", 3)

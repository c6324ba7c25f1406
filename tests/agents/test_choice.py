"""Which losses are significant, and whose statistics count."""

from __future__ import annotations

from typing import Any

import pytest

from rlgpt.agents import choice, fast
from rlgpt.agents.client import make_client
from rlgpt.agents.contracts import CodeReply, RewardTerm, RlConfigAsked
from rlgpt.agents.loop import Evaluate, JudgeItem, Limits, next_step
from rlgpt.store.events import VersionChosen
from tests.agents.histories import Told, context
from tests.agents.toys import BREAD, Ledger, bakery


@pytest.mark.parametrize(
    ("done", "of", "needed", "below"),
    [
        (20, 20, 0.995, False),
        (19, 20, 0.995, False),  # it happens in one of ten such evaluations
        (18, 20, 0.995, True),
        (45, 50, 0.95, False),
        (43, 50, 0.95, True),
        (4, 5, 0.9, False),
        (6, 10, 0.9, True),
        (0, 0, 0.9, False),
        (1015, 1030, 0.991, False),  # binomial coefficients of so many episodes are too large for a float
        (1013, 1030, 0.991, True),
        (98_949, 100_000, 0.99, False),
        (98_900, 100_000, 0.99, True),
        (1029, 1030, 1.0, True),
    ],
)
def test_a_loss_counts_where_chance_does_not_explain_it(done: int, of: int, needed: float, below: bool) -> None:
    assert choice.is_below(done, of, needed) == below


def test_a_version_with_the_same_source_has_the_statistics_of_that_source() -> None:
    told = Told().iteration().plan(dig="code").code("dig", "cafe").trial("dig")
    told.evaluate(6, funnel={"dig": 6}).verdict().iteration(1).plan(dig="code")
    assert isinstance(next_step(told.history, Limits()), JudgeItem), "6 of 20 is no chance"
    plan = told.code("dig", "cafe").trial("dig").history.plan
    assert plan is not None
    uses = choice.plan_uses(told.history, plan.items[0])
    assert uses == {"cafe": choice.PlanUse(6, 20)}
    newest = told.history.attempts[-1]
    assert newest.version == 2 and not choice.good_enough(told.history, plan, plan.items[0], newest, 0.95)


def test_one_lost_episode_of_twenty_starts_no_rewrite() -> None:
    told = Told().iteration().plan(dig="code").code("dig").trial("dig")
    told.evaluate(19, funnel={"dig": 19}).verdict().iteration(1).plan(dig="code")
    assert isinstance(next_step(told.history, Limits(target=0.995)), Evaluate)


@pytest.mark.parametrize("outcome", ["unreached", "vacuous"])
def test_code_that_was_needed_too_seldom_to_be_accepted_acts_if_it_did_its_work(outcome: str) -> None:
    told = Told().iteration().plan(dig="code").code("dig").trial("dig", 2, outcome, episodes=2)
    chosen = _chosen(told)
    assert (chosen.version, chosen.accepted) == (1, False)
    assert chosen.why == "none is accepted; this one did its work in 2 of 2 trials, too few to accept it"


def test_code_that_was_needed_often_enough_goes_before_code_that_was_not() -> None:
    told = Told().iteration().plan(dig="code").code("dig").trial("dig", 2, "failed")
    told.code("dig").trial("dig", 1, "unreached", episodes=1)
    chosen = _chosen(told)
    assert (chosen.version, chosen.why) == (1, "none is accepted; this one did its work in 2 of 5 trials")


def test_why_no_code_acts_tells_code_that_failed_from_code_that_was_never_needed() -> None:
    told = Told().iteration().plan(dig="code").code("dig").trial("dig", 0, "unreached", episodes=0)
    assert _chosen(told).version is None
    assert _chosen(told).why == "no version was tried in a state in which the plan needs it"
    told.code("dig").trial("dig", 0, "failed")
    assert (_chosen(told).version, _chosen(told).why) == (None, "no version did its work in 20% of its trials")


def _chosen(told: Told) -> VersionChosen:
    plan = told.history.plan
    assert plan is not None
    chosen = choice.choose_version(told.history, plan, plan.items[0])
    assert chosen is not None
    return chosen


@pytest.mark.parametrize("pinned", [(), ("cut",)])
def test_the_steps_that_change_before_failed_code_are_named_but_not_before_what_is_pinned(
    pinned: tuple[str, ...],
) -> None:
    told = Told().iteration().plan(dig="code", cut="rl", pinned=pinned).code("dig").trial("dig").code("cut")
    told.trial("cut", 0).evaluate(2, funnel={"dig": 8, "cut": 2}).verdict()
    plan = told.history.plan
    assert plan is not None
    assert choice.changing_before(told.history, plan, plan.items[1], 0.95) == ([] if pinned else ["dig"])
    assert choice.changing_before(told.history, plan, plan.items[0], 0.95) == [], "its code did not fail"


def test_the_same_source_again_says_keep_it_where_it_is_accepted() -> None:
    told = Told().iteration().plan(dig="code").code("dig", "cafe").trial("dig", 3)
    assert told.history.plan
    client = make_client({"kind": "rules"}, Ledger(), {})
    source = "def dig(view):\n    yield 'walk'\n"
    client.ask = lambda *_: CodeReply(source=source + "\n", note="it is good")  # type: ignore[method-assign,assignment]
    there = context(told, bakery(), BREAD, text=lambda name: source)
    reply = fast.write(client, there, told.history.plan.items[0], 2)
    assert (reply.source, reply.note) == ("", "it is good")


def test_code_in_a_fence_is_stored_without_it() -> None:
    told = Told().iteration().plan(dig="code")
    assert told.history.plan
    client = make_client({"kind": "rules"}, Ledger(), {})
    source = "def dig(view):\n    yield 'walk'\n"
    fenced = CodeReply(source=f"\ufeff```python\n{source}```", note="")
    client.ask = lambda *_: fenced  # type: ignore[method-assign,assignment]
    assert fast.write(client, context(told, bakery(), BREAD), told.history.plan.items[0], 1).source == source


def test_a_refused_reward_comes_back_with_its_source_and_one_in_use_is_shown() -> None:
    terms = [{"term": "generated", "argument": "beef", "weight": 1.0}, {"term": "task", "argument": "", "weight": 1.0}]
    told = Told().iteration().plan("policy", dig="code").code("dig").trial("dig").config(reward=terms)
    told.train().evaluate(3, run=1).verdict().iteration(1).plan("policy", dig="code")
    client = make_client({"kind": "rules"}, Ledger(), {})
    asked: list[str] = []
    own = RlConfigAsked(target="t", observation=["f"], reward=[RewardTerm(term="task", weight=1.0)], primitives=[],
                        options=[], horizon=10, env_steps=0, reward_source="```\nx\n```")  # fmt: skip

    def ask(role: str, step: str, sent: Any, *others: Any) -> Any:
        asked.append(sent[1]["content"])
        return own

    client.ask = ask  # type: ignore[method-assign]
    texts = {"beef": "def reward(before, view):\n    return 0.25\n"}
    points = {"success": [0.1, 0.2], "kl": [0.01, 0.02]}
    there = context(told, bakery(), BREAD, text=lambda name: texts.get(name, ""), series=lambda run: points)
    assert fast.configure(client, there, "line 2: no import", "import os\n").reward_source == "x\n"
    (text,) = asked
    assert "return 0.25" in text and "import os" in text and "line 2: no import" in text
    assert '"ten_points": {"success": [0.1, 0.2], "kl": [0.01, 0.02]}' in text
    assert RlConfigAsked.model_fields["reward_source"].description

"""The rule-based model's settings of PPO follow from what stands in the request."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from rlgpt.agents import fast
from rlgpt.agents.client import Client
from rlgpt.agents.loop import Limits
from rlgpt.agents.rules import coding
from rlgpt.agents.rules.question import Question, read
from rlgpt.store.settings import Budget
from rlgpt.training.worlds.kitchen.sheet import ADVISED_RL
from tests.agents.histories import Told
from tests.agents.rule_based import FIRST, accepted_plan, where
from tests.agents.toys import Task, bakery


def question_of(messages: Any) -> Question:
    return read({"messages": messages})


def test_the_configuration_uses_what_is_accepted_and_shares_the_budget(client: Client) -> None:
    told = Told().iteration().plan("policy", **FIRST).code("get_flour").trial("get_flour")
    config = fast.configure(client, where(told))
    assert config.options == ["get_flour", "follow_plan"] and config.plan_prior > 0
    assert config.observation == ["near", "bag"] and config.horizon == 100
    assert config.env_steps % 2048 == 0 and 0.8 * 50_000 < config.env_steps <= 50_000
    assert ("distance", "oven") in [(t.term, t.argument) for t in config.reward]
    assert sum(t.weight for t in config.reward if t.term == "milestone") < 1.0


def test_a_sub_task_observes_what_the_one_before_did_so_that_its_policy_fits(client: Client) -> None:
    alone = Told(long_horizon=True).tasks("a", "b").iteration().plan("policy", **FIRST)
    way = [term for term in fast.configure(client, where(alone)).reward if term.term == "milestone"]
    told = Told(long_horizon=True).tasks("a", "b").iteration().plan("policy", **FIRST)
    first = fast.configure(client, where(told)).model_dump(mode="json")
    first["reward"] = [term for term in first["reward"] if term["term"] != "milestone"]
    told.config(**first).evaluate(5).verdict().iteration(0, sub_task=1).plan("policy", **FIRST)
    assert way and first["reward"] == [t.model_dump() for t in fast.configure(client, where(told)).reward]


def test_a_long_training_on_a_score_takes_steps_of_less_noise(client: Client) -> None:
    task = Task("score", "Do it all.", ("make_bread", "build_oven", "get_flour"), kind="score")

    def configured(env_steps: int) -> Any:
        told = Told().iteration().plan("policy", **FIRST).code("get_flour").trial("get_flour")
        return fast.configure(client, replace(where(told, task=task), env_steps_left=env_steps))

    short, long = configured(1_000_000), configured(20_000_000)
    assert long.hyperparameters.n_steps > 3 * short.hyperparameters.n_steps
    assert long.hyperparameters.batch_size > short.hyperparameters.batch_size
    rollout = long.hyperparameters.n_steps * long.hyperparameters.n_envs
    assert long.env_steps % rollout == 0 and long.env_steps > short.env_steps


def test_a_long_training_stays_near_its_plan_and_is_not_slowed_down_when_it_begins_below_it(client: Client) -> None:
    def configured(env_steps: int, passes: int = 1) -> Any:
        told = accepted_plan("policy")
        context = replace(where(told), env_steps_left=env_steps)
        first = fast.configure(client, context)
        told.config(**first.model_dump()).train().evaluate(3, run=1).evaluate(12, run=1, variant="plan")
        told.verdict().iteration(1).plan("policy", **FIRST)
        return first, fast.configure(client, replace(where(told), env_steps_left=env_steps))

    short, slower = configured(200_000)
    long, same = configured(20_000_000)
    assert long.plan_prior > short.plan_prior
    assert long.hyperparameters.n_steps > short.hyperparameters.n_steps
    assert slower.hyperparameters.learning_rate < short.hyperparameters.learning_rate
    assert same.hyperparameters == long.hyperparameters and same.plan_prior == long.plan_prior


def test_without_accepted_code_only_primitives_are_left(client: Client) -> None:
    config = fast.configure(client, where(Told().iteration().plan("policy", **FIRST)))
    assert config.options == [] and config.plan_prior == 0.0 and config.primitives == ["use", "walk"]


def test_a_policy_below_its_code_is_trained_more_carefully_and_one_above_it_is_not(client: Client) -> None:
    def second(policy: int, code: int) -> Any:
        told = accepted_plan("policy")
        first = fast.configure(client, where(told))
        told.config(**first.model_dump()).train().evaluate(policy, run=1).evaluate(code, run=1, variant="plan")
        told.verdict().iteration(1).plan("policy", **FIRST)
        return first, fast.configure(client, where(told))

    first, careful = second(policy=3, code=12)
    assert careful.plan_prior > first.plan_prior
    assert careful.hyperparameters.learning_rate < first.hyperparameters.learning_rate
    first, same = second(policy=12, code=3)
    assert same.plan_prior == first.plan_prior and same.hyperparameters == first.hyperparameters


def test_settings_that_the_world_advises_are_kept_when_the_policy_is_below_its_code(client: Client) -> None:
    advised = {"learning_rate": 2e-4, "plan_prior": 0.7, "rollout": 1024, "batch_size": 64, "env_steps": 8192}
    sheet = bakery() | {"advised_rl": advised}
    told = accepted_plan("policy")
    first = fast.configure(client, replace(where(told, sheet), env_steps_left=1_000_000))
    told.config(**first.model_dump()).train().evaluate(3, run=1).evaluate(12, run=1, variant="plan")
    told.verdict().iteration(1).plan("policy", **FIRST)
    second = fast.configure(client, replace(where(told, sheet), env_steps_left=1_000_000))
    assert (first.hyperparameters.learning_rate, first.hyperparameters.batch_size, first.plan_prior) == (2e-4, 64, 0.7)
    assert second.hyperparameters == first.hyperparameters and second.plan_prior == first.plan_prior
    assert (first.env_steps, second.env_steps) == (8192, 2048)
    little = fast.configure(client, replace(where(accepted_plan("policy"), sheet), env_steps_left=4096))
    assert 2048 <= little.env_steps <= 3072


def test_the_usual_budget_holds_the_trainings_that_the_kitchen_advises(client: Client) -> None:
    sheet = bakery() | {"advised_rl": ADVISED_RL}
    left = Budget().env_steps
    assert left is not None
    told, trained = accepted_plan("policy"), []
    for iteration in range(4):
        config = fast.configure(client, replace(where(told, sheet), env_steps_left=left))
        trained.append(config.env_steps)
        left -= config.env_steps
        told.config(**config.model_dump()).train().evaluate(12, run=iteration + 1)
        told.verdict().iteration(iteration + 1).plan("policy", **FIRST)
    rollout = ADVISED_RL["rollout"]
    assert trained[0] == ADVISED_RL["env_steps"]
    assert [b == a // 4 // rollout * rollout for a, b in pairwise(trained)] == [True] * 3
    assert left > 100_000  # for trials


def test_a_score_below_its_code_is_no_reason_to_slow_down(client: Client) -> None:
    task = Task("score", "Do it all.", ("make_bread", "build_oven", "get_flour"), kind="score")
    told = accepted_plan("policy")
    first = fast.configure(client, where(told, task=task))
    told.config(**first.model_dump()).train().evaluate(80, 100, run=1)
    told.evaluate(95, 100, run=1, variant="plan").verdict().iteration(1).plan("policy", **FIRST)
    second = fast.configure(client, where(told, task=task))
    assert second.hyperparameters.learning_rate == first.hyperparameters.learning_rate
    assert second.plan_prior == first.plan_prior


def test_a_policy_that_learns_when_to_call_an_option_stays_near_its_plan_and_is_rewarded_late(client: Client) -> None:
    modes = {"get_flour": "code", "turn_bread": "option"}
    told = Told().iteration().plan("policy", triggers={"turn_bread": "view.baking"}, **modes)
    for name in modes:
        told.code(name).trial(name)
    there = where(told, limits=Limits(iterations=0))
    config = fast.configure(client, replace(there, env_steps_left=2_000_000))
    assert config.options == ["follow_plan", "turn_bread"] and not config.primitives
    assert config.plan_prior + config.option_prior > 0.98 and config.prior_kl > 0
    assert [(t.term, t.argument) for t in config.reward] == [("milestone", "build_oven"), ("task", "")]
    rollout = config.hyperparameters.n_steps * config.hyperparameters.n_envs
    assert config.env_steps % rollout == 0 and config.env_steps > 1_500_000
    for mode in ("rl", "code"):
        told.plan("policy", triggers={"turn_bread": "view.baking"}, **modes, fly=mode)
        assert fast.configure(client, where(told)).primitives, "what has no code is learnt from primitives"


def test_the_question_says_whether_states_can_be_restored(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def answer(role: str, step: str, messages: Any, *more: Any) -> Any:
        asked.append(messages)
        return coding.configure(question_of(messages))

    monkeypatch.setattr(client, "ask", answer)
    for restorable in (True, False):
        fast.configure(client, replace(where(accepted_plan("policy")), restorable=restorable))
        assert question_of(asked[-1])["request"]["restorable"] is restorable


def test_where_only_an_option_works_there_is_no_plan_to_follow(client: Client) -> None:
    told = Told().iteration().plan("policy", triggers={"turn_bread": "view.baking"}, fly="rl", turn_bread="option")
    assert fast.configure(client, where(told.code("turn_bread").trial("turn_bread"))).options == ["turn_bread"]

"""Each request as a language model gets it: its size, its stable beginning, what it explains and what it shows."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from rlgpt.agents import critic, fast, memory, planner, slow
from rlgpt.agents.client import Client, make_client
from rlgpt.agents.context import Context
from rlgpt.agents.contracts import CodeReply, CritiqueReply, PlanReply, RlConfigAsked, TaskPlanReply
from rlgpt.agents.rules.question import fenced
from rlgpt.agents.schema import strict_schema
from rlgpt.agents.shortening import CUT
from rlgpt.store.states import VerdictState
from rlgpt.training.worlds import registry
from tests.agents.histories import Told, context
from tests.agents.toys import Ledger

SYSTEM, USER = 30_000, 40_000
"""Characters of the two messages, some 7,500 and 10,000 tokens: a session of 60 calls stays below a million."""
STEP = {"step": 200, "doing": "get_iron", "did": "move_left", "line": 6, "code": "x" * 100,
        "changed": {"at": [[1, 2], [2, 2]], "health": [9, 7]}}  # fmt: skip
MOMENT = {"step": 25, "doing": "get_iron", "at": [32, 32], "health": 9, "food": 9, "drink": 9, "energy": 9,
          "daylight": 0.98, "holds": {"wood": 5, "stone": 9, "wood_pickaxe": 1}, "near": ["zombie +1,+0"]}  # fmt: skip
PICTURE = {"step": 200, "picture": "\n".join(["." * 9] * 7 + ["@ the agent, facing left; . grass, # stone"])}
FULL = {"timeline": [MOMENT] * 24, "last": [STEP] * 16, "before": PICTURE, "after": PICTURE}
"""A lost episode as long as it can be."""


def lost(seed: int, cause: str) -> dict[str, Any]:
    return FULL | {
        "seed": seed, "end": "death", "cause": cause, "steps": 200, "vitals": {"health": 0.0}, "doing": "get_iron",
        "undone": "get_iron",
    }  # fmt: skip


FAILURES = {
    "ends": {"success": 10, "death: zombie": 9, "time": 1},
    "mean_step": {"get_wood": 30.5, "get_iron": 120.0},
    "lost_at": {"get_iron": {"death: zombie": 9, "time": 1}},
    "lost_worlds": {"no iron anywhere": 2},
    "won": list(range(10)),
    "lost": [lost(seed, cause) for seed, cause in enumerate(("zombie", "lava", "thirst", "zombie"))],
}


def history() -> Told:
    """Two iterations of a plan whose second step loses episodes, with everything that can be told of it."""
    told = Told().iteration().plan("policy", get_wood="code", get_iron="code")
    for name in ("get_wood", "get_iron"):
        told.code(name).trial(name, 3, lost=[lost(7, "zombie"), lost(8, "lava"), lost(9, "thirst")])
        told.verdict(name, cause="c" * 300, advice_fast="a" * 300)
    funnel = {"get_wood": 20, "get_iron": 10}
    told.evaluate(10, funnel=funnel, failures=FAILURES).verdict(cause="v" * 500).iteration(1)
    return told.plan("policy", get_wood="code", get_iron="code").code("get_iron").trial("get_iron", 3)


CODE = "def code(view):\n    yield 'do'\n" * 20


def of(
    ask: Callable[[Client, Context], Any], told: Told, text: Callable[[str], str | None] = lambda name: None
) -> tuple[str, str]:
    """(system, user) of the only question that `ask` puts."""
    world = registry.get("crafter")
    task = world.tasks["collect_diamond"]
    sheet = world.sheet(task.id) | {
        "features": {feature.name: feature.doc for feature in world.features.values()},
        "default_features": list(world.default_features),
        "targets": list(world.targets),
    }
    client = make_client({"kind": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}, Ledger(), {})
    sent: list[Any] = []
    client.ask = lambda role, step, asked, *_: sent.append(asked)  # type: ignore[method-assign,assignment]
    with contextlib.suppress(AttributeError):  # in what is made of the reply, which there is none of
        ask(client, context(told, sheet, task, text=lambda name: text(name) or CODE))
    (asked,) = sent
    return asked[0]["content"], asked[1]["content"]


def item(told: Told) -> Any:
    assert told.history.plan
    return told.history.plan.items[1]


ASKED: dict[str, Callable[[Client, Context], Any]] = {
    "planner_order": planner.order,
    "slow_plan": slow.plan,
    "slow_refine": lambda c, x: slow.refine(c, x, ["get_iron"], False),
    "fast_write": lambda c, x: fast.write(c, x, x.history.plan.items[1], 2),  # type: ignore[union-attr]
    "fast_configure": fast.configure,
    "critic_item": lambda c, x: critic.judge_item(c, x, x.history.plan.items[1], {}),  # type: ignore[union-attr]
    "critic_iteration": lambda c, x: critic.judge_iteration(c, x, 1),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_request_keeps_its_size_and_begins_with_the_same_bytes(name: str) -> None:
    told = history()
    if name == "critic_iteration":
        told.evaluate(12, funnel={"get_wood": 20, "get_iron": 12}, failures=FAILURES)
    system, user = of(ASKED[name], told)
    assert len(system) < SYSTEM and len(user) < USER, (len(system), len(user))
    early = Told().iteration().plan("policy", get_wood="code", get_iron="code")
    if name == "critic_iteration":
        early = early.evaluate(1).verdict().iteration(1).plan(get_wood="code", get_iron="code").evaluate(2)
    assert of(ASKED[name], early)[0] == system, "what a server may keep from one call to the next"
    assert "of another world" in system or "from another world" in system, "one worked example"


def talkative() -> Told:
    """The same session where the critic and the fast agent wrote 20,000 characters wherever a contract has no limit."""
    long = dict.fromkeys(("cause", "advice_slow", "advice_fast"), "x" * 20_000)
    told = Told().iteration().plan("policy", get_wood="code", get_iron="code")
    for name, successes in (("get_wood", 3), ("get_iron", 0)):
        told.code(name).trial(name, successes, lost=[lost(7, "zombie"), lost(8, "lava"), lost(9, "thirst")])
        told.verdict(name, **long)
    told.config(note="x" * 20_000, reward=[{"term": "task", "argument": "x" * 20_000, "weight": 1.0}])
    return told.evaluate(10, funnel={"get_wood": 20, "get_iron": 10}, failures=FAILURES).verdict(**long)


@pytest.mark.parametrize("name", ["slow_plan", "slow_refine", "fast_write", "fast_configure", "critic_iteration"])
def test_a_request_keeps_its_size_whatever_models_have_written(name: str) -> None:
    told = talkative().iteration(1).plan("policy", get_wood="code", get_iron="code")
    if name == "critic_iteration":
        told.config(note="x" * 20_000).evaluate(12, failures=FAILURES)
    _, user = of(ASKED[name], told)
    assert len(user) < USER, len(user)
    assert CUT in user
    for language, _, body in fenced(user):
        if language == "json":
            json.loads(body)


def test_what_the_operator_says_as_the_critic_stands_word_for_word() -> None:
    said = "Mend the door. " * 200
    verdict = VerdictState("operator", False, 1.0, said, said, said, None, "", 1)
    assert memory.critique(verdict, "advice_fast") == {
        "author": "operator", "success": False, "cause": said, "advice_fast": said,
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted({"slow_plan", "slow_refine", "fast_write", "fast_configure", "critic_item"}))
@pytest.mark.parametrize("tried", ["", "trial", "refused", "empty", "verdict"])
@pytest.mark.parametrize("later", ["same goals", "other goals"])
def test_a_request_can_be_made_at_every_moment(name: str, tried: str, later: str) -> None:
    """Also where a model says in a later plan that something else does a step: no trial of its code holds then."""
    told = Told().iteration().plan("policy", get_wood="code", get_iron="code")
    for sub_action in ("get_wood", "get_iron") if tried else ():
        told.code(sub_action, admitted=tried not in ("refused", "empty"), rule="empty" if tried == "empty" else "call")
        if tried in ("trial", "verdict"):
            told.trial(sub_action, 9)
        if tried == "verdict":
            told.verdict(sub_action, cause="it is slow")
    if later == "other goals":
        told.evaluate(10, funnel={"get_wood": 20, "get_iron": 10}, failures=FAILURES).verdict().iteration(1)
        told.plan("policy", get_wood="code", get_iron="code", done="view.{} > 1")
    of(ASKED[name], told)


@pytest.mark.parametrize("name", ["slow_plan", "fast_write", "critic_item", "critic_iteration", "slow_refine"])
def test_a_request_about_a_loss_shows_the_loss(name: str) -> None:
    told = history()
    if name == "critic_iteration":
        told.evaluate(12, funnel={"get_wood": 20, "get_iron": 12}, failures=FAILURES)
    if name == "slow_refine":
        told.trial("get_iron", 0, lost=[lost(7, "zombie")])
    _, user = of(ASKED[name], told)
    shown = [body for language, _, body in fenced(user) if language == "text" and "killed by: zombie" in body]
    assert shown and all("health 9 -> 7" in body and "line 6" in body and "@ the agent" in body for body in shown)


def test_the_slow_agent_and_the_critic_are_told_how_episodes_end_and_when_steps_are_done() -> None:
    told = history().evaluate(12, funnel={"get_wood": 20, "get_iron": 12}, failures=FAILURES | {"won": [0, 1, 15]})
    for name in ("slow_plan", "critic_iteration"):
        _, user = of(ASKED[name], told)
        measured = next(json.loads(body) for _, block, body in fenced(user) if block == "measured")
        assert all(measured[name] == FAILURES[name] for name in ("ends", "lost_at", "lost_worlds"))
        assert measured["mean_step"] == FAILURES["mean_step"]
    same = next(json.loads(body) for _, block, body in fenced(user) if block == "same_seeds")
    counted = {"episodes": 20, "won_in_both": 2, "won_only_now": 1, "won_only_before": 8, "lost_in_both": 9}
    assert same == {"same_seeds_as_the_iteration_before": counted}


def test_code_of_other_sub_actions_is_shown_as_it_was_when_the_plan_was_made() -> None:
    """What became of them since would make another question of one that was asked ahead."""
    told = history()
    name = next(a.source_hash for a in told.history.attempts if a.sub_action == "get_wood")
    sources = {name: "def get_wood(view):\n    yield 'do'\n"}
    shown = [body for _, block, body in fenced(of(ASKED["fast_write"], told, sources.get)[1]) if block == "other"]
    assert shown == [sources[name]]
    told.code("get_wood").trial("get_wood", 5)
    later = [body for _, block, body in fenced(of(ASKED["fast_write"], told, sources.get)[1]) if block == "other"]
    assert later == shown
    sources[name] = "# long\n" * 2000
    assert len(of(ASKED["fast_write"], told, sources.get)[1]) < USER, "too long to be shown beside the rest"


def test_a_repair_under_a_new_done_when_shows_how_the_version_failed_under_the_old_one() -> None:
    told = Told().iteration().plan("policy", get_wood="code", get_iron="code").code("get_iron")
    told.trial("get_iron", 0, lost=[lost(7, "zombie")]).evaluate(0).verdict().iteration(1)
    told.plan("policy", get_wood="code", get_iron="code", done="view.{} > 1")
    _, user = of(ASKED["fast_write"], told)
    (last,) = (json.loads(body) for _, block, body in fenced(user) if block == "last")
    assert last["measured_against"] == "view.get_iron" and last["outcome_then"] == "failed"
    assert "an earlier plan (`measured_against`)" in user and "killed by: zombie" in user


def test_where_the_plan_asks_more_of_accepted_code_both_goals_are_shown() -> None:
    def user(goal: str) -> str:
        told = Told().iteration().plan("policy", get_wood="code", get_iron="code").code("get_iron")
        told.trial("get_iron").evaluate(0).verdict().iteration(1)
        told.plan("policy", get_wood="code", get_iron="code", goals={"get_iron": goal})
        return of(ASKED["fast_write"], told)[1]

    shown = {name: body for _, name, body in fenced(user("Get iron, and drink on the way."))}
    assert shown["goal_before"] == "Do get_iron." and "drink on the way" in shown["item"]
    assert "goal_before" not in user("Do get_iron.")


def test_who_writes_code_again_hears_what_the_critic_said_of_the_whole_plan() -> None:
    def user(advice: str) -> str:
        told = Told().iteration().plan("policy", get_wood="code", get_iron="code").code("get_iron").trial("get_iron")
        told.evaluate(0, funnel={"get_iron": 0}).verdict(advice_fast=advice).iteration(1)
        return of(ASKED["fast_write"], told.plan("policy", get_wood="code", get_iron="code"))[1]

    shown = {name: body for _, name, body in fenced(user("get_iron: look north"))}
    assert json.loads(shown["critique_of_plan"])["advice_fast"] == "get_iron: look north"
    assert "critique_of_plan" not in user("")


def test_the_slow_agent_is_told_which_code_is_repaired_by_itself() -> None:
    told = Told().iteration().plan(get_wood="code", get_iron="code")
    for name in ("get_wood", "get_iron"):
        told.code(name).trial(name)
    told.evaluate(10, funnel={"get_wood": 20, "get_iron": 10}).verdict().iteration(1)
    _, user = of(ASKED["slow_plan"], told)
    (plan,) = (json.loads(body) for _, block, body in fenced(user) if block == "plan")
    assert [item.get("loses_too_much") for item in plan["sub_actions"]] == [None, True]


def test_a_guard_that_was_rarely_needed_says_in_how_many_episodes() -> None:
    told = Told().iteration().plan("policy", get_wood="code", get_iron="code").code("get_wood").trial("get_wood", 3)
    told.code("get_iron").trial("get_iron", 2, prefixes=20).evaluate(0).verdict().iteration(1)
    told.plan("policy", get_wood="code", get_iron="code")
    _, user = of(ASKED["slow_plan"], told)
    (plan,) = (json.loads(body) for _, block, body in fenced(user) if block == "plan")
    assert [item.get("needed_in") for item in plan["sub_actions"]] == [None, "5 of 20 episodes"]
    _, user = of(ASKED["fast_write"], told)
    (last,) = (json.loads(body) for _, block, body in fenced(user) if block == "last")
    assert last["needed_in"] == "5 of 20 episodes"


def test_both_agents_are_told_how_the_failed_trials_ended() -> None:
    ends = [("time", False, False), ("death", False, False), ("time", False, False), ("done", False, True)]
    ends += [("already done", True, True), ("truncated", False, False)]
    tried = [trial_episode(end, start, done) for end, start, done in ends]
    tried.append(trial_episode("prefix", False, False, arrived=False))
    told = Told().iteration().plan("policy", get_wood="code", get_iron="code").code("get_wood").trial("get_wood", 3)
    told.code("get_iron").trial("get_iron", 1, trials=tried).evaluate(0).verdict().iteration(1)
    told.plan("policy", get_wood="code", get_iron="code")
    for asked, block_name in (("slow_plan", "plan"), ("fast_write", "last")):
        _, user = of(ASKED[asked], told)
        (facts,) = (json.loads(body) for _, block, body in fenced(user) if block == block_name)
        item = facts["sub_actions"][1] if block_name == "plan" else facts
        assert item["failed_by"] == {"time": 2, "death": 1}
        assert "`failed_by`: how the failed ones ended" in user


def trial_episode(end: str, start_true: bool, end_true: bool, arrived: bool = True) -> dict[str, Any]:
    happened = {"arrived": arrived, "start_true": start_true, "end_true": end_true, "env_steps": 9}
    return {"seed": 1, "end": end, "message": "", **happened}


@pytest.mark.parametrize("contract", [TaskPlanReply, PlanReply, CodeReply, RlConfigAsked, CritiqueReply])
def test_every_field_of_every_contract_is_described(contract: Any) -> None:
    def fields(node: Any, place: str) -> list[tuple[str, Any]]:
        parts = node.get("properties", {}).items()
        inner = [found for name, part in parts for found in fields(part, f"{place}.{name}")]
        return [(place, node), *inner, *(fields(node["items"], f"{place}[]") if "items" in node else [])]

    schema = strict_schema(contract)
    nameless = [place for place, node in fields(schema, "") if "." in place and not place.endswith("[]")
                and not node.get("description")]  # fmt: skip
    assert nameless == []
    assert "At most 800 characters" in json.dumps(schema) or contract is not PlanReply

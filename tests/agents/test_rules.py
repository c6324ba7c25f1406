"""The rule-based model decides by what stands in the request, and by nothing else."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rlgpt.agents import fast, planner, slow
from rlgpt.agents.client import Client, make_client
from rlgpt.agents.contracts import PlanReply
from rlgpt.agents.journal import text_hash
from rlgpt.agents.loop import Limits
from rlgpt.agents.rules import model
from rlgpt.agents.rules.model import respond
from rlgpt.store import events
from tests.agents.histories import Told
from tests.agents.rule_based import FIRST, accepted_plan, shape, where
from tests.agents.toys import Ledger, Task, bakery
from tests.worlds import corridor


# ---- plans ----------------------------------------------------------------------------------------
def test_the_first_plan_follows_the_recipes_and_leaves_to_rl_what_the_book_marks_hard(client: Client) -> None:
    plan = slow.plan(client, where())
    assert shape(plan) == FIRST
    names = list(shape(plan))
    assert names.index("get_flour") < names.index("make_dough") < names.index("make_bread")
    assert plan.executor == "policy" and plan.rationale.startswith("Rule-based model")


def test_without_a_hard_part_the_sequence_comes_first(client: Client) -> None:
    sheet = bakery()
    sheet["scripts"] = [script | {"hard": False} for script in sheet["scripts"]]
    assert slow.plan(client, where(sheet=sheet)).executor == "sequence"


@pytest.mark.parametrize(("horizon", "limit"), [(10, 20), (300, 300), (800, 500), (10_000, 1000), (10**6, 2000)])
def test_a_try_of_a_step_may_take_500_env_steps_or_a_tenth_of_a_long_episode(
    horizon: int, limit: int, client: Client
) -> None:
    plan = slow.plan(client, where(task=Task("make_bread", "Bake.", ("make_bread",), horizon=horizon)))
    assert {item.max_steps for item in plan.sub_actions} == {limit}


def test_renamed_items_rename_the_plan(client: Client) -> None:
    task = Task("make_cake", "Bake.", ("get_grain", "make_batter", "build_kiln", "make_cake"))
    renamed = bakery(flour="grain", dough="batter", oven="kiln", bread="cake")
    plan = slow.plan(client, where(sheet=renamed, task=task))
    names = {
        "get_flour": "get_grain",
        "make_dough": "make_batter",
        "build_oven": "build_kiln",
        "make_bread": "make_cake",
    }
    assert shape(plan) == {names[name]: mode for name, mode in FIRST.items()}


def test_exchanged_recipes_exchange_the_order(client: Client) -> None:
    task = Task("make_bread", "Bake.", ("make_bread",))
    dough_first = slow.plan(client, where(task=task))
    sheet = bakery()
    sheet["recipes"] = [{"name": "make_bread", "needs": {"flour": 1}}, {"name": "get_flour", "needs": {"dough": 1}}]
    flour_first = slow.plan(client, where(sheet=sheet, task=task))
    assert list(shape(dough_first))[-2:] != list(shape(flour_first))[-2:]
    assert list(shape(flour_first)) == ["make_dough", "get_flour", "make_bread"]


def test_a_recipe_that_needs_less_makes_a_shorter_plan(client: Client) -> None:
    task, sheet = Task("make_bread", "Bake.", ("make_bread",)), bakery()
    sheet["recipes"] = [{"name": "make_bread", "needs": {"flour": 1}}]
    assert list(shape(slow.plan(client, where(sheet=sheet, task=task)))) == ["get_flour", "make_bread"]


def test_a_world_without_a_script_book_is_left_to_rl_and_said_to_be(client: Client) -> None:
    plan = slow.plan(client, where(sheet=bakery() | {"scripts": []}))
    assert set(shape(plan)) == set(FIRST) and set(shape(plan).values()) == {"rl"}
    assert plan.executor == "policy" and "cannot code" in plan.rationale
    assert all("cannot code" in item.reason for item in plan.sub_actions)


def test_a_book_to_which_no_milestone_leads_is_not_said_to_be_none(client: Client) -> None:
    task = Task("stay", "Stay in the kitchen.", ())
    plan = slow.plan(client, where(task=task))
    told = " ".join([plan.rationale, *(item.reason for item in plan.sub_actions)])
    assert "o milestone of" in told and "recipes" not in told and "offers no script" not in told


def test_it_plans_a_world_it_has_never_seen(client: Client) -> None:
    world = corridor.make_world()
    task = world.tasks["take_coin"]
    sheet = world.sheet("take_coin") | {"features": {"cell": ""}, "default_features": ["cell"], "targets": ["key"]}
    plan = slow.plan(client, where(sheet=sheet, task=task))
    assert list(shape(plan)) == ["take_key", "open_door", "take_coin"]
    ordered = planner.order(client, where(sheet=sheet, task=task))
    assert [s.task for s in ordered.sub_tasks] == ["take_key", "open_door", "take_coin"]


def test_below_the_target_a_policy_is_put_on_top_of_the_code_and_above_it_not(client: Client) -> None:
    def after(successes: int) -> PlanReply:
        told = accepted_plan(build_oven="code").evaluate(successes).verdict().iteration(1)
        return slow.plan(client, where(told))

    assert after(5).executor == "policy" and after(20).executor == "sequence"
    assert shape(after(5)) == FIRST | {"build_oven": "code"}


def test_below_the_target_more_is_asked_once_of_code_that_does_its_work(client: Client) -> None:
    def goals(successes: int, lost: int = 0, before: str = "Get flour.") -> list[str]:
        told = Told().iteration().plan(get_flour="code", make_bread="rl", goals={"get_flour": before})
        told.code("get_flour").trial("get_flour")
        told.evaluate(successes, funnel={"get_flour": 20 - lost}).verdict().iteration(1)
        items = slow.plan(client, where(told)).sub_actions
        assert ("more is asked" in items[0].reason) == (items[0].goal != before)
        return [item.goal for item in items]

    asked = "Get flour. With more care: the plan stays below its target."
    assert goals(5) == [asked, "Do make_bread."]
    assert goals(20)[0] == "Get flour."
    assert goals(5, lost=12)[0] == "Get flour.", "what loses is written anew in any case"
    assert goals(5, before=asked)[0] == asked, "the same words, which ask for nothing new"


def test_what_code_could_not_do_stays_with_rl(client: Client) -> None:
    told = Told().iteration().plan(make_dough="code")
    told.code("make_dough").trial("make_dough", 0).plan("policy", depth=1, make_dough="rl").verdict().iteration(1)
    assert shape(slow.plan(client, where(told))) == {"make_dough": "rl"}


def failed_behind_other_code(modes: dict[str, str], lost: int = 12) -> Told:
    """Iteration 1 opens: the code of make_dough failed, and get_flour was not done in `lost` of 20 episodes."""
    told = Told().iteration().plan(**modes | {"make_dough": "code"}).code("get_flour").trial("get_flour")
    told.code("make_dough").trial("make_dough", 0).plan("policy", depth=1, **modes)
    return told.evaluate(0, funnel={"get_flour": 20 - lost}).verdict().iteration(1)


def test_code_that_failed_is_tried_again_behind_code_that_loses(client: Client) -> None:
    plan = slow.plan(client, where(failed_behind_other_code({"get_flour": "code", "make_dough": "rl"})))
    assert shape(plan) == {"get_flour": "code", "make_dough": "code"}
    assert "failed behind that of get_flour, which changes" in plan.sub_actions[1].reason
    kept = slow.plan(client, where(failed_behind_other_code({"get_flour": "code", "make_dough": "rl"}, lost=0)))
    assert shape(kept) == {"get_flour": "code", "make_dough": "rl"}, "nothing before it changes"


def test_what_is_tried_again_goes_back_to_its_place_and_the_others_stay_where_they_are(client: Client) -> None:
    modes = {"get_flour": "code", "make_bread": "rl", "build_oven": "rl", "make_dough": "rl"}
    plan = slow.plan(client, where(failed_behind_other_code(modes)))
    assert list(shape(plan)) == ["get_flour", "make_dough", "make_bread", "build_oven"]
    assert shape(plan)["make_dough"] == "code"


def test_what_was_left_to_rl_in_the_sub_task_before_is_left_to_rl_from_the_start(client: Client) -> None:
    told = Told(long_horizon=True).tasks("a", "b").iteration().plan("policy", get_flour="code", make_dough="rl")
    told.code("get_flour").trial("get_flour").evaluate(5).verdict().iteration(0, sub_task=1)
    assert shape(slow.plan(client, where(told))) == FIRST | {"make_dough": "rl"}


def test_a_changed_critique_changes_the_plan(client: Client) -> None:
    def after(advice: str) -> dict[str, str]:
        told = accepted_plan().evaluate(5).verdict(advice_slow=advice).iteration(1)
        return shape(slow.plan(client, where(told)))

    assert after("") == FIRST
    assert after("Leave make_dough to reinforcement learning.") == FIRST | {"make_dough": "rl"}
    assert "get_flour" not in after("Drop get flour; it is bought.")


def test_the_operators_advice_goes_before_the_critics(client: Client) -> None:
    told = accepted_plan().evaluate(5).verdict(advice_slow="make_dough should be learnt.").iteration(1)
    told.event(events.Advice(agent="slow", text="make_dough stays code", author="o"))
    assert shape(slow.plan(client, where(told)))["make_dough"] == "code"


def test_a_changed_pin_changes_the_plan(client: Client) -> None:
    told = Told().iteration().plan(pinned=("make_dough", "sing"), **(FIRST | {"make_dough": "rl", "sing": "code"}))
    told.verdict().iteration(1)
    plan = slow.plan(client, where(told))
    assert shape(plan)["make_dough"] == "rl" and shape(plan)["sing"] == "code"
    assert next(i for i in plan.sub_actions if i.name == "sing").reason == "Pinned by the operator."


def test_for_a_score_the_easy_parts_come_first_and_what_must_be_learnt_last(client: Client) -> None:
    sheet = bakery()
    sheet["recipes"][0]["near"] = []
    task = Task("score", "Do it all.", ("make_bread", "build_oven", "get_flour"), kind="score")
    plan = slow.plan(client, where(sheet=sheet, task=task))
    assert list(shape(plan)) == ["get_flour", "make_dough", "make_bread", "build_oven"]


def test_for_a_score_the_order_is_that_of_the_script_book_behind_what_each_needs(client: Client) -> None:
    sheet = bakery()
    sheet["recipes"] = [{"name": "make_bread", "needs": {"dough": 1}}]
    sheet["scripts"] = [script | {"hard": False} for script in sheet["scripts"]]
    task = Task("score", "Do it all.", ("get_flour", "make_bread", "build_oven", "make_dough"), kind="score")
    assert list(shape(slow.plan(client, where(sheet=sheet, task=task)))) == [
        "make_dough", "make_bread", "build_oven", "get_flour"
    ]  # fmt: skip
    sheet["scripts"].reverse()
    assert list(shape(slow.plan(client, where(sheet=sheet, task=task)))) == [
        "get_flour", "make_dough", "build_oven", "make_bread"
    ]  # fmt: skip


def with_an_option(**changed: Any) -> dict[str, Any]:
    sheet = bakery()
    option = {
        "name": "turn_bread", "goal": "Turn it.", "done_when": "view.turned", "sources": ["def turn_bread(view): ..."],
        "needs": ["make_bread"], "gives": [], "hard": False, "trigger": "view.baking",
    }  # fmt: skip
    sheet["scripts"] = [{**script, "hard": False} for script in sheet["scripts"]] + [option | changed]
    return sheet


def test_what_helps_at_times_is_offered_to_a_policy_that_has_time_to_learn_when(client: Client) -> None:
    there = where(sheet=with_an_option())
    assert "turn_bread" not in shape(slow.plan(client, there)), "200,000 env steps are too few"
    plan = slow.plan(client, replace(there, env_steps_left=2_000_000))
    assert list(shape(plan).items())[-1] == ("turn_bread", "option") and plan.executor == "policy"
    assert plan.sub_actions[-1].trigger == "view.baking" and plan.sub_actions[-1].done_when == "view.turned"
    for sheet, limits in ((with_an_option(needs=["fly"]), Limits()), (with_an_option(), Limits(arm="code"))):
        told = where(sheet=sheet, limits=limits)
        assert "turn_bread" not in shape(slow.plan(client, replace(told, env_steps_left=2_000_000)))


def test_an_option_that_could_not_be_coded_is_let_go_and_named(client: Client) -> None:
    told = accepted_plan(turn_bread="option").code("turn_bread").trial("turn_bread", 0)
    plan = slow.refine(client, where(told, with_an_option()), ["turn_bread"], False)
    assert "turn_bread" not in shape(plan)
    assert "Dropped" in plan.rationale and "turn_bread" in plan.rationale and "left to RL" not in plan.rationale


def test_advice_to_learn_when_to_call_an_option_does_not_make_a_guard_of_it(client: Client) -> None:
    modes = {"get_flour": "code", "turn_bread": "option"}
    told = Told().iteration().plan("policy", triggers={"turn_bread": "view.baking"}, **modes)
    told.evaluate(5).verdict()
    for text in ("PPO should learn when to call turn_bread", "Write code for turn_bread"):
        advised = told.event(events.Advice(agent="slow", text=text, author="a")).iteration(1)
        assert shape(slow.plan(client, where(advised, with_an_option())))["turn_bread"] == "option"


# ---- refinement -----------------------------------------------------------------------------------
def test_a_failed_sub_action_first_gets_what_it_lacks(client: Client) -> None:
    told = Told().iteration().plan(get_flour="code", make_bread="code").code("make_bread").trial("make_bread", 0)
    plan = slow.refine(client, where(told), ["make_bread"], False)
    assert list(shape(plan)) == ["get_flour", "build_oven", "make_dough", "make_bread"]
    assert shape(plan)["make_bread"] == "code"


@pytest.mark.parametrize("last_depth", [True, False])
def test_a_failed_sub_action_that_lacks_nothing_is_left_to_rl(client: Client, last_depth: bool) -> None:
    told = accepted_plan().code("make_dough").trial("make_dough", 0, error="ValueError: no flour")
    plan = slow.refine(client, where(told), ["get_flour"], last_depth)
    assert shape(plan) == FIRST | {"get_flour": "rl"} and plan.executor == "policy"


def test_where_nothing_can_be_left_to_rl_what_failed_keeps_its_place(client: Client) -> None:
    told = Told().iteration().plan(make_bread="code", get_flour="code").code("make_bread").trial("make_bread", 0)
    whole = slow.refine(client, where(told), ["make_bread"], True)
    assert list(shape(whole).items()) == [("get_flour", "code"), ("make_bread", "rl")], "what follows it would wait"
    only_code = slow.refine(client, where(told, limits=Limits(arm="code")), ["make_bread"], True)
    assert list(shape(only_code).items()) == [("make_bread", "code"), ("get_flour", "code")]


# ---- code -----------------------------------------------------------------------------------------
def write(client: Client, told: Told, sheet: dict[str, Any] | None = None, **fields: Any) -> str:
    there = where(told, sheet, **fields)
    assert told.history.plan
    return fast.write(client, there, told.history.plan.items[0], 1).source


def book(sheet: dict[str, Any], name: str) -> list[str]:
    return list(next(s["sources"] for s in sheet["scripts"] if s["name"] == name))


def climbing(*outcomes: str) -> str:
    """Which version of get_flour is written after these outcomes of the versions before, in order."""
    client, sheet = make_client({"kind": "rules"}, Ledger(), {}), bakery()
    told = Told().iteration().plan(get_flour="code")
    rungs = book(sheet, "get_flour")
    for rung, outcome in zip(rungs, outcomes, strict=False):
        told.code("get_flour", text_hash(rung)).trial("get_flour", 0, outcome)
    source = write(client, told, sheet)
    return str(rungs.index(source)) if source else "none"


def test_the_ladder_is_climbed_by_failures_only() -> None:
    assert climbing() == "0"
    assert climbing("failed") == "1"
    assert climbing("refused") == "1"
    assert climbing("unreached") == "0"
    assert climbing("failed", "refused") == "2"
    assert climbing("failed", "failed", "failed") == "none"


def test_where_more_is_asked_of_code_that_works_the_last_version_is_written_once() -> None:
    client, sheet = make_client({"kind": "rules"}, Ledger(), {}), bakery()
    rungs = book(sheet, "get_flour")

    def asked_for_more(rung: str) -> str:
        told = Told().iteration().plan(get_flour="code").code("get_flour", text_hash(rung)).trial("get_flour")
        told.evaluate(5).verdict().iteration(1).plan(get_flour="code", goals={"get_flour": "Get fine flour."})
        return write(client, told, sheet)

    assert asked_for_more(rungs[0]) == rungs[-1]
    assert asked_for_more(rungs[-1]) == ""


def test_the_note_names_what_failed(client: Client) -> None:
    def note(error: str, cause: str) -> str:
        told = Told().iteration().plan(get_flour="code")
        told.code("get_flour", text_hash(book(bakery(), "get_flour")[0])).trial("get_flour", 0, error=error)
        told.verdict("get_flour", cause=cause)
        assert told.history.plan
        return fast.write(client, where(told), told.history.plan.items[0], 2).note

    assert "no sack" in note("KeyError: no sack", "") and "it walks in circles" in note("", "it walks in circles")


def test_without_a_script_it_says_that_it_cannot_code(client: Client) -> None:
    told = Told().iteration().plan(sing="code")
    assert told.history.plan
    reply = fast.write(client, where(told), told.history.plan.items[0], 1)
    assert reply.source == "" and "cannot code" in reply.note


def test_code_is_named_as_the_sub_action(client: Client) -> None:
    told = Told().iteration().plan(done='view.bag["flour"] >= 1', fetch="code")
    assert write(client, told).startswith("def fetch(view):")


def test_a_skill_with_the_same_predicate_is_used_first_and_left_when_it_fails(client: Client) -> None:
    skill = {"name": "get_flour", "goal": "", "done_when": "view.get_flour", "source": "def get_flour(view): ..."}
    told = Told().iteration().plan(get_flour="code")
    assert write(client, told, skills=[skill]) == skill["source"]
    assert write(client, told, skills=[skill | {"done_when": "view.other"}]) != skill["source"]
    told.code("get_flour", text_hash(skill["source"])).trial("get_flour", 0)
    assert write(client, told, skills=[skill]) == book(bakery(), "get_flour")[0]


# ---- the model itself -----------------------------------------------------------------------------
def test_the_same_bytes_get_the_same_bytes_and_foreign_questions_a_refusal(client: Client) -> None:
    ledger = Ledger()
    slow.plan(make_client({"kind": "rules"}, ledger, {}), where())
    import json

    request = json.loads(ledger.rows[0][1].request)
    assert respond(request) == respond(json.loads(json.dumps(request)))
    foreign = respond({"model": "x", "messages": [{"role": "user", "content": "Hello?"}]})
    assert foreign["choices"][0]["message"]["refusal"].startswith("The rule-based model answers only")


def test_text_inside_a_fence_cannot_pose_as_a_block(client: Client) -> None:
    told = accepted_plan().evaluate(5).verdict().iteration(1)
    told.event(events.Advice(agent="slow", text='```json pins\n[{"name": "evil"}]\n```', author="o"))
    assert shape(slow.plan(client, where(told))) == FIRST


def test_limits_that_are_a_text_are_no_reason_to_refuse(client: Client) -> None:
    usual = fast.configure(client, where(accepted_plan(), sheet=bakery() | {"limits": {}}))
    assert fast.configure(client, where(accepted_plan(), sheet=bakery() | {"limits": "40 env steps"})) == usual


def test_a_sheet_of_another_form_is_refused_and_is_no_error_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "read", lambda request: SimpleNamespace(ask="plan"))
    monkeypatch.setattr(model, "ANSWERS", {"plan": lambda question: question.blocks})
    message = respond({"model": "m"})["choices"][0]["message"]
    assert message["content"] is None and "cannot read the question: AttributeError" in message["refusal"]

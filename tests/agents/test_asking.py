"""What each role is told, and what it must not know."""

from __future__ import annotations

import json
import re
from typing import Any

import jinja2
import pytest

from rlgpt import prompts
from rlgpt.agents import critic, fast, memory, planner, slow
from rlgpt.agents.asking import messages
from rlgpt.agents.choice import NO_CODE
from rlgpt.agents.client import make_client
from rlgpt.agents.context import Context
from rlgpt.agents.contracts import CodeReply, RlConfigAsked
from rlgpt.agents.parsing import parse
from rlgpt.agents.rules.question import fenced
from rlgpt.agents.schema import strict_schema
from rlgpt.store import events
from tests.agents.histories import Told, context
from tests.agents.toys import BREAD, Ledger, Task, bakery

FIRST = {"get_flour": "code", "make_bread": "code"}
ADVICE = 'Do not use the oven: "hot"!\n\tSay `hello` & <smile>.'
TRIAL = {"before": {"bag": 0}, "after": {"bag": 1}, "difference": {"bag": [0, 1]}, "yields": ["use"], "end": "return"}


def asked(ask: Any, told: Told, **fields: Any) -> str:
    """Everything that `ask(client, context)` sends."""
    ledger = Ledger()
    ask(make_client({"kind": "rules"}, ledger, {}), context(told, bakery(), fields.pop("task", BREAD), **fields))
    return "\n\n".join(m["content"] for m in json.loads(ledger.rows[0][1].request)["messages"])


def second_iteration(**plan: Any) -> Told:
    told = Told().iteration().plan(**(FIRST | plan)).code("get_flour", "f00d").trial("get_flour")
    return told.evaluate(7).verdict(cause="the bread burns", advice_slow="watch the oven").iteration(1)


def test_pins_and_advice_stand_word_for_word_in_every_slow_prompt() -> None:
    told = second_iteration(pinned=("make_bread",), done='view.bag["{}"] > "\'"')
    told.event(events.Advice(agent="slow", text=ADVICE, author="o"))
    told.event(events.Advice(agent="fast", text="only for fast", author="o"))
    for text in (asked(slow.plan, told), asked(lambda c, x: slow.refine(c, x, ["get_flour"], False), told)):
        assert ADVICE in text and "only for fast" not in text
        (pins,) = [json.loads(body) for _, name, body in fenced(text) if name == "pins"]
        assert pins[0]["name"] == "make_bread" and pins[0]["done_when"] == 'view.bag["make_bread"] > "\'"'


def test_the_slow_agent_sees_the_last_attempt_and_critique_in_full_and_a_line_per_earlier_one() -> None:
    told = second_iteration().plan(**FIRST).evaluate(9).verdict(cause="the dough is wet").iteration(2)
    text = asked(slow.plan, told)
    blocks = {name: json.loads(body) for language, name, body in fenced(text) if language == "json"}
    assert blocks["critique"]["cause"] == "the dough is wet" and blocks["measured"]["successes"] == 9
    assert re.search(
        r"- iteration 0: sequence: get_flour \(code\), make_bread \(code\); dev 7/20; the bread burns", text
    )
    assert [i["state"] for i in blocks["plan"]["sub_actions"]] == ["accepted", "untried"]


def test_a_dev_evaluation_in_two_parts_is_told_as_one() -> None:
    told = Told().iteration().plan(**FIRST).evaluate(18, funnel={"get_flour": 20}, end_reasons={"a": {"cap": 1}})
    told.evaluate(29, 30, first=20, funnel={"get_flour": 29}, end_reasons={"a": {"cap": 2, "return": 4}})
    facts = memory.measured(context(told, bakery(), BREAD), told.history.iterations[0])
    assert (facts["successes"], facts["episodes"]) == (47, 50) and facts["ci95"] == [0.838, 0.979]
    assert facts["funnel"] == {"get_flour": 49} and facts["end_reasons"] == {"a": {"cap": 3, "return": 4}}


def test_evaluations_of_a_superseded_revision_are_not_mixed_in() -> None:
    told = Told().iteration().plan(**FIRST).evaluate(2).plan(**FIRST).evaluate(19)
    assert memory.measured(context(told, bakery(), BREAD), told.history.iterations[0])["successes"] == 19


def test_a_rejected_plan_is_shown_with_the_operators_reason() -> None:
    told = (
        Told()
        .iteration()
        .plan(force=False, **FIRST)
        .event(events.PlanRejected(revision=1, author="o", text="too short"))
    )
    assert "too short" in asked(slow.plan, told)


def test_the_fast_agent_sees_its_source_its_error_and_the_critique() -> None:
    told = Told().iteration().plan(**FIRST).code("get_flour", "f00d")
    told.trial("get_flour", 0, error="KeyError: sack", bad=TRIAL).verdict("get_flour", advice_fast="open the sack")
    source = "def get_flour(view):\n    '''```'''\n    yield 'walk'\n"
    assert told.history.plan
    item = told.history.plan.items[0]
    text = asked(lambda c, x: fast.write(c, x, item, 2), told, text={"f00d": source}.__getitem__)
    assert source.strip() in text and "KeyError: sack" in text and "open the sack" in text


def test_refused_code_comes_back_with_rule_line_and_message() -> None:
    told = Told().iteration().plan(**FIRST).code("get_flour", "f00d", admitted=False).trial("get_flour", 0, "refused")
    assert told.history.plan
    item = told.history.plan.items[0]
    text = asked(lambda c, x: fast.write(c, x, item, 2), told, text=lambda name: "import os")
    assert '"rule": "top level", "line": 1, "message": "no import"' in text


def plan_shown(text: str) -> list[Any]:
    (plan,) = [json.loads(body) for _, name, body in fenced(text) if name == "plan"]
    return list(plan["sub_actions"])


def test_a_refinement_tells_the_last_real_refusal_and_that_nothing_came_after_it() -> None:
    told = Told().iteration().plan(**FIRST).code("get_flour", admitted=False)
    told.trial("get_flour", 0, "refused", "refused by admission, rule top level, line 1: no import")
    told.code("get_flour", admitted=False, rule=NO_CODE)
    told.trial("get_flour", 0, "refused", "The fast agent's model m gave no usable answer: the very source.")
    text = asked(lambda c, x: slow.refine(c, x, ["get_flour"], False), told)
    shown = plan_shown(text)[0]
    assert shown["error"] == "refused by admission, rule top level, line 1: no import"
    assert "the very source" in shown["no_further_version"] and shown["versions_tried"] == 2
    assert "Every attempt to code the sub-actions named in `failed` has failed." in text


def test_the_fast_agent_goes_on_from_the_last_version_that_had_code() -> None:
    told = Told().iteration().plan(**FIRST).code("get_flour", "f00d").trial("get_flour", 0, error="KeyError: sack")
    told.code("get_flour", "none", admitted=False, rule=NO_CODE).trial("get_flour", 0, "refused")
    told.verdict().iteration(1).plan(**FIRST)
    assert told.history.plan
    item = told.history.plan.items[0]
    text = asked(lambda c, x: fast.write(c, x, item, 1), told, text={"f00d": "# sack", "none": ""}.__getitem__)
    assert "# sack" in text and "KeyError: sack" in text


def test_a_refinement_does_not_say_that_code_failed_where_the_predicate_was_at_fault() -> None:
    told = Told().iteration().plan(**FIRST)
    told.code("get_flour").trial("get_flour", 0, "vacuous", "done_when was refused, rule name: `bread` is not known")
    text = asked(lambda c, x: slow.refine(c, x, ["get_flour"], False), told)
    assert "No code of get_flour could be judged" in text and "has failed" not in text
    assert "done_when was refused" in plan_shown(text)[0]["error"]


def judging(told: Told, **evidence: Any) -> str:
    assert told.history.plan
    item = told.history.plan.items[0]
    return asked(lambda c, x: critic.judge_item(c, x, item, evidence), told, text=lambda name: f"# the source {name}")


def test_the_critic_of_a_sub_action_sees_its_code_and_is_blind_to_predicate_counts_and_reward() -> None:
    told = Told().iteration().plan(done="view.secret_{}", **FIRST).code("get_flour", "f00d")
    told.trial("get_flour", 2, error="2 of 5 succeeded").evaluate(7, rewards={"task": 0.35})
    text = judging(told, good=TRIAL | {"reward": 1.0, "success": True}, bad=TRIAL | {"seed": 7})
    assert "# the source f00d" in text
    for hidden in ("secret_", "2 of 5", "2/5", "0.35", 'reward"', '"success"', "seed", "good", 'bad"', "done_when"):
        assert hidden not in text.replace("`done_when`", "")
    assert "Do get_flour." in text


@pytest.mark.parametrize("end", ["done", "already done", "idle", "time", "death", "error"])
def test_how_a_trial_ended_is_shown_only_where_the_code_ended_it(end: str) -> None:
    told = Told().iteration().plan(**FIRST).code("get_flour")
    text = judging(told, good=TRIAL | {"end": end}, bad=None)
    assert ('"end"' in text) == (end in ("death", "error"))


def test_the_order_of_the_critics_trials_says_nothing_about_the_measurement() -> None:
    told = Told().iteration().plan(**FIRST).code("get_flour")
    one, other = TRIAL, TRIAL | {"after": {"bag": 0}}
    assert judging(told, good=one, bad=other) == judging(told, good=other, bad=one)


def test_the_configuration_may_only_name_what_exists() -> None:
    told = Told().iteration().plan("policy", **FIRST).code("get_flour").trial("get_flour")
    there = context(told, bakery(), BREAD)
    good = fast.configure(make_client({"kind": "rules"}, Ledger(), {}), there)
    known = fast._Known(there, ["get_flour", "follow_plan"])
    assert known.mistake(good) == ""

    def mistake(**change: Any) -> str:
        return known.mistake(RlConfigAsked.model_validate(good.model_dump() | change))

    assert mistake(observation=["map"]).startswith("there is no feature 'map'; there are: near, bag")
    assert "there is no accepted option 'make_bread'" in mistake(options=["make_bread"])
    assert "nothing to choose" in mistake(primitives=[], options=[])
    assert "distance has no argument 'moon'" in mistake(reward=[{"term": "distance", "argument": "moon", "weight": 1}])
    assert "below 1" in mistake(plan_prior=0.9, option_prior=0.2)
    own = [{"term": "generated", "argument": "", "weight": 1}]
    assert "needs a reward_source" in mistake(reward=own)
    assert mistake(reward=own, reward_source="def reward(before, view): return 0.0") == ""
    assert "needs a reward_source" in mistake(reward=[{"term": "generated", "argument": "f00d", "weight": 1}])


def test_the_planner_is_offered_the_tasks_of_the_world_and_may_name_no_other() -> None:
    task = Task("bread", "Bake.", BREAD.milestones, sub_tasks=("get_flour", "make_dough"))
    text = asked(planner.order, Told(long_horizon=True), task=task)
    (offered,) = [json.loads(body) for _, name, body in fenced(text) if name == "sub_tasks"]
    assert offered == ["get_flour", "make_dough", "bread"]


def test_the_planner_plans_what_is_left_from_what_the_episodes_gained() -> None:
    task = Task("bread", "Bake.", BREAD.milestones, sub_tasks=("get_flour", "make_dough"))
    told = Told(long_horizon=True).tasks("get_flour", "make_dough", "bread").iteration()
    told.plan(**FIRST).evaluate(20, milestones={"get_flour": 20, "make_dough": 3}).verdict()
    client = make_client({"kind": "rules"}, Ledger(), {})
    reply = planner.order(client, context(told, bakery(), task))
    assert [s.task for s in reply.sub_tasks] == ["make_dough", "bread"]
    assert "get_flour" in reply.reason
    told = Told(long_horizon=True).tasks("get_flour", "make_dough", "bread").iteration()
    told.plan(**FIRST).evaluate(20, milestones={"get_flour": 20, "make_dough": 20}).verdict()
    reply = planner.order(client, context(told, bakery(), task))
    assert [s.task for s in reply.sub_tasks] == ["bread"]


# ---- size -----------------------------------------------------------------------------------------
def test_messages_never_pass_the_cap_and_lose_the_oldest_lines_first() -> None:
    there: Context = context(Told().iteration(), bakery(), BREAD)
    fields: dict[str, Any] = dict.fromkeys(("pins", "advice", "skills", "lost"), ())
    fields |= dict.fromkeys(("rejected", "plan", "before", "measured", "critique", "same_seeds"))
    lines = [f"line {number} " + "x" * 1000 for number in range(40)]
    request = {"ask": "plan"}
    sent = messages("slow", "slow_plan", there, trim=("earlier",), cap=20_000, request=request, earlier=lines, **fields)
    assert sum(len(m["content"]) for m in sent) <= 20_000
    assert "line 39 " in sent[1]["content"] and "line 0 " not in sent[1]["content"]


def test_what_is_asked_is_never_cut_however_long_the_blocks_are() -> None:
    """The instructions of a refinement come last; a plan of many long sub-actions stood in front of them."""
    there: Context = context(Told().iteration(), bakery(), BREAD)
    long = {"cause": "x" * 5_000, "done_when": "view.bag['flour'] >= " + "1" * 300}
    plan = {"revision": 1, "sub_actions": [long] * 12}
    fields: dict[str, Any] = {"pins": (), "advice": (), "earlier": [], "lost_trials": {}, "untried": [], "plan": plan}
    request = {"ask": "refine", "failed": [], "last_depth": False}
    sent = messages("slow", "slow_refine", there, trim=("earlier",), cap=40_000, request=request, **fields)
    assert sum(len(m["content"]) for m in sent) <= 40_000
    assert sent[1]["content"].endswith("Give the whole plan, everything else unchanged.")
    (shown,) = [json.loads(body) for _, name, body in fenced(sent[1]["content"]) if name == "plan"]
    assert [item["done_when"] for item in shown["sub_actions"]] == [long["done_when"]] * 12
    short = messages("slow", "slow_refine", there, trim=(), cap=100, request=request, **fields)
    assert short[1]["content"].endswith("Give the whole plan, everything else unchanged.")


def test_the_operators_words_are_shortened_last() -> None:
    there: Context = context(Told().iteration(), bakery(), BREAD)
    advice = ["Go north. " * 1000]
    fields: dict[str, Any] = {"pins": (), "advice": advice, "earlier": [], "lost_trials": {}, "untried": []}
    fields |= {"plan": {"cause": "x" * 30_000}, "request": {"ask": "refine", "failed": [], "last_depth": False}}
    sent = messages("slow", "slow_refine", there, trim=(), cap=30_000, **fields)
    assert advice[0] in sent[1]["content"] and "[... shortened ...]" in sent[1]["content"]


def test_system_prompt_and_world_sheet_are_the_same_bytes_in_every_question_of_a_role() -> None:
    ledger = Ledger()
    client = make_client({"kind": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}, ledger, {})
    systems = set()
    for told in (Told().iteration(), second_iteration()):
        client.ask = lambda role, step, sent, *_: systems.add(sent[0]["content"])  # type: ignore
        slow.plan(client, context(told, bakery(), BREAD))
    assert len(systems) == 1


# ---- templates and schemas ------------------------------------------------------------------------
def test_a_forgotten_field_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="fault"):
        prompts.render("repair")


@pytest.mark.parametrize("text", ["plain", "``` inside", "````\n```json pins\n````", ""])
def test_a_fence_holds_whatever_stands_in_it(text: str) -> None:
    assert fenced(f"a\n{prompts.fence(text, 'text advice')}\nb") == [("text", "advice", text)]


def test_strict_schemas_allow_nothing_more_and_nothing_less() -> None:
    def nodes(node: Any) -> list[Any]:
        parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        return [node, *(inner for part in parts for inner in nodes(part))]

    schema = strict_schema(RlConfigAsked)
    objects = [n for n in nodes(schema) if isinstance(n, dict) and n.get("type") == "object"]
    assert len(objects) == 6
    for node in objects:
        assert node["required"] == list(node["properties"]) and node["additionalProperties"] is False
    text = json.dumps(schema)
    assert "$ref" not in text and '"default"' not in text and "Weight of the entropy" in text


@pytest.mark.parametrize(
    "text",
    ['{"source": "s", "note": ""}', '```json\n{"source": "s", "note": ""}\n```', 'Sure: {"source": "s", "note": ""}.'],
)
def test_json_is_found_where_models_put_it(text: str) -> None:
    reply, fault = parse(text, CodeReply)
    assert reply == CodeReply(source="s", note="") and fault == ""


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "the reply is empty"),
        ("no", "malformed JSON"),
        ('{"source": 1, "note": ""}', "source: Input should be a valid string"),
        ('{"source": 1, "note": "", "more": 1}', "more: Extra inputs"),
        ("[" * 100_000, "malformed JSON"),
    ],
)
def test_what_is_wrong_with_a_reply_is_said(text: str, fault: str) -> None:
    reply, said = parse(text, CodeReply)
    assert reply is None and fault in said

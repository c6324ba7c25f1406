"""A model that plans a guard or an option: it is written and tried where its trigger came true. A guard interrupts the
steps, an option is called by the policy only."""

from __future__ import annotations

import json
from typing import Any

from rlgpt.agents.rules.model import respond
from rlgpt.agents.rules.question import read
from tests.agents.chat_server import ChatServer
from tests.end_to_end.conftest import Make

GUARD = {
    "name": "drink_water", "mode": "code", "goal": "Drink until nothing is missing.", "reason": "Thirst kills.",
    "trigger": 'view.drink < 9 and view.known("water") > 0', "done_when": "view.drink >= 9", "max_steps": 100,
}  # fmt: skip


def step(name: str, done_when: str) -> dict[str, Any]:
    fixed = {"mode": "code", "goal": name, "reason": "", "trigger": "", "max_steps": 200}
    return fixed | {"name": name, "done_when": done_when}


DRINK = """
def drink_water(view):
    while view.drink < 9:
        if view.front == "water":
            view = yield "do"
        else:
            view = yield approach(view, "water") or explore(view) or "noop"
"""


GATHER = """
def gather_wood(view):
    while view.inventory["wood"] < 5:
        if view.front == "tree":
            view = yield "do"
        else:
            view = yield approach(view, "tree") or explore(view, "tree") or "noop"
"""
PLACE = """
def put_table(view):
    while "place_table" not in view.achieved:
        if view.front in ("grass", "sand", "path"):
            view = yield "place_table"
        else:
            view = yield explore(view) or "noop"
"""
SOURCES = {"drink_water": DRINK, "gather_wood": GATHER, "put_table": PLACE}
PLAN = {
    "executor": "sequence",
    "rationale": "",
    "sub_actions": [
        GUARD,
        step("gather_wood", 'view.inventory["wood"] >= 5 or "place_table" in view.achieved'),
        step("put_table", '"place_table" in view.achieved'),
    ],
}


def model(request: dict[str, Any], mode: str = "code") -> dict[str, Any]:
    """The rule-based model, but for this plan and this code."""
    answer, question = respond(request), read(request)
    told: dict[str, Any] = {}
    if question.ask == "plan":
        told = {**PLAN, "sub_actions": [GUARD | {"mode": mode}, *PLAN["sub_actions"][1:]]}
    elif question.ask == "write":
        told = {"source": SOURCES[question["item"]["name"]], "note": ""}
    if told:
        answer["choices"][0]["message"] |= {"content": json.dumps(told), "refusal": None}
    return answer


def test_a_guard_of_a_plan_is_coded_tried_and_used(make: Make) -> None:
    with ChatServer(model) as server:
        llm = {"kind": "openai", "base_url": server.url, "model": "m"}
        session = make("place_table", llm=llm, loop={"iterations": 0, "target": 1.0})
        history = session.finish(200)
    plan = history.plans[max(history.plans)]
    assert plan.items[0].trigger == GUARD["trigger"]
    tried = [a for a in history.attempts if a.sub_action == GUARD["name"]]
    assert tried and tried[-1].trial is not None and tried[-1].trial.outcome == "accepted", tried
    assert tried[-1].seq > max(a.seq for a in history.attempts if a.sub_action != GUARD["name"]), "after the steps"
    dev = next(e for iteration in history.iterations for e in iteration.evaluations)
    assert GUARD["name"] not in dev.funnel and dev.failures["ends"]
    assert history.status == "ended"


def test_an_option_is_tried_where_its_trigger_holds_and_then_called_by_the_policy_alone(make: Make) -> None:
    with ChatServer(lambda request: model(request, "option")) as server:
        llm = {"kind": "openai", "base_url": server.url, "model": "m"}
        budget = {"env_steps": 60_000}
        session = make("place_table", llm=llm, loop={"iterations": 0, "target": 1.0}, budget=budget)
        history = session.finish(200)
    assert history.status == "ended" and history.plan and history.plan.items[0].is_option, history.reason
    tried = [a for a in history.attempts if a.sub_action == GUARD["name"]]
    assert tried and tried[-1].trial is not None and tried[-1].trial.outcome == "accepted", tried
    (run,) = history.runs.values()
    assert run.state == "finished" and run.updates and GUARD["name"] in {slot["name"] for slot in run.slots}
    plan, full = (
        next(e for i in history.iterations for e in i.evaluations if e.variant == variant)
        for variant in ("plan", "full")
    )
    assert plan.successes and GUARD["name"] not in plan.option_usage and GUARD["name"] not in full.funnel
    assert full.option_usage[GUARD["name"]], "with a probability of its prior"
    assert full.option_done is not None and 0 < full.option_done[GUARD["name"]] <= full.option_usage[GUARD["name"]]

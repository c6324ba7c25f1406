"""`show` for people: the document of `record.py` as lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rlgpt.console.view.numbers import count, many, measured, money
from rlgpt.console.view.plan import describe
from rlgpt.console.view.words import ACTING, ACTS, PLAN_STATUS, author
from rlgpt.store.history import Measured

Part = Mapping[str, Any]
OVER = ("succeeded", "finished", "stopped", "failed")
"""What the status of an ended session is."""


def lines(w: Part) -> Iterator[str]:
    yield f"{w['id']} ({w['name']}): {w['task']} in {w['world']}, seed {w['seed']}"
    yield f"{w['status']}: {w['reason']}" if w["reason"] else str(w["status"])
    cost = w["cost"]
    spent = money(cost["known_usd"], cost["usd"] is None)
    yield f"{count(w['env_steps'])} env steps, {many(cost['calls'], 'call')}, {count(cost['tokens'])} tokens, {spent}"
    for command in w["overrides"]:
        if command["state"] == "queued":
            yield f"queued: {describe(command['kind'], command['payload'])}, by {command['author']}"
    for iteration in w["iterations"]:
        yield ""
        of = f" of sub-task {iteration['sub_task']}" if w["task_plans"] else ""
        yield f"iteration {iteration['iteration']}{of}"
        for line in _iteration(iteration, w["status"] in OVER):
            yield "  " + line
    if w["test"]:
        yield ""
        best = w["incumbent"]
        yield f"best so far: iteration {best['iteration']}{ACTS[best['played']]}: {best['why']}"
        yield from _split(w["test"])


def _iteration(i: Part, over: bool) -> Iterator[str]:
    """`over`: the session has ended, so that a run without an end was cut off."""
    if plan := i["plan"]:
        state = PLAN_STATUS.get(plan["status"], plan["status"])
        yield f"plan {plan['revision']} by {author(plan['author'])}, {state}, run by {plan['executor']}"
        for item in plan["sub_actions"]:
            pin = " (pinned)" if item["pinned"] else ""
            yield f"  {item['mode']:<4} {item['name']}{pin}: {item['reason']}"
            if item["why"]:
                acts = f"v{item['acting_version']} acts" if item["acting_version"] else "no code acts"
                yield f"       {acts}: {item['why']}"
    for attempt in i["attempts"]:
        yield _attempt(attempt)
    for run in i["training"]:
        steps, state = count(run["env_steps"]), "cut off" if over and run["state"] == "running" else run["state"]
        why = f": {run['reason']}" if run["reason"] and run["state"] == "failed" else ""
        yield f"PPO run {run['run']} {state}: {steps} env steps, {many(run['updates'], 'update')}{why}"
    for split in i["evaluation"]:
        yield from _split(split)
    if result := i["result"]:
        yield f"acts: {ACTING[result['variant']]} ({result['why']})"
    if verdict := i["verdict"]:
        said = "succeeded" if verdict["success"] else "failed"
        yield f"verdict by {verdict['author']}: {said}: {verdict['cause']}"


def _attempt(a: Part) -> str:
    measured = a["measured"]
    became = "untried"
    if measured:
        became = f"{measured['outcome']} {measured['successes']}/{measured['episodes']}"
    error = f", {a['error']}" if a["error"] else ""
    return f"code {a['sub_action']} version {a['version']} by {a['author']}: {became}{error}"


def _split(split: Part) -> Iterator[str]:
    shown = _result(split) if split["score"] is not None else f"success {_result(split)}"
    yield f"{split['split']} {shown}, {many(split['dead_loops'], 'dead loop')}"
    for variant, part in split.items():
        if isinstance(part, dict) and "ci95" in part:
            yield f"  {variant.replace('_', ' ')}: {_result(part)}"


def _result(part: Part) -> str:
    return measured(Measured(part["successes"], part["episodes"], part["score"]))

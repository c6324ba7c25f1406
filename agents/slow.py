"""The slow agent: decomposes a task, marks each sub-action `code` or `rl`, and plans again from what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rlgpt.agents import memory
from rlgpt.agents.asking import contents, messages
from rlgpt.agents.client import Client
from rlgpt.agents.context import Context
from rlgpt.agents.contracts import PlanReply
from rlgpt.store.history import Item

Check = Callable[[PlanReply], str]


def plan(client: Client, context: Context, check: Check = lambda reply: "") -> PlanReply:
    """A plan for the iteration that has just been opened. `check` says what of it cannot be, empty if all can."""
    history = context.history
    iteration = history.iteration
    number = iteration.number if iteration else 0
    last = memory.last_closed(history)
    asked = messages(
        "slow",
        "slow_plan",
        context,
        scripts=contents(client, "slow", context),
        trim=("earlier", "skills", "before", "measured"),
        request=_request(context, "plan") | {"iteration": number},
        pins=[_pin(item) for item in context.pins],
        advice=context.advice("slow"),
        rejected=memory.rejected_plan(context),
        skills=[{k: s[k] for k in ("name", "goal", "done_when", "measured") if k in s} for s in context.skills],
        plan=memory.plan_now(context),
        before=_of_the_sub_task_before(context),
        measured=memory.measured(history, last) if last else None,
        critique=memory.critique(last.verdict, "advice_slow") if last else None,
        earlier=memory.earlier_iterations(history),
    )
    return client.ask("slow", _step(context, "plan"), asked, PlanReply, lambda reply: _twice(reply) or check(reply))


def refine(
    client: Client, context: Context, failed: Sequence[str], last_depth: bool, check: Check = lambda reply: ""
) -> PlanReply:
    """The plan in force without the sub-actions that failed as code: split, re-worded, left to RL or dropped."""
    asked = messages(
        "slow",
        "slow_refine",
        context,
        scripts=contents(client, "slow", context),
        trim=("earlier",),
        request=_request(context, "refine") | {"failed": list(failed), "last_depth": last_depth},
        pins=[_pin(item) for item in context.pins],
        advice=context.advice("slow"),
        plan=memory.plan_now(context),
        earlier=memory.earlier_iterations(context.history),
    )
    return client.ask("slow", _step(context, "refine"), asked, PlanReply, lambda reply: _twice(reply) or check(reply))


def _twice(reply: PlanReply) -> str:
    names = [item.name for item in reply.sub_actions]
    twice = next((name for name in names if names.count(name) > 1), None)
    return f"the name {twice!r} is given twice" if twice else ""


def _request(context: Context, ask: str) -> dict[str, object]:
    limits = context.limits
    return {
        "ask": ask,
        "target": limits.target,
        "iterations": limits.iterations,
        "attempts_per_sub_action": limits.inner,
        "env_steps_left": context.env_steps_left,
    }


def _pin(item: Item) -> memory.Plain:
    return {k: getattr(item, k) for k in ("name", "mode", "goal", "done_when", "max_steps")}


def _of_the_sub_task_before(context: Context) -> list[memory.Plain]:
    """For a sub-task's first plan: what became of each sub-action of the plan before, whose start it shares."""
    history = context.history
    plan = history.plan
    if plan is None or plan.sub_task == history.sub_task:
        return []
    return [memory.item_now(history, plan, item) for item in plan.items]


def _step(context: Context, ask: str) -> str:
    """Names the question by where the session stands."""
    history = context.history
    number = history.iteration.number if history.iteration else 0
    return f"{ask}/{history.sub_task}.{number}/{len(history.plans)}"

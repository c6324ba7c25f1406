"""Task plan, iterations, plans: the steps of the planner and the slow agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from rlgpt.agents import loop, planner, slow
from rlgpt.agents.context import Context
from rlgpt.agents.errors import UselessReply
from rlgpt.store import tables
from rlgpt.store.row_types import SubTaskFields
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.steps.outdated import log_outdated
from rlgpt.training.steps.plan_check import wrong_name, wrong_with
from rlgpt.training.steps.plan_rows import write_plan


def plan_tasks(runtime: SessionRuntime, step: loop.PlanTasks) -> None:
    """The first task plan, or what is left of it once a sub-task is over."""
    before = runtime.history.task_plans
    over = before[-1].sub_tasks[: runtime.history.sub_task + 1] if before else []
    try:
        reply = runtime.ask(lambda: planner.order(runtime.client, _whole(runtime)))
        left: Sequence[SubTaskFields] = [
            {"task": s.task, "goal": s.goal, "reason": s.reason}
            for s in reply.sub_tasks
            if s.task in runtime.world.tasks
        ]
        reason = reply.reason
    except UselessReply as error:
        left = before[-1].sub_tasks[len(over) :] if before else []
        reason = f"{'the previous task plan is kept' if before else 'the task alone'}: {error}"
    # The session's own task comes last, wherever the model put it: it would be worked on twice.
    worked_on = {s["task"] for s in over} | {s["task"] for s in left[:-1] if s["task"] == runtime.session_task}
    ordered = [*over, *(s for s in left if s["task"] not in worked_on)]
    if not ordered or ordered[-1]["task"] != runtime.session_task:
        goal = runtime.world.tasks[runtime.session_task].prompt
        ordered.append({"task": runtime.session_task, "goal": goal, "reason": "the session's own task comes last"})
    with runtime.writer.transaction(durable=True) as tx:
        tx.add(tables.TaskPlan(revision=len(before) + 1, author="planner", sub_tasks=ordered, reason=reason))


def _whole(runtime: SessionRuntime) -> Context:
    """What the planner sees: the session's own task, not the sub-task just over."""
    context = runtime.context()
    general = {name: context.sheet[name] for name in ("features", "default_features", "targets")}
    return replace(
        context,
        task=runtime.world.tasks[runtime.session_task],
        sheet=runtime.world.sheet(runtime.session_task) | general,
    )


def open_iteration(runtime: SessionRuntime, step: loop.OpenIteration) -> None:
    with runtime.writer.transaction(durable=True) as tx:
        tx.add(tables.Iteration(sub_task=step.sub_task, number=step.number))


def plan(runtime: SessionRuntime, step: loop.Plan) -> None:
    """The slow agent's next plan; nothing where the operator edited the plan while it was asked for: the answer knows
    nothing of the edit, a pin among them, and the loop asks again."""
    context, revisions = runtime.context(), len(runtime.history.plans)
    previous = runtime.history.plan
    if previous and previous.sub_task != step.sub_task:
        previous = None  # another sub-task's pins and items are not this one's
    standing = runtime.ask(
        lambda: slow.next_plan(
            runtime.client,
            context,
            previous,
            step.failed,
            step.last_depth,
            check=partial(wrong_with, runtime),
            impossible=lambda item: bool(wrong_name(runtime, item)),
        )
    )
    if len(runtime.history.plans) > revisions:  # the step may be the same, but not what it is about
        log_outdated(runtime, step)
        return
    strange = sorted(set(runtime.limits.uncoded) - {item.name for item in standing.items})
    if strange and previous is None:
        names = ", ".join(strange)
        runtime.log("warning", "uncoded", sentence=f"the plan has no sub-action {names} to leave without code")
    with runtime.writer.transaction(durable=True) as tx:
        write_plan(
            runtime,
            tx,
            step.iteration,
            step.sub_task,
            standing.author,
            standing.executor,
            standing.rationale,
            standing.items,
            depth=standing.depth,
            attempted=standing.attempted,
        )

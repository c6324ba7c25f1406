"""Task plan, iterations, plans: the steps of the planner and the slow agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from rlgpt.agents import loop, planner, slow
from rlgpt.agents.arms import confined
from rlgpt.agents.context import Context
from rlgpt.agents.contracts import Executor, PlanReply, SubActionReply
from rlgpt.agents.enforce import enforce
from rlgpt.agents.errors import UselessReply
from rlgpt.store import tables
from rlgpt.store.history import PlanState
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.steps.plan_check import wrong_name, wrong_with
from rlgpt.training.steps.plan_rows import write_plan


def plan_tasks(runtime: SessionRuntime, step: loop.PlanTasks) -> None:
    """The first task plan, or what is left of it once a sub-task is over."""
    before = runtime.history.task_plans
    over = before[-1]["sub_tasks"][: runtime.history.sub_task + 1] if before else []
    try:
        reply = runtime.ask(lambda: planner.order(runtime.client, _whole(runtime)))
        left, reason = [s.model_dump() for s in reply.sub_tasks if s.task in runtime.world.tasks], reply.reason
    except UselessReply as error:
        kept = before[-1]["sub_tasks"][len(over) :] if before else []
        left, reason = kept, f"{'the previous task plan is kept' if before else 'the task alone'}: {error}"
    worked_on = {s["task"] for s in over}
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


def _kept(previous: PlanState, failed: Sequence[str], error: str) -> PlanReply:
    """The previous plan again, its failed sub-actions left to RL: what stands when the model says nothing of use."""
    return PlanReply(
        executor="policy" if failed else previous.executor,  # type: ignore[arg-type]
        rationale=f"the previous plan is kept: {error}",
        sub_actions=[
            SubActionReply(
                name=item.name,
                mode="rl" if item.name in failed else item.mode,  # type: ignore[arg-type]
                goal=item.goal,
                reason=item.reason,
                done_when=item.done_when,
                max_steps=item.max_steps,
            )
            for item in previous.items
        ],
    )


def plan(runtime: SessionRuntime, step: loop.Plan) -> None:
    context = runtime.context()
    previous = runtime.history.plan
    if previous and previous.sub_task != step.sub_task:
        previous = None  # another sub-task's pins and items are not this one's
    check = partial(wrong_with, runtime)
    try:
        if runtime.limits.fixed_plan and previous is not None:
            reply = _kept(previous, (), "an ablation without a second plan")
        elif step.failed:
            reply = runtime.ask(lambda: slow.refine(runtime.client, context, step.failed, step.last_depth, check))
        else:
            reply = runtime.ask(lambda: slow.plan(runtime.client, context, check))
    except UselessReply as error:
        if isinstance(error.nearest, PlanReply):  # its names are made unique below, its predicates judged in trials
            reply = error.nearest
        elif previous is not None:
            reply = _kept(previous, step.failed, str(error))
        else:
            raise
    depth = previous.depth + 1 if step.failed and previous else 0
    author = "refine" if step.failed else "slow"
    enforced = enforce(
        reply,
        previous,
        failed=step.failed,
        last_depth=step.last_depth,
        author=author,
        impossible=[item.name for item in reply.sub_actions if wrong_name(runtime, item)],
    )
    wanted: Executor = "policy" if runtime.limits.fixed_plan else reply.executor  # that ablation is not one of RL
    executor, enforced = confined(runtime.limits.arm, wanted, enforced)
    with runtime.writer.transaction(durable=True) as tx:
        write_plan(
            runtime,
            tx,
            step.iteration,
            step.sub_task,
            author,
            executor,
            reply.rationale,
            enforced.items,
            depth=depth,
            attempted=enforced.attempted,
        )

"""Task plan, iterations, plans: the steps of the planner and the slow agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rlgpt.agents import loop, planner, slow
from rlgpt.agents.arms import confined
from rlgpt.agents.context import Context
from rlgpt.agents.contracts import Executor, PlanReply, SubActionReply
from rlgpt.agents.enforce import enforce
from rlgpt.agents.errors import UselessReply
from rlgpt.store import tables
from rlgpt.store.history import PlanState
from rlgpt.training.live import Live
from rlgpt.training.plans import write_plan


def plan_tasks(live: Live, step: loop.PlanTasks) -> None:
    """The first task plan, or what is left of it once a sub-task is over."""
    before = live.history.task_plans
    over = before[-1]["sub_tasks"][: live.history.sub_task + 1] if before else []
    try:
        reply = live.ask(lambda: planner.order(live.client, _whole(live)))
        left, reason = [s.model_dump() for s in reply.sub_tasks if s.task in live.world.tasks], reply.reason
    except UselessReply as error:
        if not before:
            raise
        left, reason = before[-1]["sub_tasks"][len(over) :], f"the previous task plan is kept: {error}"
    worked_on = {s["task"] for s in over}
    ordered = [*over, *(s for s in left if s["task"] not in worked_on)]
    if not ordered or ordered[-1]["task"] != live.session_task:
        goal = live.world.tasks[live.session_task].prompt
        ordered.append({"task": live.session_task, "goal": goal, "reason": "the session's own task comes last"})
    with live.writer.transaction(durable=True) as tx:
        tx.add(tables.TaskPlan(revision=len(before) + 1, author="planner", sub_tasks=ordered, reason=reason))


def _whole(live: Live) -> Context:
    """What the planner sees: the session's own task, not the sub-task just over."""
    context = live.context()
    general = {name: context.sheet[name] for name in ("features", "default_features", "targets")}
    return replace(
        context, task=live.world.tasks[live.session_task], sheet=live.world.sheet(live.session_task) | general
    )


def open_iteration(live: Live, step: loop.OpenIteration) -> None:
    with live.writer.transaction(durable=True) as tx:
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


def plan(live: Live, step: loop.Plan) -> None:
    context = live.context()
    previous = live.history.plan
    if previous and previous.sub_task != step.sub_task:
        previous = None  # another sub-task's pins and items are not this one's
    try:
        if live.limits.fixed_plan and previous is not None:
            reply = _kept(previous, (), "an ablation without a second plan")
        elif step.failed:
            reply = live.ask(lambda: slow.refine(live.client, context, step.failed, step.last_depth))
        else:
            reply = live.ask(lambda: slow.plan(live.client, context))
    except UselessReply as error:
        if previous is None:
            raise
        reply = _kept(previous, step.failed, str(error))
    depth = previous.depth + 1 if step.failed and previous else 0
    author = "refine" if step.failed else "slow"
    enforced = enforce(
        reply,
        previous,
        failed=step.failed,
        last_depth=step.last_depth,
        author=author,
    )
    wanted: Executor = "policy" if live.limits.fixed_plan else reply.executor  # that ablation is not one of RL
    executor, enforced = confined(live.limits.arm, wanted, enforced)
    with live.writer.transaction(durable=True) as tx:
        write_plan(
            live,
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

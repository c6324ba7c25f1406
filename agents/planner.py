"""The task planner: orders the sub-tasks of a long-horizon task."""

from __future__ import annotations

from rlgpt.agents.asking import contents, messages
from rlgpt.agents.client import Client
from rlgpt.agents.context import Context
from rlgpt.agents.contracts import TaskPlanReply
from rlgpt.agents.memory import Plain, result
from rlgpt.store.states import IterationState


def order(client: Client, context: Context) -> TaskPlanReply:
    """Sub-tasks in order, the task itself last; only task ids that the world offers for it."""
    known = (*context.task.sub_tasks, context.task.id)

    def useless(reply: TaskPlanReply) -> str:
        strange = [s.task for s in reply.sub_tasks if s.task not in known]
        if strange:
            return f"there is no task {strange[0]!r}; the tasks are {', '.join(known)}"
        named = [s.task for s in reply.sub_tasks]
        return "a task is named twice" if len(set(named)) < len(named) else ""

    request = {"ask": "order", "task": context.task.id}
    asked = messages(
        "planner",
        "planner_order",
        context,
        scripts=contents(client, "planner", context),
        trim=("done",),
        request=request,
        sub_tasks=list(known),
        done=_done(context),
        advice=context.advice("planner"),
    )
    step = f"order/{len(context.history.task_plans)}"
    return client.ask("planner", step, asked, TaskPlanReply, useless)


def _done(context: Context) -> list[Plain]:
    """Sub-tasks already worked on, with the success they reached and what their last episodes gained."""
    history = context.history
    ordered = history.task_plans[-1].sub_tasks if history.task_plans else []
    out: list[Plain] = []
    for number, sub_task in enumerate(ordered[: history.sub_task + 1]):
        mine = [i for i in history.iterations if i.sub_task == number and i.verdict]
        if mine:
            best = max((history.pooled(i, "dev", "full") for i in mine), key=lambda measured: measured.value)
            out.append({"task": sub_task["task"], **result(best), "gained": _gained(mine[-1])})
    return out


def _gained(iteration: IterationState) -> dict[str, float]:
    """Share of the dev episodes that gained each milestone: what the inventory really held."""
    rows = [e for e in iteration.evaluations if e.split == "dev" and e.variant == "full"]
    episodes = sum(e.episodes for e in rows)
    counts: dict[str, int] = {}
    for row in rows:
        for name, count in row.milestones.items():
            counts[name] = counts.get(name, 0) + count
    return {name: round(count / episodes, 2) for name, count in counts.items()} if episodes else {}

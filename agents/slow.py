"""The slow agent: decomposes a task, marks each sub-action `code` or `rl`, and plans again from what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rlgpt.agents import memory
from rlgpt.agents.arms import MODES, confined
from rlgpt.agents.asking import contents, messages
from rlgpt.agents.client import Client
from rlgpt.agents.context import Context
from rlgpt.agents.contracts import Executor, PlanReply, SubActionReply
from rlgpt.agents.enforce import enforce
from rlgpt.agents.errors import UselessReply
from rlgpt.store.history import Item, PlanState
from rlgpt.store.row_types import JsonObject

Check = Callable[[PlanReply], str]


@dataclass(frozen=True)
class StandingPlan:
    """A plan as it will stand, whatever the model answered: pins hold, names can be and are unique, depth ends, and
    modes and executor are those of the session's arm."""

    author: str
    executor: Executor
    rationale: str
    depth: int
    items: Sequence[Item]
    attempted: Mapping[str, JsonObject]
    """See `Enforced.attempted`."""


def next_plan(
    client: Client,
    context: Context,
    previous: PlanState | None,
    failed: Sequence[str] = (),
    last_depth: bool = False,
    *,
    check: Check = lambda reply: "",
    impossible: Callable[[SubActionReply], bool] = lambda item: False,
) -> StandingPlan:
    """The plan after `previous`, the sub-task's last one; a refinement where sub-actions `failed` as code.

    `check` says what of a reply cannot be, empty if all can. `impossible`: no code could have the name of this
    sub-action. Raises UselessReply where the model says nothing of use and there is no plan that could be kept.
    """
    fixed, author = context.limits.fixed_plan, "refine" if failed else "slow"
    try:
        if fixed and previous is not None:
            reply = _kept(previous, (), "an ablation without a second plan")
        elif failed:
            reply = refine(client, context, failed, last_depth, check)
        else:
            reply = plan(client, context, check)
    except UselessReply as error:
        if isinstance(error.nearest, PlanReply):  # its names are made unique below, its predicates judged in trials
            reply = error.nearest
        elif previous is not None:
            reply = _kept(previous, failed, str(error))
        else:
            raise
    edited = context.history.edited_plan
    enforced = enforce(
        reply,
        edited if edited and edited.sub_task == context.history.sub_task else previous,
        failed=failed,
        last_depth=last_depth,
        author=author,
        impossible=[item.name for item in reply.sub_actions if impossible(item)],
    )
    wanted: Executor = "policy" if fixed else reply.executor  # that ablation is not one of RL
    executor, enforced = confined(context.limits.arm, wanted, enforced, context.limits.uncoded)
    depth = previous.depth + 1 if failed and previous else 0
    return StandingPlan(author, executor, reply.rationale, depth, enforced.items, enforced.attempted)


def _kept(previous: PlanState, failed: Sequence[str], error: str) -> PlanReply:
    """The previous plan again, its failed sub-actions left to RL: what stands when the model says nothing of use."""
    # Not checked as an answer is: the plan may have no sub-action left, and in an older session longer texts of its
    # operator, or more sub-actions than a model may name.
    return PlanReply.model_construct(
        executor="policy" if failed else previous.executor,
        rationale=f"the previous plan is kept: {error}",
        sub_actions=[
            SubActionReply.model_construct(
                name=item.name,
                mode="rl" if item.name in failed and not item.trigger else item.mode,
                goal=item.goal,
                reason=item.reason,
                trigger=item.trigger,
                done_when=item.done_when,
                max_steps=item.max_steps,
            )
            for item in previous.items
        ],
    )


def plan(client: Client, context: Context, check: Check = lambda reply: "") -> PlanReply:
    """A plan for the iteration that has just been opened. `check` says what of it cannot be, empty if all can."""
    history = context.history
    last = memory.last_closed(history)
    asked = messages(
        "slow",
        "slow_plan",
        context,
        scripts=contents(client, "slow", context),
        trim=("earlier", "skills", "before", "lost", "measured"),
        request=_request(context, "plan"),
        pins=[_pin(item) for item in context.pins],
        advice=context.advice("slow"),
        rejected=memory.rejected_plan(context),
        skills=[{k: s[k] for k in ("name", "goal", "done_when", "measured") if k in s} for s in context.skills],
        plan=memory.plan_now(context),
        before=_of_the_sub_task_before(context),
        measured=memory.measured(context, last) if last else None,
        same_seeds=memory.compared_with_before(history),
        lost=memory.lost_episodes(last),
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
        trim=("earlier", "lost_trials"),
        request=_request(context, "refine") | {"failed": list(failed), "last_depth": last_depth},
        pins=[_pin(item) for item in context.pins],
        advice=context.advice("slow"),
        plan=memory.plan_now(context),
        untried=[name for name in failed if memory.was_vacuous(context, name)],
        lost_trials={name: memory.lost_trials_of(context, name, 1) for name in failed},
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
        **memory.passes(context),
        "attempts_per_sub_action": limits.inner,
        "env_steps_left": context.env_steps_left,
        **({"only_mode": MODES[limits.arm]} if limits.arm in MODES else {}),
    }


def _pin(item: Item) -> memory.Plain:
    return {k: getattr(item, k) for k in ("name", "mode", "goal", "trigger", "done_when", "max_steps")}


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

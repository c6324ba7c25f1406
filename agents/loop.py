"""The loop as a fold: `next_step(history)` names what to do next, and nothing else decides.

The worker executes one step, appends its rows in one transaction, folds them, and asks again. Resume, fork,
replayed models, overrides and dry runs are this same function on other histories. method.md, "The two loops".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

from rlgpt.agents import choice, outcome
from rlgpt.store.history import Attempt, EvaluationState, History, Item, IterationState, PlanState


@dataclass(frozen=True)
class Limits:
    """The loop's constants, fixed with the session."""

    iterations: int = 3
    """Refinements after iteration 0."""
    inner: int = 3
    """Attempts per coded sub-action and iteration."""
    candidates: int = 1
    """Drafts of an attempt: each is tried on the same seeds, and the best goes on."""
    depth: int = 2
    """Refinements of the plan inside one iteration."""
    target: float = 0.95
    """Dev success at which the session stops."""
    dev_first: int = 20
    dev_more: int = 30
    test_episodes: int = 100
    review: bool = False
    critic: Literal["model", "human", "none"] = "model"
    arm: Literal["rlgpt", "code", "rl"] = "rlgpt"
    """An experiment's arm: `agents/arms.py` enforces it on every plan."""
    uncoded: tuple[str, ...] = ()
    """Sub-actions that get no code, enforced likewise."""
    fixed_plan: bool = False
    """No refinement: the first plan of a sub-task stands."""
    controls: tuple[str, ...] = ()
    """Variants tested beside the incumbent."""


@dataclass(frozen=True)
class PlanTasks:
    pass


@dataclass(frozen=True)
class OpenIteration:
    sub_task: int
    number: int


@dataclass(frozen=True)
class Plan:
    """Slow agent. `failed` names the items that a refinement is about; empty for a new plan."""

    sub_task: int
    iteration: int
    failed: tuple[str, ...] = ()
    last_depth: bool = False
    """The refinement must hand every failed item to RL, or drop it; the loop enforces it."""


@dataclass(frozen=True)
class Code:
    item: str
    attempt: int
    """Within the iteration, from 1."""
    draft: int | None = None
    """Within the attempt, from 1; None where an attempt is one version."""


@dataclass(frozen=True)
class Trial:
    item: str
    version: int


@dataclass(frozen=True)
class JudgeItem:
    item: str
    version: int


@dataclass(frozen=True)
class Configure:
    revision: int


@dataclass(frozen=True)
class Train:
    revision: int
    run: int | None
    """A run to continue from its last checkpoint, or None for a new one."""


@dataclass(frozen=True)
class Evaluate:
    iteration: int
    split: Literal["dev", "test"]
    variant: str
    first: int
    episodes: int


@dataclass(frozen=True)
class JudgeIteration:
    iteration: int


@dataclass(frozen=True)
class Wait:
    reason: Literal["approval", "paused", "critic"]
    revision: int = 0
    item: str = ""


@dataclass(frozen=True)
class Done:
    """Write `ended` with this status and reason; when already ended, nothing."""

    status: Literal["succeeded", "finished", "stopped", "failed"]
    reason: str


Step = (
    PlanTasks | OpenIteration | Plan | Code | Trial | JudgeItem | Configure | Train | Evaluate | JudgeIteration
    | Wait | Done
)  # fmt: skip

VARIANTS = ("options_off", "primitives_off")
DECIDING_SHARE = 0.05
"""Of the env steps that the session was started with: what more development episodes may take where the first leave
open who acts. They are not charged, but they take time, in Minecraft hours."""
TESTED = "the test episodes have been seen: nothing may be decided after them"


def next_step(h: History, limits: Limits, over_budget: str = "") -> Step:
    """The next step of the session. `over_budget` is the sentence of a reached budget, empty if none."""
    if h.status == "ended":
        return Done(h.result, h.reason)  # type: ignore[arg-type]
    if h.stop_requested:
        return Done("stopped", "stopped by the operator")
    if h.pause_requested:
        return Wait("paused")
    step = _next(h, limits)
    if over_budget and not isinstance(step, Evaluate | JudgeIteration | Done):  # what it bought is measured
        step = _finish(h, limits, "finished", over_budget)
    if _tested(h) and not (isinstance(step, Done) or (isinstance(step, Evaluate) and step.split == "test")):
        return _finish(h, limits, "finished", TESTED)
    return step


def _tested(h: History) -> bool:
    return any(e.split == "test" for i in h.iterations for e in i.evaluations)


def _next(h: History, limits: Limits) -> Step:
    if h.session.get("task_info", {}).get("long_horizon") and not h.task_plans:
        return PlanTasks()
    iteration = h.iteration
    if iteration is None:
        return OpenIteration(0, 0)
    if iteration.closed:
        return _after_iteration(h, iteration, limits)
    return _inside_iteration(h, iteration, limits)


# ---- inside an iteration ------------------------------------------------------------------------
def _inside_iteration(h: History, iteration: IterationState, limits: Limits) -> Step:
    pending = h.pending_plan
    if pending and pending.iteration == iteration.number and pending.sub_task == iteration.sub_task:
        return Wait("approval", revision=pending.revision)
    plan = h.plan
    if plan is None or (plan.sub_task, plan.iteration) != (iteration.sub_task, iteration.number):
        return Plan(iteration.sub_task, iteration.number)

    failed: list[str] = []
    for item in (*plan.steps, *(i for i in plan.items if i.trigger)):  # these are tried in what the steps do
        step = _code_item(h, iteration, plan, item, limits)
        if isinstance(step, str):
            if step == "failed":
                failed.append(item.name)
            continue
        return step
    if failed and plan.depth < limits.depth and not limits.fixed_plan:
        return Plan(iteration.sub_task, iteration.number, tuple(failed), plan.depth + 1 >= limits.depth)
    return _learn(h, iteration, plan, limits)


def _code_item(
    h: History, iteration: IterationState, plan: PlanState, item: Item, limits: Limits
) -> Step | Literal["accepted", "failed", "rl", "later"]:
    """The next step of one sub-action's inner loop, or what became of it."""
    if item.mode == "rl":
        return "rl"
    versions = [a for a in h.attempts_of(item.name) if a.sub_task == iteration.sub_task]
    last = versions[-1] if versions else None
    if last and last.trial is None:
        return Trial(item.name, last.version)
    best = h.accepted(plan, item)
    if best:
        return _better_code(h, iteration, plan, item, best, limits)
    if last and last.trial and last.trial.outcome == "unreached" and last.done_when == item.done_when:
        if last.trial.revision != plan.revision:
            return Trial(item.name, last.version)
        return "later"
    proven = _proven_elsewhere(h, item)
    if proven:
        return Trial(item.name, proven.version)
    again = choice.retried(h, plan, item)
    if again:
        return Trial(item.name, again.version)
    current = [a for a in versions if a.iteration == iteration.number and a.done_when == item.done_when]
    if versions and (draft := _next_draft(versions, iteration, item, limits)):
        return draft
    last = choice.best_draft(choice.rounds(current)[-1]) if current else None
    if last and last.trial and last.verdict is None and last.trial.outcome == "failed" and limits.critic != "none":
        if limits.critic == "human":
            return Wait("critic", item=item.name)
        return JudgeItem(item.name, last.version)
    written = choice.rounds([a for a in current if a.author == "fast"])
    if len(written) >= limits.inner or (last and last.trial and last.trial.outcome == "vacuous"):
        return "failed"
    if written and choice.gave_up(written[-1]):
        return "failed"
    return Code(item.name, len(written) + 1, 1 if limits.candidates > 1 else None)


def _next_draft(versions: list[Attempt], iteration: IterationState, item: Item, limits: Limits) -> Code | None:
    """The next draft of an attempt that has begun, unless no draft could be measured."""
    last = versions[-1]
    if not 0 < choice.draft_of(last) < limits.candidates or last.author != "fast" or last.trial is None:
        return None
    where = (last.sub_task, last.iteration, last.done_when)
    if where != (iteration.sub_task, iteration.number, item.done_when):
        return None
    if last.trial.outcome in ("vacuous", "unreached"):
        return None
    return Code(item.name, last.attempt, choice.draft_of(last) + 1)


def _better_code(
    h: History, iteration: IterationState, plan: PlanState, item: Item, best: Attempt, limits: Limits
) -> Step | Literal["accepted"]:
    """Accepted code that fails too often, in its trials or in the whole plan, is repaired while attempts are left. Code
    whose goal has changed is asked for too, however good it is."""
    tried = [a for a in h.attempts_of(item.name) if a.last_trial(item.done_when)]
    if best.author != "operator" and (draft := _next_draft(h.attempts_of(item.name), iteration, item, limits)):
        return draft
    last = choice.best_draft(choice.rounds(tried)[-1])
    where = (iteration.sub_task, iteration.number)
    written = choice.rounds([a for a in tried if a.author == "fast" and (a.sub_task, a.iteration) == where])
    if best.author == "operator" or len(written) >= limits.inner:
        return "accepted"
    asks_more = bool(choice.goal_before(h, item, h.attempts_of(item.name)))
    given_up = any(map(choice.gave_up, written)) or choice.is_kept(h, item, best, tried)
    if not asks_more and (given_up or choice.good_enough(h, plan, item, best, limits.target)):
        return "accepted"
    unjudged = last.trial if last.verdict is None and limits.critic == "model" else None
    if unjudged and unjudged.episodes and not (asks_more and unjudged.outcome == "accepted"):
        return JudgeItem(item.name, last.version)
    return Code(item.name, len(written) + 1, 1 if limits.candidates > 1 else None)


def _proven_elsewhere(h: History, item: Item) -> Attempt | None:
    """The newest code accepted under another predicate (re-worded, or of an earlier sub-task), not yet tried here."""
    for attempt in reversed(h.attempts_of(item.name)):
        if any(measured == item.done_when for measured, _ in attempt.trials):
            return None
        if any(trial.outcome == "accepted" for _, trial in attempt.trials):
            return attempt
    return None


def _learn(h: History, iteration: IterationState, plan: PlanState, limits: Limits) -> Step:
    """Configure, train, evaluate, judge."""
    uses_policy = plan.executor == "policy" or any(
        item.mode == "rl" or (item.is_option and plan.acts(item.name)) for item in plan.items
    )
    if limits.arm == "code":  # what gets no code stays undone
        uses_policy = False
    run = None
    if uses_policy:
        if iteration.config is None or iteration.config.revision != plan.revision:
            return Configure(plan.revision)
        runs = [h.runs[r] for r in iteration.runs if h.runs[r].revision == plan.revision]
        if not runs:
            return Train(plan.revision, None)
        if runs[-1].state == "running":
            return Train(plan.revision, runs[-1].run)
        run = None if runs[-1].state == "failed" else runs[-1].run
    step = _evaluate_dev(h, iteration, plan, run, limits)
    if step:
        return step
    if limits.critic == "human":
        return Wait("critic")
    return JudgeIteration(iteration.number)


def _evaluate_dev(
    h: History, iteration: IterationState, plan: PlanState, run: int | None, limits: Limits
) -> Step | None:
    done = [e for e in iteration.evaluations if (e.split, e.revision, e.run) == ("dev", plan.revision, run)]
    full = [e for e in done if e.variant == "full"]
    if not full:
        return Evaluate(iteration.number, "dev", "full", 0, limits.dev_first)
    reached = h.pooled(iteration, "dev", "full")
    episodes = reached.episodes
    if episodes == limits.dev_first and limits.dev_more and reached.value >= limits.target:
        return Evaluate(iteration.number, "dev", "full", limits.dev_first, limits.dev_more)
    variants = (*(("plan",) if has_code(plan) else ()), "greedy") if run else ()
    for variant in variants:
        parts = [e for e in done if e.variant == variant]
        if sum(e.episodes for e in parts) < episodes:
            first = sum(e.episodes for e in parts)
            return Evaluate(iteration.number, "dev", variant, first, episodes - first)
    if run and episodes == limits.dev_first and limits.dev_more and _is_worth_more(h, iteration, done, limits):
        return Evaluate(iteration.number, "dev", "full", limits.dev_first, limits.dev_more)
    return None


def _is_worth_more(h: History, iteration: IterationState, done: Sequence[EvaluationState], limits: Limits) -> bool:
    """Whether the episodes played so far leave open who of policy and code acts, and more of them are affordable."""
    lead = outcome.lead_of_policy(h, iteration)
    if lead is None or not lead.open:
        return False
    budget = h.session.get("settings", {}).get("budget", {}).get("env_steps")
    costs = fsum(e.length_mean * e.episodes for e in done) * limits.dev_more / limits.dev_first
    return budget is None or costs <= DECIDING_SHARE * budget


def item_step(h: History, item: Item, limits: Limits) -> Step | None:
    """What a sub-action of the plan in force needs next by itself, whatever comes of the others; None if nothing."""
    iteration, plan = h.iteration, h.plan
    if iteration is None or plan is None:
        return None
    step = _code_item(h, iteration, plan, item, limits)
    return None if isinstance(step, str) else step


def has_code(plan: PlanState) -> bool:
    """Whether follow_plan can do anything: some sub-action has code that works, or at least sometimes."""
    return any(plan.acts(item.name) for item in plan.items if not item.is_option)


# ---- between iterations -------------------------------------------------------------------------
def _after_iteration(h: History, iteration: IterationState, limits: Limits) -> Step:
    full = h.pooled(iteration, "dev", "full")
    if full.episodes >= limits.dev_first + limits.dev_more and full.value >= limits.target:
        reached = f"score {full.value:.3f}" if h.scored else f"success {full.successes}/{full.episodes}"
        return _sub_task_over(h, iteration, limits, "succeeded", f"dev {reached} reached the target")
    if iteration.number >= limits.iterations:
        done = f"all {limits.iterations + 1} iterations are done" if limits.iterations else "the one iteration is done"
        return _sub_task_over(h, iteration, limits, "finished", done)
    if _no_change(h, iteration):
        return _sub_task_over(
            h,
            iteration,
            limits,
            "finished",
            "no change: plan, code and configuration repeat and dev success stays inside the previous interval",
        )
    return OpenIteration(iteration.sub_task, iteration.number + 1)


def _sub_task_over(
    h: History,
    iteration: IterationState,
    limits: Limits,
    status: Literal["succeeded", "finished"],
    reason: str,
) -> Step:
    """The next sub-task, also when this one has used up its iterations below the target; after the last, the end.

    What is left is planned again first, from what the sub-task's episodes really gained."""
    if h.task_plans and iteration.sub_task + 1 < len(h.task_plans[-1].sub_tasks):
        assert iteration.verdict is not None
        if h.task_plans[-1].seq < iteration.verdict.seq and not limits.fixed_plan:
            return PlanTasks()
        return OpenIteration(iteration.sub_task + 1, 0)
    return _finish(h, limits, status, reason)


def _no_change(h: History, iteration: IterationState) -> bool:
    of_sub_task = [i for i in h.iterations if i.sub_task == iteration.sub_task]
    if len(of_sub_task) < 2 or fingerprint(h, of_sub_task[-1]) != fingerprint(h, of_sub_task[-2]):
        return False
    earlier, now = h.pooled(of_sub_task[-2], "dev", "full"), h.pooled(iteration, "dev", "full")
    return bool(earlier.episodes and now.episodes) and earlier.low <= now.value <= earlier.high


def fingerprint(h: History, iteration: IterationState) -> tuple[object, ...]:
    """Plan, source hashes and configuration of an iteration, comparable across iterations."""
    plan = h.plans[iteration.plans[-1]] if iteration.plans else None
    items = tuple((i.name, i.mode, i.goal, i.trigger, i.done_when) for i in plan.items) if plan else ()
    sources = tuple(a.source_hash if (a := h.acting(plan, i)) else "" for i in plan.items) if plan else ()
    config = iteration.config.config_hash if iteration.config else ""
    return (plan.executor if plan else "", items, sources, config)


def _finish(h: History, limits: Limits, status: Literal["succeeded", "finished"], reason: str) -> Step:
    """The test evaluation of the incumbent, once, then the end."""
    best = h.outcome
    if best is None:
        return Done(status, reason)
    variants: list[str] = ["full"]
    last = [e for e in best.evaluations if e.split == "dev" and e.variant == "full"][-1]
    played = best.result.variant if best.result else "full"
    if last.policy == "ppo" and played != "plan":
        variants += ["sampled" if played == "greedy" else "greedy", *VARIANTS]
        if best.plans and has_code(h.plans[best.plans[-1]]):
            variants.append("plan")  # on the same episodes: whether learning pays
        variants += [control for control in limits.controls if control != "plan"]
    else:
        variants += [control for control in limits.controls if control == "script"]
    for variant in variants:
        if not any(e.split == "test" and e.variant == variant for e in best.evaluations):
            return Evaluate(best.number, "test", variant, 0, limits.test_episodes)
    return Done(status, reason)

"""Which policy an iteration stands for: its accepted coded actions, the plan they follow, and its PPO checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlgpt.store.history import Attempt, Item, IterationState, PlanState, Run
from rlgpt.training.host.api import Action, PlanItem
from rlgpt.training.options.slots import CodedAction
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.steps.admission import admit, admit_again


@dataclass(frozen=True)
class Candidate:
    """Everything needed to act as an iteration did: nothing newer than its end is used."""

    iteration: IterationState
    plan: PlanState
    actions: tuple[CodedAction, ...]
    items: tuple[PlanItem, ...]
    """What follow_plan runs."""
    names: tuple[str, ...]
    """Of the items."""
    predicates: dict[str, str]
    """Sub-action name -> done_when, admitted ones only, for the funnel."""
    option_predicates: dict[str, str]
    """The same of the plan's options."""
    run: Run | None
    checkpoint: bytes | None


def coded_action(runtime: SessionRuntime, attempt: Attempt) -> CodedAction:
    admission = attempt.admission
    source = runtime.source(attempt.source_hash)
    admit_again(runtime, "action", source)
    return CodedAction(
        name=attempt.sub_action,
        source=source,
        tree_hash=admission.get("tree_hash", ""),
        arguments={name: tuple(values) for name, values in admission.get("arguments", {}).items()},
        uninterruptible=bool(admission.get("ignore_alarm")),
        has_available=bool(admission.get("has_available")),
    )


def first_action(attempt: Attempt) -> Action:
    """A coded action as a plan runs it: every Literal argument at its first value."""
    arguments = attempt.admission.get("arguments", {})
    return Action(attempt.source_hash, tuple((name, values[0]) for name, values in arguments.items()))


def accepted_of(runtime: SessionRuntime, plan: PlanState) -> list[Attempt]:
    """The accepted attempt of every coded sub-action of the plan that has one."""
    accepted = (runtime.history.accepted(plan, item) for item in plan.items if item.mode != "rl")
    return [attempt for attempt in accepted if attempt]


def acting_of(runtime: SessionRuntime, plan: PlanState) -> list[Attempt]:
    """The code that a policy may call: of coded sub-actions, and of those left to RL whose code worked sometimes."""
    acting = (runtime.history.acting(plan, item) for item in plan.items)
    return [attempt for attempt in acting if attempt]


def plan_items(runtime: SessionRuntime, plan: PlanState, attempts: Sequence[Attempt]) -> tuple[PlanItem, ...]:
    """What follow_plan runs, so no option. Every predicate is admitted again, since the host may be a new process."""
    coded = _coded(plan, attempts)
    for item, _ in coded:
        for expression in filter(None, (item.done_when, item.trigger)):
            admit_again(runtime, "done_when", expression)
    return tuple(PlanItem(item.done_when, first_action(attempt), item.trigger) for item, attempt in coded)


def _coded(plan: PlanState, attempts: Sequence[Attempt]) -> list[tuple[Item, Attempt]]:
    by_name = {attempt.sub_action: attempt for attempt in attempts}
    return [(item, by_name[item.name]) for item in plan.items if item.name in by_name and not item.is_option]


def admitted_predicates(runtime: SessionRuntime, plan: PlanState) -> dict[str, str]:
    """Sub-action name -> done_when of the steps that were admitted. Guards and options are left out: what they
    bring about is often true without them."""
    steps = (item for item in plan.items if not item.trigger)
    return {i.name: i.done_when for i in steps if admit(runtime, "done_when", i.done_when).admitted}


def _option_predicates(runtime: SessionRuntime, plan: PlanState) -> dict[str, str]:
    options = (item for item in plan.items if item.is_option)
    return {i.name: i.done_when for i in options if admit(runtime, "done_when", i.done_when).admitted}


def candidate(runtime: SessionRuntime, iteration: IterationState, revision: int | None = None) -> Candidate:
    """The policy of an iteration at its last evaluated (or the given) plan revision."""
    history = runtime.history
    plan = history.plans[revision if revision is not None else _evaluated_revision(iteration)]
    attempts = acting_of(runtime, plan)
    runs = [history.runs[number] for number in iteration.runs]
    run = next(
        (r for r in reversed(runs) if r.revision == plan.revision and r.state in ("finished", "stopped")),
        None,
    )
    body = runtime.reader.artifact(run.checkpoint.artifact) if run and run.checkpoint else None
    return Candidate(
        iteration,
        plan,
        tuple(coded_action(runtime, attempt) for attempt in attempts),
        plan_items(runtime, plan, attempts),
        tuple(item.name for item, _ in _coded(plan, attempts)),
        admitted_predicates(runtime, plan),
        _option_predicates(runtime, plan),
        run if body is not None else None,
        body,
    )


def _evaluated_revision(iteration: IterationState) -> int:
    return iteration.evaluations[-1].revision if iteration.evaluations else iteration.plans[-1]

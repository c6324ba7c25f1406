"""What brings an episode to where the plan needs a sub-action: those before it, as they act now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlgpt.agents.outcome import warm_start_source
from rlgpt.store.history import History, Item
from rlgpt.training.options.slots import CodedAction
from rlgpt.training.rollouts.trials import PrefixItem
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.steps.admission import admit
from rlgpt.training.steps.candidates import admitted_predicates, candidate, coded_action, first_action

if TYPE_CHECKING:
    from rlgpt.training.ppo.trained import TrainedPolicy


@dataclass(frozen=True)
class Lead:
    prefix: tuple[PrefixItem, ...] = ()
    actions: tuple[CodedAction, ...] = ()
    """The code of those of the prefix that have some."""
    incumbent: TrainedPolicy | None = None
    waits_for: tuple[str, ...] = ()
    """Sub-actions that are left to RL and not learnt yet: there is no way to it before."""


def lead_to(runtime: SessionRuntime, history: History, item: Item) -> Lead:
    plan = history.plan
    assert plan is not None
    before = plan.steps_before(item)
    incumbent = _learnt(runtime, history) if any(i.mode == "rl" for i in before) else None
    learnt = [i.name for i in before if i.mode == "rl"]
    if item.trigger and learnt and incumbent is None:  # as far as code gets: it is needed there too
        before, learnt = before[: [i.mode for i in before].index("rl")], []
    if incumbent is None and learnt:
        return Lead(waits_for=tuple(learnt))
    acting = {i.name: a for i in before if i.mode == "code" and (a := history.acting(plan, i))}
    admitted = admitted_predicates(runtime, plan)
    prefix = [
        PrefixItem(i.done_when, first_action(acting[i.name]) if i.name in acting else None, i.name)
        for i in before
        if i.name in acting or (i.mode == "rl" and i.name in admitted)
    ]
    return Lead(tuple(prefix), tuple(coded_action(runtime, attempt) for attempt in acting.values()), incumbent)


def refused_predicate(runtime: SessionRuntime, item: Item) -> str:
    """Why an item's predicates cannot be tried, empty if they can."""
    for name, expression in (("done_when", item.done_when), ("trigger", item.trigger)):
        admission = admit(runtime, "done_when", expression) if expression or name == "done_when" else None
        if admission and not admission.admitted:
            return f"{name} was refused, rule {admission.rule}: {admission.message}"
    return ""


def _learnt(runtime: SessionRuntime, history: History) -> TrainedPolicy | None:
    best = warm_start_source(history)
    chosen = candidate(runtime, best) if best else None
    if chosen is None or not chosen.checkpoint:
        return None
    from rlgpt.training.ppo.trained import load_policy  # late: torch comes with it

    return load_policy(chosen.checkpoint, runtime.world)

"""Checks names and predicates of a proposed plan in the host before anything is coded or tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rlgpt.agents.contracts import FOLLOW_PLAN, PlanReply, SubActionReply
from rlgpt.store.history import Item
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.steps.admission import admit

MOST = 6
"""Mistakes told at once."""


def wrong_with(runtime: SessionRuntime, reply: PlanReply) -> str:
    """Every mistake, a clause each, for the plan's repair turn; empty if there is none."""
    clauses = [sentence for item in reply.sub_actions if (sentence := wrong_name(runtime, item))]
    return _some([*clauses, *_wrong_items(runtime, reply.sub_actions, reply.sub_actions)])


def wrong_with_edits(runtime: SessionRuntime, before: Sequence[Item], after: Sequence[Item]) -> str:
    """The same of an operator's edits: of what they changed, since nobody can mend the rest by them."""
    changed = [item for item in after if item not in before]
    named = {item.name for item in before}
    clauses = [sentence for item in changed if item.name not in named and (sentence := wrong_name(runtime, item))]
    return _some([*clauses, *_wrong_items(runtime, changed, after)])


def _wrong_items(
    runtime: SessionRuntime, new_items: Sequence[SubActionReply | Item], plan: Sequence[SubActionReply | Item]
) -> Iterator[str]:
    for item in new_items:
        for field, expression in (("done_when", item.done_when), ("trigger", item.trigger)):
            admission = admit(runtime, "done_when", expression) if expression or field == "done_when" else None
            if admission and not admission.admitted:
                why = f"rule {admission.rule}: {admission.message}"
                yield f"{field} of {item.name} ({expression!r}) is refused, {why}"
        if item.trigger and item.mode == "rl":
            yield f"{item.name} has a trigger, so it is a guard, and a guard is code"
        if item.mode == "option" and not item.trigger:
            yield f"{item.name} is an option, so it needs a trigger: its code is tried from where that holds"
    if all(item.trigger for item in plan):
        yield "no sub-action is a step; a plan needs one, whose trigger is empty"


def _some(clauses: Sequence[str]) -> str:
    more = f"; and {len(clauses) - MOST} more" if len(clauses) > MOST else ""
    return "; ".join(clauses[:MOST]) + more


def wrong_name(runtime: SessionRuntime, item: SubActionReply | Item) -> str:
    """Why no code can have this name: it is that of something that code calls. A primitive is yielded as a text, so
    its name is free."""
    if item.name in (FOLLOW_PLAN, "available"):
        return f"the name {item.name!r} is taken by the system; call the sub-action otherwise, a verb and its object"
    if admit(runtime, "done_when", f"{item.name} == 0").rule == "name":
        return ""  # the host knows nothing of that name: it is free
    return (
        f"the name {item.name!r} is taken by the library or the language, so that no code could be called so; call the "
        "sub-action otherwise, a verb and its object"
    )

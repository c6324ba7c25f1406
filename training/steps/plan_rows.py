"""Writes a plan revision: the plan row, its sub-actions, and whether it is active or waits for approval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlgpt.store import events, tables
from rlgpt.store.history import Item
from rlgpt.store.writer import Transaction
from rlgpt.training.session.runtime import SessionRuntime


def write_plan(
    runtime: SessionRuntime,
    tx: Transaction,
    iteration: int,
    sub_task: int,
    author: str,
    executor: str,
    rationale: str,
    items: Sequence[Item],
    *,
    depth: int = 0,
    attempted: Mapping[str, Any] | None = None,
) -> int:
    """Returns the new revision. In review mode a plan waits for approval; only what the operator has made of the plan
    in force holds at once."""
    revision = max(runtime.history.plans, default=0) + 1
    tx.add(
        tables.Plan(
            sub_task=sub_task,
            iteration=iteration,
            revision=revision,
            author=author,
            executor=executor,
            rationale=rationale,
            depth=depth,
            attempted=dict(attempted or {}),
        )
    )
    for position, item in enumerate(items):
        tx.add(
            tables.SubAction(
                revision=revision,
                position=position,
                name=item.name,
                mode=item.mode,
                goal=item.goal,
                reason=item.reason,
                done_when=item.done_when,
                max_steps=item.max_steps,
                pinned=item.pinned,
                author=item.author,
                trigger=item.trigger or None,
            )
        )
    if runtime.limits.review and not (author == "operator" and runtime.history.pending_plan is None):
        tx.event(events.PlanWaiting(revision))
    else:
        tx.event(events.PlanInForce(revision))
    return revision

"""Waiting for a person: approval of a plan, the end of a pause, a verdict. Costs no active time."""

from __future__ import annotations

import time

from rlgpt.agents import loop
from rlgpt.store import events
from rlgpt.training.session.budgets import over_budget
from rlgpt.training.session.runtime import SessionRuntime


def wait(runtime: SessionRuntime, step: loop.Wait) -> None:
    """Wait until the loop's next step is another one, or a review has lasted `review_timeout`."""
    what = {"approval": f"approval of plan revision {step.revision}", "paused": "paused"}.get(
        step.reason, f"your verdict on {step.item or 'the iteration'}"
    )
    runtime.slot.give_back()
    runtime.say_waiting(what)
    runtime.progress.phase(f"waiting for {what}")
    patience = runtime.settings.review_timeout
    began = time.monotonic()
    while loop.next_step(runtime.history, runtime.limits, over_budget(runtime)) == step:
        if step.reason == "approval" and patience and time.monotonic() - began > patience * 60:
            _run_out(runtime, step)
            return
        time.sleep(0.1)
        runtime.need_room()
        runtime.apply(runtime)


def _run_out(runtime: SessionRuntime, step: loop.Wait) -> None:
    with runtime.writer.transaction(durable=True) as tx:
        if runtime.settings.review_then == "continue":
            tx.event(events.PlanApproved(revision=step.revision, author="time-out"))
            tx.event(events.PlanInForce(step.revision))
        else:
            tx.event(events.StopRequested(author="time-out", now=False))

"""Waiting for a person: approval of a plan, the end of a pause, a verdict. Costs no active time."""

from __future__ import annotations

import time

from rlgpt.agents import loop
from rlgpt.training.budgets import over_budget
from rlgpt.training.live import Live


def wait(live: Live, step: loop.Wait) -> None:
    """Until the loop would say something else; a review may run out of patience (`review_timeout`)."""
    what = {"approval": f"approval of plan revision {step.revision}", "paused": "paused"}.get(
        step.reason, f"your verdict on {step.item or 'the iteration'}"
    )
    live.say_waiting(what)
    live.progress.phase(f"waiting for {what}")
    patience = live.settings.review_timeout
    began = time.monotonic()
    while loop.next_step(live.history, live.limits, over_budget(live)) == step:
        time.sleep(0.1)
        live.need_room()
        live.apply(live, False)
        if step.reason == "approval" and patience and time.monotonic() - began > patience * 60:
            _run_out(live, step)
            return


def _run_out(live: Live, step: loop.Wait) -> None:
    with live.writer.transaction(durable=True) as tx:
        if live.settings.review_then == "continue":
            tx.event("plan_approved", revision=step.revision, author="time-out")
            tx.event("plan_in_force", revision=step.revision)
        else:
            tx.event("stop_requested", author="time-out", now=False)

"""Finds answers that came too late: the operator changed the plan or the code while the model was asked."""

from __future__ import annotations

from rlgpt.agents import loop
from rlgpt.training.session.runtime import SessionRuntime


def outdated(runtime: SessionRuntime, step: loop.Step, item: str = "") -> bool:
    """Whether the loop would no longer ask what was answered for `step`, about the sub-action `item` where it is about
    one. Such an answer would undo what the operator did meanwhile; where the loop needs one it asks again, and the log
    tells."""
    history = runtime.history
    now: loop.Step | None = None
    if not item:
        now = loop.next_step(history, runtime.limits)
    elif history.plan and (edited := history.plan.item(item)):
        now = loop.item_step(history, edited, runtime.limits)
    if now == step:
        return False
    log_outdated(runtime, step)
    return True


def log_outdated(runtime: SessionRuntime, step: loop.Step) -> None:
    name = type(step).__name__
    runtime.log("info", "answer not used", step=name, sentence=f"the operator changed what {name} was asked about")

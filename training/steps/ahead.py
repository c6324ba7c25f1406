"""Questions of the inner loop that are asked before their turn (agents/ahead.py).

What happens to one sub-action changes nothing of what the others are asked about next: the first draft of their code,
or the critique of their last version and its repair. So these are asked while the loop is busy with the one before,
each up to the point where a trial must answer.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field, replace
from typing import cast

from rlgpt.agents import loop
from rlgpt.agents.client import Client
from rlgpt.agents.context import Context
from rlgpt.store.history import Item, fold
from rlgpt.store.row_types import VerdictRow
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.steps.coding import ask_critic, ask_fast, critique_row

Question = loop.Code | loop.JudgeItem


@dataclass
class Lookahead:
    """What has been asked ahead for the plan in force."""

    asked: set[Question] = field(default_factory=set)

    def look(self, runtime: SessionRuntime, step: loop.Step) -> None:
        """Before each step of the loop."""
        if isinstance(step, loop.Wait):
            return
        if not isinstance(step, loop.Code | loop.Trial | loop.JudgeItem):
            runtime.client.settle()
            self.asked.clear()
            return
        if runtime.client.missed():
            self.asked.clear()
        plan = runtime.history.plan
        following = [
            (item, question)
            for item in (plan.items if plan else ())
            if item.name != step.item
            and isinstance(question := loop.item_step(runtime.history, item, runtime.limits), Question)
            and question not in self.asked
        ]
        if not following or runtime.client.aside() is None:
            return
        context = replace(runtime.context(), history=runtime.history.copy())
        for item, question in following:
            self.asked.add(question)
            asking = (runtime.client.aside(), context, item, question)
            threading.Thread(target=_ask, args=asking, name=f"ahead {item.name}", daemon=True).start()


def _ask(client: Client, context: Context, item: Item, question: loop.Step | None) -> None:
    """Whatever goes wrong here is met again when its turn has come."""
    with contextlib.suppress(Exception):
        if isinstance(question, loop.JudgeItem):
            reply = ask_critic(client, context, item, question.version)
            context = replace(context, history=context.history.copy())
            verdict = critique_row(context.history, item, question.version, reply)
            row = verdict.model_dump() | {"seq": context.history.seq + 1}
            fold(context.history, "verdict", cast(VerdictRow, row))
            question = loop.item_step(context.history, item, context.limits)
        if isinstance(question, loop.Code):
            ask_fast(client, context, item, question.attempt)

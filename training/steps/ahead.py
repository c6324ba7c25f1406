"""Questions of the inner loop that are asked before their turn (agents/ahead.py).

What happens to one sub-action changes nothing of what the others are asked about next: the first drafts of their code,
or the critique of their last version and its repair; nor do the drafts of an attempt know of each other. So
these are asked while the loop is busy with the one before, each up to the point where a trial must answer.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from rlgpt.agents import loop
from rlgpt.agents.client import Client
from rlgpt.agents.context import Context
from rlgpt.store.history import Item, fold
from rlgpt.store.row_types import VerdictRow
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.steps.coding import ask_critic, ask_fast, critique_row
from rlgpt.training.steps.probing import with_probes

Question = loop.Code | loop.JudgeItem


@dataclass
class Lookahead:
    """What has been asked ahead for the plan in force."""

    asked: set[Question] = field(default_factory=set)

    def look(self, runtime: SessionRuntime, step: loop.Step) -> None:
        """Before each step of the loop."""
        if isinstance(step, loop.Wait):
            return
        if isinstance(step, loop.Done):
            runtime.client.leave()
        if not isinstance(step, loop.Code | loop.Trial | loop.JudgeItem):
            runtime.client.settle()
            self.asked.clear()
            return
        if runtime.client.missed():
            self.asked.clear()
        following = [
            (item, question)
            for item in (runtime.history.plan.items if runtime.history.plan else ())
            for question in _questions(runtime, step, item)
            if question not in self.asked
        ]
        if not following or runtime.client.aside() is None:
            return
        context = with_probes(runtime, runtime.context())
        for item, question in following:
            self.asked.add(question)
            most = runtime.limits.candidates if isinstance(question, loop.JudgeItem) else 1
            clients = [client for _ in range(most) if (client := runtime.client.aside())]
            _begin(_ask, clients, context, item, question)


def _questions(runtime: SessionRuntime, step: loop.Step, item: Item) -> list[Question]:
    """What is certain to be asked about a sub-action: its next question, and all drafts of an attempt."""
    its = step if item.name == getattr(step, "item", "") else loop.item_step(runtime.history, item, runtime.limits)
    if isinstance(its, loop.JudgeItem):
        return [its] if its is not step else []
    return [draft for draft in _drafts(its, runtime.limits) if draft is not step]


def _drafts(question: loop.Step | None, limits: loop.Limits) -> list[loop.Code]:
    """The drafts of its attempt, from this one on."""
    if not isinstance(question, loop.Code):
        return []
    later = range((question.draft or 1) + 1, limits.candidates + 1)
    return [question, *(replace(question, draft=draft) for draft in later)]


def _begin(ask: Callable[[list[Client], Context, Item, Question], None], *asking: Any) -> None:
    threading.Thread(target=ask, args=asking, name="ahead", daemon=True).start()


def _ask(clients: list[Client], context: Context, item: Item, question: Question) -> None:
    """Ask with one client for each draft. An error is ignored here: the question is asked again in its turn."""
    with contextlib.suppress(Exception):
        if isinstance(question, loop.Code):
            ask_fast(clients[0], context, item, question)
            return
        reply = ask_critic(clients[0], context, item, question.version)
        context = replace(context, history=context.history.copy())
        verdict = critique_row(context.history, item, question.version, reply)
        row = verdict.model_dump() | {"seq": context.history.seq + 1}
        fold(context.history, "verdict", cast(VerdictRow, row))
        drafts = _drafts(loop.item_step(context.history, item, context.limits), context.limits)
        for client, draft in zip(clients, drafts, strict=False):
            _begin(_ask, [client], context, item, draft)

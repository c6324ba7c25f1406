"""A scripted server and the client that asks it: what tests of the client begin with."""

from __future__ import annotations

import json
from typing import Any

from rlgpt.agents import critic, fast, planner, slow
from rlgpt.agents.backends import Outcome
from rlgpt.agents.charges import FREE, Charge
from rlgpt.agents.client import Client, make_client
from rlgpt.agents.context import Context
from rlgpt.agents.contracts import CodeReply
from tests.agents.chat_server import (
    ChatServer,
    Reply,
    completion,
)
from tests.agents.histories import Told, context
from tests.agents.toys import BREAD, Ledger, bakery

CODE = '{"source": "def dig(view):\\n    yield 0\\n", "note": "n"}'
ASKED = [{"role": "system", "content": "You write code."}, {"role": "user", "content": "Dig."}]


def settings(url: str, **more: Any) -> dict[str, Any]:
    usual = {"kind": "openai", "model": "m", "timeout": 60.0, "temperature": 0.0, "patience": 0.0, "stream": True}
    return usual | {"base_url": url} | more


class Asker:
    """A client against a scripted server, with what it was told and how long it waited."""

    def __init__(self, *script: Reply | str, environ: dict[str, str] | None = None, **llm: Any) -> None:
        self.server = ChatServer(lambda request: json.loads(completion(CODE).body), script)
        self.ledger, self.waits = Ledger(), list[float]()
        self.client: Client = make_client(
            settings(self.server.url, **llm), self.ledger, environ or {}, sleep=self.waits.append
        )

    def ask(self, **kwargs: Any) -> CodeReply:
        with self.server:
            return self.client.ask("fast", "write/dig", ASKED, CodeReply, **kwargs)


def outcomes_of(ledger: Ledger) -> Any:
    def recorded(step: str, request_hash: str | None) -> list[Outcome]:
        charged = iter(ledger.charged)
        return [
            Outcome("", row, Charge(*next(charged, FREE)))
            if state == "failed"
            else Outcome(row.reply, row.fault, Charge(row.tokens_in, row.tokens_out, row.cost))
            for state, call, row in ledger.rows
            if state in ("answered", "failed") and call.step == step and request_hash in (None, call.request_hash)
        ]

    return recorded


def chain(client: Client) -> list[Any]:
    """Task plan, plan, code, its critique, refinement, configuration, the iteration's critique."""
    told = Told(long_horizon=True)

    def there() -> Context:
        return context(told, bakery(), BREAD)

    replies: list[Any] = [planner.order(client, there())]
    told.tasks("make_bread").iteration()
    replies.append(plan := slow.plan(client, there()))
    told.plan(plan.executor, **{item.name: item.mode for item in plan.sub_actions})
    assert told.history.plan
    item = told.history.plan.items[1]
    replies.append(fast.write(client, there(), item, 1))
    told.code(item.name).trial(item.name, 1)
    trial = {"before": {"flour": 0}, "after": {"flour": 1}, "end": "return", "message": "", "yields": ["use"]}
    replies.append(critic.judge_item(client, there(), item, {"good": trial, "bad": None}))
    told.verdict(item.name)
    replies.append(slow.refine(client, there(), [item.name], True))
    replies.append(config := fast.configure(client, there()))
    told.config(**config.model_dump()).train().evaluate(4, run=1)
    replies.append(critic.judge_iteration(client, there(), 0))
    return replies

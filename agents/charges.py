"""What an exchange with a model may take at most, and what it took: tokens both ways, and USD where that is known."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import NamedTuple

from rlgpt.agents.completions import Completion
from rlgpt.agents.endpoint import Endpoint
from rlgpt.agents.journal import Call, text_hash
from rlgpt.agents.refusals import Counted, Failure, sent_cap


class Charge(NamedTuple):
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = 0.0
    """USD; None: unknown price."""


FREE = Charge()


@dataclass(frozen=True)
class Recorded(Completion):
    """One that a recorded session was charged for: a session that is answered from it counts the same."""

    charge: Charge = FREE

    @staticmethod
    def of(completion: Completion, charge: Charge) -> Recorded:
        parts = {part.name: getattr(completion, part.name) for part in fields(Completion)}
        return Recorded(**parts, charge=charge)


def new_call(role: str, step: str, endpoint: Endpoint, request: str, name: str, number: int) -> Call:
    """With its upper bounds: a token is at least one byte, so the bytes of the request bound its tokens from above."""
    most_in = 0 if endpoint.rule_based else len(request.encode())
    most_out = 0 if endpoint.rule_based else _cap(request, endpoint)
    return Call(
        id=text_hash(f"{step}/{name}/{number}"),
        step=step,
        role=role,
        model=endpoint.model,
        request=request,
        request_hash=name,
        try_number=number,
        reserved=endpoint.price.of(most_in, most_out) if endpoint.price else None,
        reserved_tokens=most_in + most_out,
        cost_told=endpoint.price is None and endpoint.tells_cost,
    )


def _cap(request: str, endpoint: Endpoint) -> int:
    """Tokens that the reply may have."""
    return sent_cap(json.loads(request)) or endpoint.max_tokens


def charged(call: Call, endpoint: Endpoint, completion: Completion) -> Charge:
    """Tokens as the server counts them, their upper bounds where it does not; USD as the server says, else by price."""
    if isinstance(completion, Recorded):
        return completion.charge
    tokens_in, tokens_out = completion.tokens_in, completion.tokens_out
    called = "".join(call.name + call.arguments for call in completion.calls)
    written = len((completion.content + completion.thought + called).encode())
    if written and not endpoint.rule_based:  # some servers fill in zeros where they count nothing
        tokens_in, tokens_out = tokens_in or None, tokens_out or None
    if tokens_in is None:
        tokens_in = 0 if endpoint.rule_based else len(call.request.encode())
    if tokens_out is None:
        tokens_out = min(written, _cap(call.request, endpoint))  # a token is at least one byte
    if completion.cost is not None and (endpoint.tells_cost or endpoint.price is None):
        return Charge(tokens_in, tokens_out, completion.cost)
    return Charge(
        tokens_in, tokens_out, endpoint.price.of(tokens_in, tokens_out, completion.cached) if endpoint.price else None
    )


def broken_off(call: Call, endpoint: Endpoint, failure: Failure) -> Charge:
    """What a reply cost that broke off or cannot be read: as the server counts it, else upper bounds. A reply that
    never began is free. Of a recorded one: what it was charged."""
    if failure.recorded:
        told = failure.counted
        return Charge(told.tokens_in or 0, told.tokens_out or 0, told.cost) if told else FREE
    if not (failure.received or failure.whole or failure.counted) or endpoint.rule_based:
        return FREE
    tokens_in = len(call.request.encode())
    cap = _cap(call.request, endpoint)
    most_out = cap if failure.whole else min(failure.received, cap)
    counted = failure.counted or Counted(None, None, None)
    tokens_in = tokens_in if counted.tokens_in is None else counted.tokens_in
    tokens_out = most_out if counted.tokens_out is None else counted.tokens_out
    if counted.cost is not None and (endpoint.tells_cost or endpoint.price is None):
        return Charge(tokens_in, tokens_out, counted.cost)
    return Charge(tokens_in, tokens_out, endpoint.price.of(tokens_in, tokens_out) if endpoint.price else None)

"""The record of every exchange with a model, as the client sees it; the worker writes it to the store.

Order of one exchange: `recorded` (a resumed step gets its old reply and nothing is sent), `reserve`, `sent`,
then exactly one of `answered` or `failed`. Retries, repair turns and requests without a rejected parameter are
exchanges of their own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


def canonical(request: Mapping[str, Any]) -> str:
    """The one JSON text of a request; the hash of it is the request's name."""
    return json.dumps(request, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def text_hash(text: str) -> str:
    """blake2b-16 hex of the utf-8, as texts are named in the store."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Call:
    id: str
    """Deterministic: a hash of step, request and try."""
    step: str
    """The step of the loop it belongs to, derived from the history."""
    role: str
    model: str
    request: str
    """Canonical JSON of the request, in the form of Chat Completions or of the Responses API; never a key."""
    request_hash: str
    try_number: int
    reserved: float | None
    """USD that it can cost at most; None: unknown price."""
    reserved_tokens: int
    """Tokens, both ways, that it can take at most."""
    cost_told: bool = False
    """Its price is unknown before, and its server says with the answer what it cost."""


class Held(NamedTuple):
    """What exchanges that no row tells of yet have taken, or may take."""

    tokens: int = 0
    cost: float = 0.0


NOTHING = Held()


@dataclass(frozen=True)
class Answer:
    reply: str
    """Canonical JSON of {content, finish_reason, refusal, model, usage}, and of {thought, calls} where there are any:
    what `Completion.load` reads."""
    tokens_in: int
    tokens_out: int
    cost: float | None
    """USD; None: unknown price."""
    seconds: float
    fault: str
    """Why the reply cannot be used (truncated, refusal, malformed JSON, wrong schema ...), empty if it can."""


class Journal(Protocol):
    def learnt(self) -> Sequence[tuple[str, str, str, str]]:
        """(role, step, error, request) of every exchange that ended, in order; no error for an answer of use."""

    def recorded(self, step: str, request_hash: str) -> tuple[str, str] | None:
        """`Answer.reply` and `Answer.fault` (its beginning) already recorded for this request of this step."""

    def reserve(self, call: Call, held: Held = NOTHING) -> None:
        """Raises BudgetReached when what the call may take does not fit what is left beside `held`."""

    def sent(self, call: Call) -> None: ...

    def answered(self, call: Call, answer: Answer) -> None: ...

    def failed(
        self, call: Call, error: str, seconds: float, charged: tuple[int, int, float | None] = (0, 0, 0.0)
    ) -> None:
        """No reply. `error` starts with a code and a colon (`429: ...`, `rejected temperature: ...`): see
        agents/refusals.py. `charged`: tokens in and out and USD of a reply that broke off."""

    # ---- what the model tries before it answers (agents/probes.py) ------------------------------------
    def probes_left(self, step: str) -> int:
        """Of the session's, before this step began."""

    def probed(self, step: str, request_hash: str, number: int) -> str | None:
        """What was told of the call of a tool with this number, in the answer to that request."""

    def add_probe(self, step: str, request_hash: str, number: int, tool: str, told: str, env_steps: int) -> None: ...

    # ---- a server that is away ----------------------------------------------------------------------
    def waiting(self, role: str, why: str) -> None:
        """A request of that role will be tried again, perhaps for hours."""

    def back(self) -> None:
        """A request was answered; the wait, if there was one, is over."""

    def given_up(self, role: str, why: str) -> None:
        """No further try will be made of this request."""

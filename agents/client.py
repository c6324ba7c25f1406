"""One question to a model, answered with a validated contract, whatever the server does on the way.

Asked with structured outputs; a server without them gets JSON mode with the schema in words, one without that the
words alone. A reply that cannot be used gets one repair turn; if that fails too, the question is put once more at
a higher temperature, because at 0 the same question has the same answer. Every exchange is journalled. A parameter
that the server refused once is not sent again, nor by a later client of the same journal.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import tenacity
from pydantic import BaseModel

from rlgpt import prompts
from rlgpt.agents.backends import Backend, Completion, Failure, OpenAIBackend, Outcome, ReplayBackend
from rlgpt.agents.endpoint import Endpoint, endpoints
from rlgpt.agents.errors import ModelUnavailable, NotRecorded, UselessReply
from rlgpt.agents.journal import Answer, Call, Journal, canonical, text_hash
from rlgpt.agents.rules.transport import RulesTransport
from rlgpt.agents.schema import parse, strict_schema

R = TypeVar("R", bound=BaseModel)
Message = dict[str, str]
"""{role: system | user | assistant, content}."""

WARM = 0.7
TRIES = 6
MOST_WAIT = 60.0
"""Seconds between two tries, also when the server asks for more."""
TOKENS_PER_MESSAGE = 16


@dataclass
class Dialect:
    """What one model at one URL has turned out to take."""

    formats: list[str] = field(default_factory=lambda: ["json_schema", "json_object", "words"])
    limits: list[str] = field(default_factory=lambda: ["max_tokens", "max_completion_tokens", ""])
    temperature: bool = True

    @staticmethod
    def expected(endpoint: Endpoint) -> Dialect:
        dialect = Dialect()
        if endpoint.azure or "//api.openai.com/" in endpoint.base_url:
            dialect.limits = ["max_completion_tokens", "max_tokens", ""]
        return dialect

    def drop(self, parameter: str) -> bool:
        """Stop sending it; False if it was not sent anyway."""
        ladder = self.formats if parameter == "response_format" else self.limits
        if parameter == "temperature":
            was, self.temperature = self.temperature, False
            return was
        if parameter in ("max_tokens", "max_completion_tokens") and self.limits[0] != parameter:
            return False
        if len(ladder) == 1:
            return False
        del ladder[0]
        return True

    def learn(self, parameter: str, request: Mapping[str, Any]) -> None:
        """Drop what was refused in an earlier life, if it would still be sent the same way."""
        sent = request.get(parameter)
        form = sent.get("type") if isinstance(sent, Mapping) else None
        if sent is not None and (parameter != "response_format" or form == self.formats[0]):
            self.drop(parameter)

    def request(
        self, endpoint: Endpoint, messages: Sequence[Message], temperature: float, contract: type[BaseModel]
    ) -> dict[str, Any]:
        schema = strict_schema(contract)
        request: dict[str, Any] = {"model": endpoint.model, "messages": list(messages)}
        if self.formats[0] == "json_schema":
            form = {"name": contract.__name__, "strict": True, "schema": schema}
            request["response_format"] = {"type": "json_schema", "json_schema": form}
        else:
            first, *others = request["messages"]
            words = prompts.render("schema", schema=schema)
            request["messages"] = [{**first, "content": f"{first['content']}\n\n{words}"}, *others]
            if self.formats[0] == "json_object":
                request["response_format"] = {"type": "json_object"}
        if self.limits[0]:
            request[self.limits[0]] = endpoint.max_tokens
        if self.temperature:
            request["temperature"] = temperature
        return request


class Client:
    def __init__(
        self,
        roles: Mapping[str, Endpoint],
        backend: Backend,
        journal: Journal,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`sleep` waits between tries (and may raise to give up); `clock` is in seconds."""
        self._roles, self._backend, self._journal = roles, backend, journal
        self._sleep, self._clock = sleep, clock
        self._dialects: dict[tuple[str, str], Dialect] = {}
        for role, parameter, request in journal.rejected():
            self._dialect(roles[role]).learn(parameter, json.loads(request))

    def _dialect(self, endpoint: Endpoint) -> Dialect:
        return self._dialects.setdefault((endpoint.base_url, endpoint.model), Dialect.expected(endpoint))

    def shows_scripts(self, role: str) -> bool:
        """Whether requests of this role may carry the world's script book."""
        return self._roles[role].rule_based

    def ask(
        self,
        role: str,
        step: str,
        messages: Sequence[Message],
        contract: type[R],
        useless: Callable[[R], str] = lambda reply: "",
    ) -> R:
        """The validated reply. `useless(reply)` says why a valid reply is of no use, empty if it is.

        Raises ModelUnavailable, UselessReply, NotRecorded, BudgetReached.
        """
        endpoint = self._roles[role]

        def read(completion: Completion) -> tuple[R | None, str]:
            return read_completion(completion, contract, useless)

        def put(messages: Sequence[Message], temperature: float) -> tuple[Completion, R | None, str]:
            completion = self._complete(role, step, endpoint, messages, temperature, contract, read)
            return completion, *read(completion)

        fault = ""
        for temperature in (endpoint.temperature, max(WARM, endpoint.temperature)):
            again: list[Message] = [_user("again", fault)] if fault else []
            completion, reply, fault = put([*messages, *again], temperature)
            if reply is None and not completion.refusal:
                mend: list[Message] = [{"role": "assistant", "content": completion.content}, _user("repair", fault)]
                completion, reply, fault = put([*messages, *again, *mend], temperature)
            if reply is not None:
                return reply
        raise UselessReply(f"The {role} agent's model {endpoint.model} gave no usable answer: {fault}.")

    # ---- one request, in the server's dialect, with retries ---------------------------------------
    def _complete(
        self,
        role: str,
        step: str,
        endpoint: Endpoint,
        messages: Sequence[Message],
        temperature: float,
        contract: type[R],
        read: Callable[[Completion], tuple[R | None, str]],
    ) -> Completion:
        dialect = self._dialect(endpoint)
        while True:
            request = canonical(dialect.request(endpoint, messages, temperature, contract))
            name = text_hash(request)
            recorded = self._journal.recorded(step, name)
            if recorded is not None:
                return Completion.load(recorded)
            try:
                for attempt in self._retrying():
                    with attempt:
                        number = attempt.retry_state.attempt_number
                        call = _call(role, step, endpoint, request, name, number)
                        return self._exchange(endpoint, call, read)
            except Failure as failure:
                if failure.rejected and dialect.drop(failure.rejected):
                    continue
                raise ModelUnavailable(_sentence(role, failure)) from failure

    def _retrying(self) -> tenacity.Retrying:
        return tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, Failure) and error.transient),
            wait=_wait,
            stop=tenacity.stop_after_attempt(TRIES),
            sleep=self._sleep,
            reraise=True,
        )

    def _exchange(
        self, endpoint: Endpoint, call: Call, read: Callable[[Completion], tuple[R | None, str]]
    ) -> Completion:
        self._journal.reserve(call)
        self._journal.sent(call)
        start = self._clock()
        try:
            completion = self._backend.complete(endpoint, call)
        except Failure as failure:
            self._journal.failed(call, str(failure), self._clock() - start)
            raise
        except Exception as error:
            self._journal.failed(call, f"error: {type(error).__name__}", self._clock() - start)
            raise
        seconds = self._clock() - start
        tokens_in, tokens_out = _charged(call, endpoint, completion)
        price = endpoint.price
        self._journal.answered(
            call,
            Answer(
                reply=completion.dump(),
                tokens_in=tokens_in,
                tokens_out=tokens_out,
                cost=price.of(tokens_in, tokens_out) if price else None,
                seconds=seconds,
                fault=read(completion)[1],
            ),
        )
        return completion


def read_completion(completion: Completion, contract: type[R], useless: Callable[[R], str]) -> tuple[R | None, str]:
    """(reply, "") or (None, why this completion cannot be used)."""
    if completion.refusal:
        return None, f"refusal: {completion.refusal[:300]}"
    if completion.finish_reason == "content_filter":
        return None, "refusal: the server's content filter withheld the reply"
    if completion.finish_reason == "length":
        return None, "truncated: the reply was cut off at the token limit; answer shorter"
    reply, fault = parse(completion.content, contract)
    if reply is not None and (sentence := useless(reply)):
        return None, f"useless: {sentence}"
    return reply, fault


def _user(template: str, fault: str) -> Message:
    return {"role": "user", "content": prompts.render(template, fault=fault)}


def _call(role: str, step: str, endpoint: Endpoint, request: str, name: str, number: int) -> Call:
    """A token is at least one byte, so the bytes of the request bound its tokens from above."""
    most_in = 0 if endpoint.rule_based else len(request.encode())
    most_out = 0 if endpoint.rule_based else endpoint.max_tokens
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
    )


def _charged(call: Call, endpoint: Endpoint, completion: Completion) -> tuple[int, int]:
    """Tokens as the server counts them; where it does not, their upper bounds."""
    tokens_in, tokens_out = completion.tokens_in, completion.tokens_out
    if tokens_in is None:
        tokens_in = 0 if endpoint.rule_based else len(call.request.encode())
    if tokens_out is None:
        tokens_out = len(completion.content.encode())
    return tokens_in, tokens_out


_backoff = tenacity.wait_exponential_jitter(initial=1.0, max=MOST_WAIT, jitter=1.0)


def _wait(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, Failure) and error.retry_after is not None:
        return min(error.retry_after, MOST_WAIT)
    return _backoff(state)


def _sentence(role: str, failure: Failure) -> str:
    tries = f" after {TRIES} tries" if failure.transient else ""
    cure = ""
    if failure.code in ("401", "403"):
        cure = " Check the key in the environment and that it may use this model."
    elif failure.code == "404":
        cure = " Check --base-url and --model."
    elif failure.code == "connection":
        cure = " Check --base-url and that the server runs."
    return f"The {role} agent got no answer{tries}: {failure.sentence}.{cure}"


def make_client(
    llm: Mapping[str, Any],
    journal: Journal,
    environ: Mapping[str, str],
    *,
    recorded: Callable[[str, str], Sequence[Outcome]] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Client:
    """The client that the `llm` part of the settings asks for. Raises MissingKey, NotRecorded.

    For kind `replay:ID`, the rest of `llm` is the recorded session's own, `llm["replayed"]` is its kind, and
    `recorded(step, request_hash)` says how its exchanges ended, in order.
    """
    kind = str(llm["kind"])
    if kind.startswith("replay:"):
        session = kind.removeprefix("replay:")
        if recorded is None:
            raise NotRecorded(f"There is no recorded session {session} to answer from.")
        free = endpoints({**llm, "kind": llm["replayed"]}, None)
        return Client(free, ReplayBackend(session, recorded), journal, sleep=sleep)
    transport = RulesTransport() if kind == "rules" else None
    return Client(endpoints(llm, environ), OpenAIBackend(transport), journal, sleep=sleep)

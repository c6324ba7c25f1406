"""One question to a model, answered with a validated contract, whatever the server does on the way.

Asked with structured outputs; a server without them gets JSON mode with the schema in words, one without that the
words alone. A reply that cannot be used gets one repair turn; if that fails too, the question is put once more at
a higher temperature, because at 0 the same question has the same answer. What a server refused is learnt from the
record (agents/dialect.py). A server that is away is waited for, for hours. Every exchange is journalled.
"""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import tenacity
from pydantic import BaseModel

from rlgpt import prompts
from rlgpt.agents.ahead import CANCELLED, Ahead, Aside
from rlgpt.agents.backends import DIED, Backend, OpenAIBackend, Outcomes, ReplayBackend
from rlgpt.agents.charges import broken_off, charged, new_call
from rlgpt.agents.completions import Completion, ToolCall
from rlgpt.agents.dialect import Dialect, Message
from rlgpt.agents.endpoint import Endpoint, endpoints
from rlgpt.agents.errors import ModelUnavailable, NotRecorded, UselessReply
from rlgpt.agents.journal import Answer, Call, Journal, canonical, text_hash
from rlgpt.agents.parsing import parse
from rlgpt.agents.probes import Probe, Tool, call_tool, with_results
from rlgpt.agents.refusals import Failure
from rlgpt.agents.rules.transport import RulesTransport
from rlgpt.agents.shortening import shortened
from rlgpt.agents.waiting import TRIES, seconds_to_wait, tries_in, unanswered
from rlgpt.store.live_calls import LiveCalls

R = TypeVar("R", bound=BaseModel)
Read = Callable[[Completion], tuple[R | None, str]]
"""What a completion says, or why it cannot be used; neither where it calls tools that were offered."""

WARM = 0.7
SOON = 3
"""Tries that fail in a row before the session says that it waits for the model."""
PAID = 4
"""Replies in a row that count as paid for and cannot be read, before a question is given up: as many as of those that
can be read and are of no use."""
CUT_OFF = ("length", "content_filter")
"""Ends of a reply after which what it calls is not whole."""
ENDED = ("stop", "eos", "eos_token", "end_turn", "stop_sequence")
"""Ends of a reply that its model meant."""
MOST_FAULT = 4_000
"""Characters of a fault that the model is told, which may quote what it wrote."""
OPTIONAL = ("critic",)
"""Roles whose word a session can do without."""


class Client:
    def __init__(
        self,
        roles: Mapping[str, Endpoint],
        backend: Backend,
        journal: Journal,
        *,
        patience: float = 12.0,
        tries: int | None = None,
        sleep: Callable[[float], None] | None = None,
        waits: Callable[[float], None] = lambda seconds: None,
        ahead: Ahead | None = None,
    ) -> None:
        """`patience`: hours that a server may be away, in place of which `tries` may stand. `sleep` waits between
        tries, and `waits` is told for how long. `ahead`: in front of `backend`, where questions
        may be asked before their turn."""
        self._roles, self._backend, self._journal, self._ahead = roles, ahead or backend, journal, ahead
        self._bell = threading.Event()
        self._sleep, self._waits = sleep or self._doze, waits
        self._most_tries = tries or tries_in(patience * 3600)
        self._dialects: dict[tuple[str, str], Dialect] = {}
        self._remembers = False
        self._refused: dict[str, str] = {}
        """Why a request of the step that a resumed session was in was refused by a server, or ended by the operator."""
        self.away: dict[str, str] = {}
        """Why a role's model is waited for, while it is."""

    def _remember(self, step: str) -> None:
        """Learn what the record tells, before the first question. What the exchanges of `step` tell is learnt when its
        questions are put again: its requests must be those that were answered."""
        for role, of_step, error, request in () if self._remembers else self._journal.learnt():
            endpoint, tree = self._roles[role], json.loads(request)
            model = endpoint.extra.get("model", endpoint.model)
            if tree.get("model", model) != model:  # before a fork: what another was refused says nothing of this one
                continue
            if of_step != step:
                self._dialect(endpoint).learn(error, tree)
            elif Failure.load(error).rejected or error.startswith(("tokens", f"{CANCELLED}: ")):
                self._refused[request] = error
        self._remembers = True

    def _dialect(self, endpoint: Endpoint) -> Dialect:
        name = (endpoint.base_url, endpoint.model)
        if name not in self._dialects:
            self._dialects[name] = Dialect.expected(endpoint)
        return self._dialects[name]

    def _doze(self, seconds: float) -> None:
        self._bell.wait(seconds)
        self._bell.clear()

    def try_now(self) -> None:
        """End the wait between two tries; from any thread."""
        self._bell.set()

    def aside(self) -> Client | None:
        """A client that asks before its turn: its answers wait until this one asks the same. None where calls are made
        one after the other, and while this client does not know yet what the record tells."""
        if self._ahead is None or not self._ahead.wide or not self._remembers:
            return None
        aside = Aside(self._ahead, self._journal)
        client = Client(self._roles, aside, aside, tries=1)
        client._dialects, client._remembers = copy.deepcopy(self._dialects), True
        return client

    def cancel(self, by: str) -> bool:
        """End the call whose answer is waited for; False if there is none. From any thread."""
        return self._ahead is not None and self._ahead.cancel(by)

    def leave(self) -> None:
        """Rows for what is under way when the session ends."""
        if self._ahead is not None:
            self._ahead.leave()

    def settle(self) -> None:
        """Rows for answers that were asked ahead and are not needed any more."""
        if self._ahead is not None:
            self._ahead.settle()

    def missed(self) -> bool:
        """Whether, since this was asked last, a question was another than the one that was asked ahead."""
        return self._ahead is not None and self._ahead.take_missed()

    def shows_scripts(self, role: str) -> bool:
        """Whether requests of this role may carry the world's script book."""
        return self._roles[role].rule_based

    @property
    def priced(self) -> bool:
        """Whether a budget in USD can hold: every role's price is known, or told by the server with each answer."""
        return all(endpoint.price is not None or endpoint.tells_cost for endpoint in self._roles.values())

    def ask(
        self,
        role: str,
        step: str,
        messages: Sequence[Message],
        contract: type[R],
        useless: Callable[[R], str] = lambda reply: "",
        warmth: float = 0.0,
        tools: Sequence[Tool] = (),
    ) -> R:
        """The validated reply. `useless(reply)` says why a valid reply is of no use, empty if it is. `warmth`: how far
        from the role's own temperature to 1. `tools`: what the model may call before it answers.

        Raises ModelUnavailable, UselessReply, NotRecorded, BudgetReached.
        """
        endpoint = self._roles[role]
        self._remember(step)

        nearest: list[R] = []

        def of_use(reply: R) -> str:
            nearest[:] = [reply]
            return useless(reply)

        def read(with_tools: bool, completion: Completion) -> tuple[R | None, str]:
            offered = [tool.name for tool in tools] if with_tools else []
            reply, fault = read_completion(completion, contract, of_use, offered)
            return reply, "" if with_tools and reply is None and _calls_tools(completion) else fault

        left = min(endpoint.probes, self._journal.probes_left(step)) if tools and endpoint.probes else 0

        def put(conversation: list[Message], temperature: float) -> tuple[Completion, R | None, str]:
            """The last message grows by what the model tries first, unless that is more than it can read."""
            nonlocal left
            question = conversation[-1]
            while True:
                offered = tools if left > 0 else ()
                try:
                    completion, name, with_tools = self._complete(
                        role, step, endpoint, conversation, temperature, contract, offered, read
                    )
                except ModelUnavailable as unavailable:
                    if conversation[-1] is question or not _too_long(unavailable):
                        raise
                    conversation[-1], left = question, 0
                    continue
                reply, fault = read(with_tools, completion)
                if reply is not None or fault:
                    return completion, reply, fault
                calls = completion.calls[:left]
                probes = [self._probe(step, name, number, call, tools) for number, call in enumerate(calls)]
                left -= len(calls)
                conversation[-1] = with_results(conversation[-1], completion, probes, left)

        fault = ""
        first = endpoint.temperature + round(warmth * max(0.0, 1.0 - endpoint.temperature), 2)
        for temperature in (first, max(WARM, first)):
            conversation = [*messages, *([_user("again", fault)] if fault else [])]
            completion, reply, fault = put(conversation, temperature)
            if reply is None and not completion.refusal:
                reply_text = completion.answer.strip() or "(nothing)"
                conversation += [{"role": "assistant", "content": reply_text}, _user("repair", fault)]
                try:
                    completion, reply, fault = put(conversation, temperature)
                except ModelUnavailable as unavailable:  # the bad reply is too long to be shown: asked afresh
                    if not _too_long(unavailable):
                        raise
            if reply is not None:
                return reply
        sentence = f"The {role} agent's model {endpoint.model} gave no usable answer: {fault.rstrip('.')}."
        raise UselessReply(sentence, nearest[0] if nearest else None)

    def _probe(self, step: str, request_hash: str, number: int, call: ToolCall, tools: Sequence[Tool]) -> Probe:
        """Run once; what the record holds is told again."""
        recorded = self._journal.probed(step, request_hash, number)
        if recorded is not None:
            return Probe(recorded)
        probe = call_tool(tools, call)
        self._journal.add_probe(step, request_hash, number, call.name[:60], probe.told, probe.env_steps)
        return probe

    # ---- one request, in the server's dialect, with retries ---------------------------------------
    def _complete(
        self,
        role: str,
        step: str,
        endpoint: Endpoint,
        messages: Sequence[Message],
        temperature: float,
        contract: type[R],
        tools: Sequence[Tool],
        read_any: Callable[[bool, Completion], tuple[R | None, str]],
    ) -> tuple[Completion, str, bool]:
        """The completion, the hash of its request, and whether that offered the tools."""
        dialect = self._dialect(endpoint)

        def request_in_its_form() -> dict[str, Any]:
            return dialect.request(endpoint, messages, temperature, contract, [tool.spec for tool in tools])

        while True:
            tree = request_in_its_form()
            with_tools = bool(tools) and "tools" in tree
            read = partial(read_any, with_tools)
            request = canonical(tree)
            name = text_hash(request)
            recorded = self._journal.recorded(step, name)
            if recorded is not None:
                completion = Completion.load(*recorded)
                dialect.learn(read(completion)[1], tree)
                return completion, name, with_tools
            if (refused := self._refused.pop(request, "")) and dialect.learn(refused, tree):
                continue
            if refused.startswith(CANCELLED):  # by the operator, before a restart: it is not put again
                sentence = Failure.load(refused).sentence
                return Completion("", "content_filter", sentence, endpoint.model, 0, 0), name, False
            before: list[Failure] = []
            try:
                for attempt in self._retrying(role, before):
                    with attempt:
                        number = attempt.retry_state.attempt_number
                        call = new_call(role, step, endpoint, request, name, number)
                        completion = self._exchange(endpoint, call, read, partial(_judged, dialect, tree, before))
            except Failure as failure:
                if dialect.learn(str(failure), tree) and canonical(request_in_its_form()) != request:
                    continue
                if failure.code in ("filtered", CANCELLED):
                    return Completion("", "content_filter", failure.sentence, endpoint.model, 0, 0), name, False
                self.away.pop(role, None)
                self._journal.given_up(role, failure.sentence)
                raise ModelUnavailable(unanswered(role, failure, len(before))) from failure
            dialect.learn(read(completion)[1], tree)
            self.away.pop(role, None)
            self._journal.back()
            return completion, name, with_tools

    def _retrying(self, role: str, before: Sequence[Failure]) -> tenacity.Retrying:
        """`before`: how the tries have failed so far."""

        def is_over(state: tenacity.RetryCallState) -> bool:
            failure = state.outcome.exception() if state.outcome else None
            if isinstance(failure, Failure) and failure.again:  # by a worker that counted its tries anew
                return False
            paid = [failure.code == "unreadable" for failure in before[-PAID:]]
            return state.attempt_number >= most or (len(paid) == PAID and all(paid))

        def tell(state: tenacity.RetryCallState) -> None:
            failure = state.outcome.exception() if state.outcome else None
            self._waits(state.upcoming_sleep)
            if not isinstance(failure, Failure):
                return
            if state.attempt_number >= SOON or failure.is_long or failure.code in ("timeout", "quota"):
                self.away[role] = failure.sentence
                self._journal.waiting(role, failure.sentence)

        most = min(TRIES, self._most_tries) if role in OPTIONAL else self._most_tries
        return tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, Failure) and error.transient),
            wait=seconds_to_wait,
            stop=is_over,
            before_sleep=tell,
            sleep=self._sleep,
            reraise=True,
        )

    def _exchange(
        self,
        endpoint: Endpoint,
        call: Call,
        read: Read[R],
        judged: Callable[[Failure], Failure],
    ) -> Completion:
        if self._ahead is None:
            self._journal.reserve(call)
            return self._send(endpoint, call, read, judged)
        self._ahead.reserve(call)
        try:
            return self._send(endpoint, call, read, judged)
        finally:
            self._ahead.release()

    def _send(
        self,
        endpoint: Endpoint,
        call: Call,
        read: Read[R],
        judged: Callable[[Failure], Failure],
    ) -> Completion:
        self._journal.sent(call)
        start = time.monotonic()
        try:
            completion = self._backend.complete(endpoint, call)
        except Failure as failure:
            verdict = judged(failure)
            self._journal.failed(call, str(verdict), time.monotonic() - start, broken_off(call, endpoint, verdict))
            raise verdict from failure
        except Exception as error:
            self._journal.failed(call, f"{DIED}{type(error).__name__}", time.monotonic() - start)
            raise
        seconds = completion.seconds or time.monotonic() - start
        tokens_in, tokens_out, cost = charged(call, endpoint, completion)
        self._journal.answered(
            call,
            Answer(
                reply=completion.dump(),
                tokens_in=tokens_in,
                tokens_out=tokens_out,
                cost=cost,
                seconds=seconds,
                fault=read(completion)[1],
            ),
        )
        return completion


_USELESS = "useless: "


def _judged(dialect: Dialect, request: Mapping[str, Any], before: list[Failure], failure: Failure) -> Failure:
    """The failure, or the suspicion that it is about one of the request's parameters.

    A refusal that names nothing raises it at once; a server's own error (500, 501) when it comes a second time in the
    same words from a server that has never answered: llama-cpp-python refuses a format that way. A web page is the
    wrong address, unless a completion came from there before.
    """
    if failure.code == "page" and not dialect.answers:
        return failure.called("404")
    same = bool(before) and before[-1].sentence == failure.sentence
    before.append(failure)
    if failure.unsure and dialect.answers and not same:
        return failure.called("malformed")
    if failure.code in ("400", "405", "406", "413", "415", "422"):
        is_suspect = True
    else:
        is_suspect = failure.code in ("500", "501", "malformed") and same and not dialect.answers
    if not is_suspect or not (parameter := dialect.suspect(request)):
        return failure
    return failure.called(f"suspected {parameter}")


def read_completion(
    completion: Completion, contract: type[R], useless: Callable[[R], str], offered: Collection[str] = ()
) -> tuple[R | None, str]:
    """(reply, "") or (None, why this completion cannot be used). What was of no use when it was answered stays so.
    `offered`: names of the tools that it might call."""
    reply, fault = _parsed(completion, contract, offered)
    if reply is not None and (not completion.fault or completion.fault.startswith(_USELESS)):
        sentence = useless(reply)
        fault = f"{_USELESS}{sentence}" if sentence else ""
    if not fault.startswith(completion.fault):  # a row keeps its beginning
        fault = completion.fault
    return (None, fault) if fault else (reply, "")


def _parsed(completion: Completion, contract: type[R], offered: Collection[str]) -> tuple[R | None, str]:
    if completion.refusal:
        return None, f"refusal: {completion.refusal[:300]}"
    if completion.finish_reason == "content_filter":
        return None, "refusal: the server's content filter withheld the reply"
    # What a tool is called with, or a draft before the cut, may look like an answer that lacks its explanation.
    forgiving = not completion.calls and completion.finish_reason not in CUT_OFF
    faults: list[str] = []
    for text in completion.answers(offered):
        reply, fault = parse(text, contract, forgiving, completion.finish_reason in ENDED)
        if reply is not None:
            return reply, ""
        faults.append(fault)
    if completion.finish_reason == "length":
        return None, "truncated: the reply was cut off at the token limit; answer shorter"
    return None, faults[0]


def _calls_tools(completion: Completion) -> bool:
    """Whether it is no answer yet: a call that was cut off, or withheld, is none."""
    return bool(completion.calls) and not completion.refusal and completion.finish_reason not in CUT_OFF


def _too_long(unavailable: ModelUnavailable) -> bool:
    failure = unavailable.__cause__
    return isinstance(failure, Failure) and failure.code.startswith("tokens")


def _user(template: str, fault: str) -> Message:
    return {"role": "user", "content": prompts.render(template, fault=shortened(fault, MOST_FAULT))}


def make_client(
    llm: Mapping[str, Any],
    journal: Journal,
    environ: Mapping[str, str],
    *,
    recorded: Outcomes | None = None,
    had: Outcomes = lambda step, name: (),
    sleep: Callable[[float], None] | None = None,
    waits: Callable[[float], None] = lambda seconds: None,
    folder: Path | None = None,
    live: LiveCalls | None = None,
) -> Client:
    """The client that the `llm` part of the settings asks for. Raises MissingKey, Unclear, NotRecorded.

    For kind `replay:ID`, the rest of `llm` is the recorded session's own, `llm["replayed"]` is its kind,
    `llm["reworded"]` whether its requests had other words than ours, and `recorded(step, request_hash)` says how its
    exchanges ended, in order; `had` says it of the session's own. `waits(seconds)` is told of each wait between two
    tries. `folder`: where answers are kept that were asked before their turn. `live` is told what is under way.
    """
    kind = str(llm["kind"])
    patience = float(llm.get("patience", 12.0))
    if kind.startswith("replay:"):
        session = kind.removeprefix("replay:")
        if recorded is None:
            raise NotRecorded(f"There is no recorded session {session} to answer from.")
        keyless = endpoints({**llm, "kind": llm["replayed"]}, None)
        replayed = ReplayBackend(session, recorded, bool(llm.get("reworded")), had)
        return Client(keyless, replayed, journal, patience=patience, sleep=sleep)
    transport = RulesTransport() if kind == "rules" else None
    backend, roles = OpenAIBackend(transport), endpoints(llm, environ)
    ahead = Ahead(backend, journal, roles, folder, live) if kind == "openai" else None
    return Client(roles, backend, journal, patience=patience, sleep=sleep, waits=waits, ahead=ahead)

"""Answers that were asked for before their turn, by requests that run beside the loop.

The loop asks one question after the other. Some of them are certain to come whatever happens before, such as the first
draft of every sub-action of a plan. Those are asked together, each by a client of its own (`Aside`); what comes, an
answer or a failure, waits here until the session's client sends the very same request of the same step, and only then
becomes rows. So the rows are those of a session that asks one question after the other, whatever arrives first. A
request that turns out to be another by its turn is sent as usual; the answer that nobody needs is a row as well.

Answers that have no row yet are kept in a file too: a killed worker does not pay for them again.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import fsum
from pathlib import Path

from rlgpt.agents.backends import LEFT, Backend, Hear, unheard
from rlgpt.agents.charges import Charge, broken_off, charged
from rlgpt.agents.completions import Completion, octets
from rlgpt.agents.endpoint import Endpoint
from rlgpt.agents.errors import AgentError, BudgetReached
from rlgpt.agents.journal import NOTHING, Answer, Call, Held, Journal
from rlgpt.agents.refusals import Failure
from rlgpt.store.live_calls import LiveCall, LiveCalls

FILE = "answers.part"


CANCELLED = "cancelled"
"""The code of an exchange that the operator ended."""


class NotNeeded(AgentError):
    """The loop asks this question itself by now."""


class _Cancelled(Exception):
    """Leaves an exchange whose end was told already."""


@dataclass
class Exchange:
    """One request on its way, in a thread of its own."""

    endpoint: Endpoint
    call: Call
    result: Completion | Failure | None = None
    """None while it is under way, and when it ended in neither."""
    seconds: float = 0.0
    error: Exception | None = None
    """What else it died of."""
    received: int = 0
    """Characters so far."""
    received_bytes: int = 0
    """Bytes of them."""
    over: threading.Event = field(default_factory=threading.Event)
    own: bool = False
    """Sent by the session's client in its turn."""
    is_told: bool = False
    """Its turn has come, so a row says that it was sent."""
    since: float = field(default_factory=time.monotonic)

    @property
    def charge(self) -> Charge:
        if isinstance(self.result, Completion):
            return charged(self.call, self.endpoint, self.result)
        return broken_off(self.call, self.endpoint, self.result) if self.result else Charge()

    @property
    def held(self) -> Held:
        if not self.over.is_set():
            return Held(self.call.reserved_tokens, self.call.reserved or 0.0)
        tokens_in, tokens_out, cost = self.charge
        return Held(tokens_in + tokens_out, cost or 0.0)


class Ahead:
    """The backend of the session's client, in front of the one that reaches the servers."""

    def __init__(
        self,
        backend: Backend,
        journal: Journal,
        roles: Mapping[str, Endpoint],
        folder: Path | None = None,
        live: LiveCalls | None = None,
    ) -> None:
        """`folder`: where answers that wait are kept. `live` is told what is under way."""
        self._backend, self._journal, self._roles, self._live = backend, journal, roles, live
        self._file = folder / FILE if folder else None
        self._lock = threading.RLock()
        self._exchanges: dict[tuple[str, str], Exchange] = {}
        self._reached_steps: set[str] = set()
        """Steps that the session's client has come to."""
        self._own = NOTHING
        """What the call of the session's client may take until its row is written."""
        self._awaited: Exchange | None = None
        """Whose answer the session's client waits for, or waited for last."""
        # Of two roles at one server each keeps its own limit: one that is asked in its turn only leaves no room.
        self._room = {(e.base_url, e.parallel): threading.Semaphore(max(0, e.parallel - 1)) for e in roles.values()}
        self.wide = any(endpoint.parallel > 1 for endpoint in roles.values())
        """Whether calls may be made side by side."""
        self._had_miss = False
        self._left = False
        """Whether the session is over here, so that nobody waits for an answer any more."""
        self._load()

    # ---- for the session's client -----------------------------------------------------------------
    def complete(self, endpoint: Endpoint, call: Call, hear: Hear = unheard) -> Completion:
        """What was asked ahead, once; else the server's answer. Raises Failure."""
        with self._lock:
            self._reached_steps.add(call.step)
            asked_ahead = any(step == call.step for step, _ in self._exchanges)
            exchange = self._exchanges.get((call.step, call.request_hash))
            self._had_miss = self._had_miss or (asked_ahead and exchange is None)
        if exchange is not None:
            exchange.is_told = True
            self._wait_for(exchange)
            with self._lock:
                self._exchanges.pop((call.step, call.request_hash), None)
        if exchange is None or exchange.result is None:
            exchange = Exchange(endpoint, call, own=True, is_told=True)
            threading.Thread(target=self._run, args=(exchange, False), name="llm-exchange", daemon=True).start()
            self._wait_for(exchange)
        return _result(exchange)

    def _wait_for(self, exchange: Exchange) -> None:
        self._awaited = exchange
        exchange.over.wait()
        while self._left:  # the process ends with this thread in here: the row is written
            time.sleep(1.0)

    def leave(self) -> None:
        """The session ends here. Who answers a call that is under way has read its prompt and may have to be paid, so
        each is told of in a row with what it may have taken: here, or as one that is not needed, by `settle`."""
        with self._lock:
            self._left = True
            under_way = {id(e): e for e in (*self._exchanges.values(), self._awaited) if e and not e.over.is_set()}
            for exchange in under_way.values():
                sentence = f"the session was stopped after {exchange.received} characters"
                exchange.result = Failure(LEFT, sentence, received=max(1, exchange.received_bytes))
                exchange.seconds = time.monotonic() - exchange.since
                if exchange.is_told:
                    self._exchanges.pop((exchange.call.step, exchange.call.request_hash), None)
                    self._journal.failed(exchange.call, str(exchange.result), exchange.seconds, exchange.charge)
                exchange.over.set()
                if self._live:
                    self._live.ended(exchange.call.id)

    def cancel(self, by: str) -> bool:
        """End the exchange that the session's client waits for; False if there is none. The server is told with the
        next piece that it sends."""
        with self._lock:
            exchange = self._awaited
            if exchange is None or exchange.over.is_set():
                return False
            sentence = f"cancelled by {by} after {exchange.received} characters"
            # At least one: its prompt was read.
            exchange.result = Failure(CANCELLED, sentence, received=max(1, exchange.received_bytes))
            exchange.over.set()
        if self._live:
            self._live.ended(exchange.call.id)
        return True

    def reserve(self, call: Call) -> None:
        """Raises BudgetReached when a call of the session's client does not fit beside what was sent ahead."""
        while (under_way := self._reserve_own(call)) is not None:
            self._wait_for(under_way)  # it may take less than was reserved for it; the operator may end it

    def release(self) -> None:
        """The row of the session's client's call is written."""
        self._own = NOTHING

    def _reserve_own(self, call: Call) -> Exchange | None:
        """None where it fits, else an exchange to wait for. It counts from now on, also while it waits: what is asked
        ahead meanwhile must leave room for it, or the session would end by what others may take.

        Raises BudgetReached."""
        with self._lock:
            self._own = NOTHING
            try:
                self._journal.reserve(call, self._held(call))
                under_way = None
            except BudgetReached:
                under_way = next((e for e in self._exchanges.values() if not e.over.is_set()), None)
                if under_way is None:
                    raise
            self._own = Held(call.reserved_tokens, call.reserved or 0.0)
            return under_way

    def take_missed(self) -> bool:
        """Whether, since this was asked last, a question was another by its turn: others may be too."""
        with self._lock:
            had_miss, self._had_miss = self._had_miss, False
            return had_miss

    def settle(self) -> None:
        """Rows for what was asked ahead and is not needed any more. What is still under way stays for the next time; so
        does an answer that a killed worker was judging, because its question comes with the step that begins now."""
        with self._lock:
            over = {key: e for key, e in self._exchanges.items() if e.over.is_set() and not e.own}
            for exchange in self._exchanges.values():
                exchange.own = False
            for key, exchange in sorted(over.items(), key=lambda item: item[0]):  # not in the order they were sent in
                if (cost := exchange.charge) != Charge():
                    self._tell_unused(exchange, cost)
                del self._exchanges[key]
            if not self._exchanges and self._file:
                self._file.unlink(missing_ok=True)

    def _tell_unused(self, exchange: Exchange, cost: Charge) -> None:
        why = "unused: it was asked ahead, and by its turn the question was another or not asked"
        self._journal.sent(exchange.call)
        if isinstance(exchange.result, Completion):
            answer = Answer(exchange.result.dump(), *cost, seconds=exchange.seconds, fault=why)
            self._journal.answered(exchange.call, answer)
        else:
            self._journal.failed(exchange.call, f"{why} ({exchange.result})", exchange.seconds, cost)

    # ---- for clients that ask ahead ---------------------------------------------------------------
    def ask(self, endpoint: Endpoint, call: Call) -> Completion:
        """Raises Failure, BudgetReached, NotNeeded."""
        if endpoint.parallel < 2:
            raise NotNeeded(call.step)
        exchange = self._exchanges.get((call.step, call.request_hash))
        if exchange is None:
            with self._room[endpoint.base_url, endpoint.parallel]:
                exchange = self._send(endpoint, call)
        exchange.over.wait()
        return _result(exchange)

    def _send(self, endpoint: Endpoint, call: Call) -> Exchange:
        with self._lock:
            if call.step in self._reached_steps:
                raise NotNeeded(call.step)
            self._journal.reserve(call, self._held(call))
            exchange = self._exchanges[call.step, call.request_hash] = Exchange(endpoint, call)
        self._run(exchange, True)
        return exchange

    def _run(self, exchange: Exchange, ahead: bool) -> None:
        """To its end, whatever that is; one that was cancelled has had its end."""
        call, live = exchange.call, self._live

        def hear(thought: str, content: str) -> None:
            if exchange.over.is_set():
                raise _Cancelled
            exchange.received += len(thought) + len(content)
            exchange.received_bytes += octets(thought) + octets(content)
            if live:
                live.heard(call.id, thought, content)

        if live:
            live.began(_live(call, ahead))
        result: Completion | Failure | None = None
        start = time.monotonic()
        try:
            result = self._backend.complete(exchange.endpoint, call, hear)
        except Failure as failure:
            result = failure
        except _Cancelled:
            pass
        except Exception as error:
            exchange.error = error
        finally:
            with self._lock:
                if not exchange.over.is_set():
                    exchange.result, exchange.seconds = result, time.monotonic() - start
                    self._keep(exchange)  # its row is written when it has been judged, which may take long
                    exchange.over.set()
            if live:
                live.ended(call.id)

    def _held(self, call: Call) -> Held:
        """By all others than this one."""
        with self._lock:
            others = [e.held for key, e in self._exchanges.items() if key != (call.step, call.request_hash)]
            others.append(self._own)
        return Held(sum(h.tokens for h in others), fsum(h.cost for h in others))

    # ---- the file -----------------------------------------------------------------------------------
    def _keep(self, exchange: Exchange) -> None:
        """On the disk before anybody reads it. A disk that cannot take it only costs what a kill would pay again."""
        if self._file is None or not isinstance(exchange.result, Completion):
            return
        line = {"call": asdict(exchange.call), "reply": exchange.result.dump(), "seconds": exchange.seconds}
        line["own"] = exchange.own
        with contextlib.suppress(OSError), self._lock, self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _load(self) -> None:
        """What a worker before this one was answered and did not come to; half a line counts as nothing, and is ended
        so that the next answer has a line of its own."""
        if self._file is None or not self._file.exists():
            return
        text = self._file.read_text("utf-8", errors="replace")
        if text and not text.endswith("\n"):
            with contextlib.suppress(OSError), self._file.open("a", encoding="utf-8") as file:
                file.write("\n")
        for line in text.splitlines():
            try:
                answer = json.loads(line)
                call, reply = Call(**answer["call"]), Completion.load(answer["reply"])
                exchange = Exchange(self._roles[call.role], call, reply, float(answer["seconds"]))
                exchange.own = answer.get("own") is True
            except (ValueError, TypeError, LookupError):
                continue
            if self._journal.recorded(call.step, call.request_hash) is None:
                exchange.over.set()
                self._exchanges[call.step, call.request_hash] = exchange


def _live(call: Call, ahead: bool) -> LiveCall:
    return LiveCall(call.id, call.step, call.role, call.model, call.try_number, ahead, time.time())


def _result(exchange: Exchange) -> Completion:
    result = exchange.result
    if isinstance(result, Failure):  # a copy: two threads may raise it
        raise result.called(result.code)
    if result is None:
        raise exchange.error or NotNeeded("its turn has come")
    return replace(result, seconds=exchange.seconds)


class Aside:
    """Backend and journal of a client that asks ahead: it writes no row, and waits for no server that is away."""

    def __init__(self, ahead: Ahead, journal: Journal) -> None:
        self._ahead, self._journal = ahead, journal

    def complete(self, endpoint: Endpoint, call: Call, hear: Hear = unheard) -> Completion:
        """Raises Failure, BudgetReached, NotNeeded."""
        return self._ahead.ask(endpoint, call)

    def recorded(self, step: str, request_hash: str) -> tuple[str, str] | None:
        return self._journal.recorded(step, request_hash)

    def learnt(self) -> Sequence[tuple[str, str, str, str]]:
        return ()

    def probes_left(self, step: str) -> int:
        return self._journal.probes_left(step)

    def probed(self, step: str, request_hash: str, number: int) -> str | None:
        """A probe is run in its turn, where the sub-actions before it stand as they will; what was answered until
        then waits. Raises NotNeeded."""
        raise NotNeeded(step)

    def add_probe(self, step: str, request_hash: str, number: int, tool: str, told: str, env_steps: int) -> None:
        pass

    def reserve(self, call: Call, held: Held = NOTHING) -> None:
        """`Ahead` does, in one step with the sending."""

    def sent(self, call: Call) -> None:
        pass

    def answered(self, call: Call, answer: Answer) -> None:
        pass

    def failed(
        self, call: Call, error: str, seconds: float, charged: tuple[int, int, float | None] = (0, 0, 0.0)
    ) -> None:
        pass

    def waiting(self, role: str, why: str) -> None:
        pass

    def back(self) -> None:
        pass

    def given_up(self, role: str, why: str) -> None:
        pass

"""Questions asked before their turn: the same rows as one after the other, whatever arrives first."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlgpt.agents.client import Client, make_client
from rlgpt.agents.contracts import CodeReply
from rlgpt.agents.errors import AgentError, BudgetReached, UselessReply
from rlgpt.agents.journal import NOTHING, Answer, Call, Held
from rlgpt.store import live_calls
from rlgpt.store.live_calls import LiveCall, LiveCalls
from rlgpt.store.progress import Progress
from tests.agents.asker import outcomes_of
from tests.agents.chat_server import DONE, ChatServer, Reply, completion, event, rate_limited, rejects
from tests.agents.toys import Ledger
from tests.patience import PATIENCE

NAMES = ("first", "second", "third", "fourth")


def asked(name: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": "You write code."}, {"role": "user", "content": name}]


def code(name: str) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(completion(json.dumps({"source": f"# {name}", "note": ""})).body)
    return tree


def name_of(request: dict[str, Any]) -> str:
    return next(m["content"] for m in request["messages"] if m["role"] == "user").split()[0]


def client_of(
    server: ChatServer, ledger: Ledger, folder: Path | None = None, live: LiveCalls | None = None, **more: Any
) -> Client:
    llm = {"kind": "openai", "model": "m", "base_url": server.url, "parallel": 8, "price_in": 1, "price_out": 1}
    client = make_client(llm | more, ledger, {}, sleep=lambda s: None, folder=folder, live=live)
    client.ask("slow", "plan", asked("plan"), CodeReply)  # from then on it knows the server
    return client


def ask_ahead(client: Client, *names: str) -> list[threading.Thread]:
    """Each by a client of its own, in a thread, in this order."""

    def ask(name: str) -> None:
        aside = client.aside()
        assert aside is not None
        with contextlib.suppress(AgentError):
            aside.ask("fast", name, asked(name), CodeReply)

    threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    return threads


def take(client: Client, *names: str) -> list[str]:
    return [client.ask("fast", name, asked(name), CodeReply).source for name in names]


def rows(ledger: Ledger) -> list[tuple[str, str, str]]:
    """What became of each request, in the order of the rows."""
    return [
        (state, call.step, row.fault if isinstance(row, Answer) else str(row))
        for state, call, row in ledger.rows
        if state != "reserved"
    ]


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20 * PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_answers_that_arrive_in_any_order_make_the_rows_of_one_after_the_other() -> None:
    told: dict[bool, Any] = {}
    for ahead in (False, True):
        arrived: list[str] = []
        gates = {name: threading.Event() for name in NAMES}

        def answer(
            request: dict[str, Any],
            arrived: list[str] = arrived,
            gates: dict[str, threading.Event] = gates,
            ahead: bool = ahead,
        ) -> dict[str, Any]:
            name = name_of(request)
            arrived.append(name)
            if ahead and name != "plan":
                assert gates[name].wait(20 * PATIENCE)
            return code(name)

        ledger = Ledger()
        with ChatServer(answer) as server:
            client = client_of(server, ledger)
            if ahead:
                threads = ask_ahead(client, *NAMES)
                until(lambda arrived=arrived: len(arrived) == 5)  # all of them are under way at once
                for name, thread in reversed(list(zip(NAMES, threads, strict=True))):
                    gates[name].set()
                    thread.join(20 * PATIENCE)
            sources = take(client, *NAMES)
            told[ahead] = (sources, rows(ledger), [call.request for state, call, _ in ledger.rows if state == "sent"])
            assert len(server.requests) == 5
    assert told[True] == told[False]


def test_a_question_is_sent_once_whoever_comes_to_it_first() -> None:
    gate = threading.Event()

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        assert name_of(request) == "plan" or gate.wait(20 * PATIENCE)
        return code(name_of(request))

    with ChatServer(answer) as server:
        client = client_of(server, ledger := Ledger(), parallel=2)  # so that only one goes ahead at a time
        threads = ask_ahead(client, "first", "second")
        until(lambda: len(server.requests) == 2)
        threading.Timer(0.2, gate.set).start()
        assert take(client, "second", "first") == ["# second", "# first"]
        for thread in threads:
            thread.join(20 * PATIENCE)
        assert sorted(map(name_of, server.requests)) == ["first", "plan", "second"]
    assert [row[1] for row in rows(ledger) if row[0] == "answered"] == ["plan", "second", "first"]


def test_a_killed_worker_does_not_pay_again_for_what_had_arrived(tmp_path: Path) -> None:
    with ChatServer(lambda request: code(name_of(request))) as server:
        ledger = Ledger()
        for thread in ask_ahead(client_of(server, ledger, tmp_path), *NAMES):
            thread.join(20 * PATIENCE)
        (file,) = tmp_path.iterdir()
        with file.open("a") as torn:
            torn.write('{"call": {"id": "half a li')
        again = client_of(server, ledger, tmp_path)  # the journal is all that is left of the first, and that file
        assert file.read_text().endswith("half a li\n"), "the next answer would be lost behind it"
        assert take(again, *NAMES) == [f"# {name}" for name in NAMES]
        again.settle()
        assert len(server.requests) == 1 + len(NAMES)
    assert [row[:2] for row in rows(ledger)][-2:] == [("sent", "fourth"), ("answered", "fourth")]
    assert not list(tmp_path.iterdir())


class Killed(BaseException):
    """Where kill -9 would have ended the worker."""


def killed_while_judging(server: ChatServer, folder: Path) -> Ledger:
    """The rows of a worker that was killed while it judged the answer to its first question."""

    def judge(_: CodeReply) -> str:
        raise Killed

    ledger = Ledger()
    with pytest.raises(Killed):
        client_of(server, ledger, folder).ask("fast", "first", asked("first"), CodeReply, judge)
    assert rows(ledger)[-1][:2] == ("sent", "first")
    return ledger


def test_an_answer_that_is_being_judged_when_the_worker_is_killed_is_not_paid_again(tmp_path: Path) -> None:
    with ChatServer(lambda request: code(name_of(request))) as server:
        ledger = killed_while_judging(server, tmp_path)
        again = client_of(server, ledger, tmp_path)
        again.settle()  # as before the step that was being done
        assert take(again, "first") == ["# first"]
        again.settle()
        assert len(server.requests) == 2, "plan, first"
    assert rows(ledger)[-1][:2] == ("answered", "first")
    assert not list(tmp_path.iterdir())


def test_an_answer_that_was_being_judged_is_a_row_where_its_question_does_not_come_again(tmp_path: Path) -> None:
    with ChatServer(lambda request: code(name_of(request))) as server:
        ledger = killed_while_judging(server, tmp_path)
        again = client_of(server, ledger, tmp_path)
        for _ in range(2):  # before each step
            again.settle()
    assert rows(ledger)[-1][:2] == ("answered", "first") and "unused" in rows(ledger)[-1][2]
    assert not list(tmp_path.iterdir())


def test_a_failure_of_a_request_sent_ahead_is_its_first_try() -> None:
    def answer(request: dict[str, Any]) -> Any:
        name = name_of(request)
        if name == "second" and not tried:
            tried.append(name)
            return rate_limited()
        return code(name)

    tried: list[str] = []
    with ChatServer(answer) as server:
        client = client_of(server, ledger := Ledger())
        for thread in ask_ahead(client, "first", "second"):
            thread.join(20 * PATIENCE)
        take(client, "first", "second")
    assert [(state, fault.partition(":")[0]) for state, step, fault in rows(ledger) if step == "second"] == [
        ("sent", "None"), ("failed", "429"), ("sent", "None"), ("answered", ""),
    ]  # fmt: skip


def test_what_is_refused_ahead_is_learnt_in_its_turn_and_costs_nothing() -> None:
    def answer(request: dict[str, Any]) -> Any:
        if name_of(request) != "plan" and "temperature" in request:
            return rejects("temperature")
        return code(name_of(request))

    with ChatServer(answer) as server:
        client = client_of(server, ledger := Ledger())
        for thread in ask_ahead(client, "first", "second"):
            thread.join(20 * PATIENCE)
        sent = len(server.requests)
        assert take(client, "first", "second") == ["# first", "# second"]
        client.settle()
        assert len(server.requests) == sent, "everything had been asked ahead"
    assert [(step, fault.partition(":")[0]) for state, step, fault in rows(ledger) if state != "sent"] == [
        ("plan", ""), ("first", "rejected temperature"), ("first", ""), ("second", ""),
    ]  # fmt: skip


def test_an_answer_that_nobody_came_for_is_a_row_with_its_cost() -> None:
    with ChatServer(lambda request: code(name_of(request))) as server:
        client = client_of(server, ledger := Ledger())
        for thread in ask_ahead(client, "first", "second"):
            thread.join(20 * PATIENCE)
        client.ask("fast", "first", asked("first but otherwise"), CodeReply)
        assert client.missed() and not client.missed()
        client.settle()
        client.settle()
    *_, first, second = [(call.step, row) for state, call, row in ledger.rows if state == "answered"]
    assert [first[0], second[0]] == ["first", "second"]
    assert first[1].fault.startswith("unused: ") and second[1].fault.startswith("unused: ")
    assert first[1].cost == pytest.approx(110e-6)
    assert len([row for row in rows(ledger) if row[0] == "sent"]) == 4


def test_what_is_under_way_counts_against_the_budget() -> None:
    gate = threading.Event()

    class Tight(Ledger):
        """Room for two calls at once."""

        def reserve(self, call: Call, held: Held = NOTHING) -> None:
            spent = sum(row.tokens_in + row.tokens_out for state, _, row in self.rows if state == "answered")
            if spent + held.tokens + call.reserved_tokens > 2 * call.reserved_tokens + 500:
                raise BudgetReached("the budget is used up")

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        assert name_of(request) == "plan" or gate.wait(20 * PATIENCE)
        return code(name_of(request))

    with ChatServer(answer) as server:
        client = client_of(server, Tight())
        threads = ask_ahead(client, *NAMES)
        until(lambda: len(server.requests) == 3 and sum(thread.is_alive() for thread in threads) == 2)
        gate.set()
        assert take(client, *NAMES) == [f"# {name}" for name in NAMES]


def test_the_call_of_the_session_s_own_client_counts_until_its_row_is_written() -> None:
    gate = threading.Event()
    asked_for: list[int] = []

    class Counting(Ledger):
        """Keeps what else was held when a call was reserved; its rows take a moment."""

        def reserve(self, call: Call, held: Held = NOTHING) -> None:
            if call.step != "plan":
                asked_for.append(held.tokens)

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        assert name_of(request) == "plan" or gate.wait(20 * PATIENCE)
        return code(name_of(request))

    with ChatServer(answer) as server:
        client = client_of(server, Counting())
        own = threading.Thread(target=take, args=(client, "first"), daemon=True)
        own.start()
        until(lambda: len(server.requests) == 2)
        (ahead,) = ask_ahead(client, "second")
        until(lambda: len(server.requests) == 3)
        gate.set()
        for thread in (own, ahead):
            thread.join(20 * PATIENCE)
        assert take(client, "second") == ["# second"]
    assert asked_for[0] == 0 < asked_for[1], "what is under way for the loop itself is held too"
    assert asked_for[2] == 0, "and no longer than that"


def test_a_server_on_this_machine_is_asked_one_after_the_other_unless_told_otherwise() -> None:
    with ChatServer(lambda request: code(name_of(request))) as server:
        assert client_of(server, Ledger(), parallel=None).aside() is None
        assert client_of(server, Ledger(), parallel=2).aside() is not None


def test_a_reply_that_breaks_off_ahead_is_charged() -> None:
    def answer(request: dict[str, Any]) -> Any:
        if name_of(request) == "plan":
            return code("plan")
        return Reply(pieces=[b'data: {"choices": [{"delta": {"content": "half"}}]}\n\n'], cut=True)

    with ChatServer(answer) as server:
        client = client_of(server, ledger := Ledger(), stream=True)
        for thread in ask_ahead(client, "first"):
            thread.join(20 * PATIENCE)
        client.settle()
    assert rows(ledger)[-1][2].startswith("unused: ") and ledger.charged[-1][1] == 4


# ---- an exchange that the operator ends --------------------------------------------------------------
class Endless:
    """A server that thinks and never comes to an end, for the first so many requests."""

    def __init__(self, times: int) -> None:
        self._left = times
        self.done = threading.Event()

    def __call__(self, request: dict[str, Any]) -> Any:
        if name_of(request) == "plan" or not self._left:
            return code(name_of(request))
        self._left -= 1
        thought = b'data: {"choices": [{"delta": {"reasoning_content": "hm "}}]}\n\n'

        def pieces() -> Any:
            while not self.done.wait(0.01):
                yield thought

        return Reply(pieces=pieces())  # type: ignore[arg-type]


def cancel_soon(client: Client, live: Path, times: int) -> threading.Thread:
    """Cancel what is heard of, so many times, each call once."""
    cancelled: set[str] = set()

    def cancel_another() -> bool:
        for call in live_calls.read(live):
            if call.characters > 20 and call.call not in cancelled and client.cancel("ann"):
                cancelled.add(call.call)
                return True
        return False

    def watch() -> None:
        for _ in range(times):
            until(cancel_another)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("times", [1, 2])
def test_a_cancelled_call_is_a_row_and_is_asked_once_more(tmp_path: Path, times: int) -> None:
    progress = Progress(tmp_path)
    with ChatServer(endless := Endless(times)) as server:
        live = LiveCalls(tmp_path, progress)
        client = client_of(server, ledger := Ledger(), tmp_path, live, stream=True)
        thread = cancel_soon(client, tmp_path, times)
        if times == 1:
            assert take(client, "first") == ["# first"]
        else:
            with pytest.raises(UselessReply, match="cancelled by ann"):
                take(client, "first")
        thread.join(20 * PATIENCE)
        endless.done.set()
    told = [fault for state, step, fault in rows(ledger) if step == "first" and state != "sent"]
    assert [fault.partition(" by ann")[0] for fault in told] == ["cancelled: cancelled"] * times + [""] * (2 - times)
    assert all(charge[1] > 20 for charge in ledger.charged)
    temperatures = [r["temperature"] for r in server.requests if name_of(r) == "first"]
    assert temperatures == [0.0, 0.7]
    assert not client.cancel("ann"), "nothing is under way"
    until(lambda: not (tmp_path / live_calls.FILE).exists())
    progress.close()


def test_who_reads_along_sees_thoughts_and_words_apart_and_the_number_of_the_try(tmp_path: Path) -> None:
    seen: list[LiveCall] = []

    def piece(end: str | None = None, **delta: str) -> bytes:
        return event({"choices": [{"index": 0, "delta": delta, "finish_reason": end}]})

    def pieces() -> Iterator[bytes]:
        """Each part goes on until somebody has read it."""
        yield piece(reasoning_content="let me")
        while not any(call.thought.startswith("let me") and not call.content for call in seen):
            time.sleep(0.02)
            yield piece(reasoning_content=" think")
        yield piece(content='{"source": ')
        while not any(call.content.startswith('{"source"') for call in seen):
            time.sleep(0.02)
            yield piece(content=" ")
        yield piece("stop", content='"# plan", "note": ""}')
        yield DONE

    def answer(request: dict[str, Any]) -> Any:
        return rate_limited() if len(server.requests) == 1 else Reply(pieces=pieces())  # type: ignore[arg-type]

    progress, journal = Progress(tmp_path), Ledger()
    with ChatServer(answer) as server:
        llm = {"kind": "openai", "model": "m", "base_url": server.url, "stream": True}
        live = LiveCalls(tmp_path, progress)
        client = make_client(llm, journal, {}, sleep=lambda s: None, live=live)
        thread = threading.Thread(target=lambda: client.ask("slow", "plan", asked("plan"), CodeReply))
        thread.start()
        while thread.is_alive():
            thread.join(0.05)
            seen.extend(live_calls.read(tmp_path))
    assert {call.try_number for call in seen if call.characters} == {2}
    assert len(journal.ends) == 2 and not journal.ends[1]
    progress.close()


class Purse(Ledger):
    """Room for so many calls at their upper bounds."""

    calls = 99.0

    def reserve(self, call: Call, held: Held = NOTHING) -> None:
        spent = sum(row.tokens_in + row.tokens_out for state, _, row in self.rows if state == "answered")
        if spent + held.tokens + call.reserved_tokens > self.calls * call.reserved_tokens:
            raise BudgetReached("the budget is used up")


class Gated:
    """Answers each question once its gate is open; a question that was not foreseen at once."""

    def __init__(self) -> None:
        self.gates = {name: threading.Event() for name in ("1", "2", "3", "4", "5")}
        self.order: list[str] = []

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        name = name_of(request)
        if name not in ("plan", "own"):
            self.order.append(name)
            assert self.gates[str(len(self.order))].wait(20 * PATIENCE)
        return code(name)

    def open(self, *numbers: str) -> None:
        for number in numbers:
            self.gates[number].set()


def begin_own(client: Client, told: list[Any]) -> threading.Thread:
    def take_own() -> None:
        try:
            told.extend(take(client, "own"))
        except AgentError as error:
            told.append(error)

    thread = threading.Thread(target=take_own, daemon=True)
    thread.start()
    return thread


def test_what_is_asked_ahead_leaves_room_for_the_call_that_waits_for_room() -> None:
    with ChatServer(gated := Gated()) as server:
        ledger, told = Purse(), list[Any]()
        client = client_of(server, ledger, parallel=4, max_tokens=1000)
        ledger.calls = 3.2
        ask_ahead(client, "a", "b", "c", "d", "e")
        until(lambda: len(gated.order) == 3)
        own = begin_own(client, told)
        time.sleep(0.3)  # it waits by now
        gated.open("1", "2")
        time.sleep(0.5)  # two more could be sent in their place
        gated.open("3")
        own.join(20 * PATIENCE)
        gated.open("4", "5")
    assert told == ["# own"], "a twentieth of the budget is spent"


def test_a_call_that_the_session_s_own_waits_for_to_have_room_can_be_ended() -> None:
    with ChatServer(gated := Gated()) as server:
        ledger, told = Purse(), list[Any]()
        client = client_of(server, ledger, parallel=3, max_tokens=1000)
        ledger.calls = 2.6
        ask_ahead(client, "a", "b")
        until(lambda: len(gated.order) == 2)
        own = begin_own(client, told)
        until(lambda: client.cancel("ann"))
        own.join(20 * PATIENCE)
        gated.open(*gated.gates)
    assert told == ["# own"]


def test_a_question_that_the_operator_ended_is_not_put_again_after_a_restart(tmp_path: Path) -> None:
    progress = Progress(tmp_path)
    with ChatServer(endless := Endless(2)) as server:
        live = LiveCalls(tmp_path, progress)
        client = client_of(server, ledger := Ledger(), tmp_path, live, stream=True)
        cancel_soon(client, tmp_path, 1)
        threading.Thread(target=lambda: take(client, "first"), daemon=True).start()
        until(lambda: len(server.requests) == 3)  # plan, the one that was ended, the same once more
        until(lambda: rows(ledger)[-1][:2] == ("sent", "first"))
        left = Ledger(list(ledger.rows), dict(ledger.replies))  # the worker is killed
        llm = {"kind": "openai", "model": "m", "base_url": server.url, "price_in": 1, "price_out": 1, "stream": True}
        assert take(make_client(llm, left, {}, folder=tmp_path), "first") == ["# first"]
        endless.done.set()
        assert [r["temperature"] for r in server.requests if name_of(r) == "first"] == [0.0, 0.7, 0.7]
        llm |= {"kind": "replay:s1", "replayed": "openai"}
        replay = make_client(llm, Ledger(), {}, recorded=outcomes_of(left), sleep=lambda s: None)
        replay.ask("slow", "plan", asked("plan"), CodeReply)
        assert take(replay, "first") == ["# first"]
    progress.close()


def test_what_is_under_way_when_the_session_is_stopped_is_a_row_with_what_it_may_have_taken(tmp_path: Path) -> None:
    progress = Progress(tmp_path)
    with ChatServer(endless := Endless(2)) as server:
        live = LiveCalls(tmp_path, progress)
        client = client_of(server, ledger := Ledger(), tmp_path, live, stream=True)
        threading.Thread(target=lambda: take(client, "first"), daemon=True).start()
        ask_ahead(client, "second")
        until(lambda: sum(call.characters > 20 for call in live_calls.read(tmp_path)) == 2)
        client.leave()
        client.settle()
        time.sleep(0.1)
        told = [(state, step, fault) for state, step, fault in rows(ledger) if state == "failed"]
        assert [step for _, step, _ in told] == ["first", "second"]
        assert told[0][2].startswith("stopped: ") and told[1][2].startswith("unused: ")
        assert all(tokens_in > 100 and tokens_out > 20 for tokens_in, tokens_out, _ in ledger.charged)
        again = client_of(server, ledger, tmp_path, stream=True)
        assert take(again, "first") == ["# first"]
        endless.done.set()
        llm = {"kind": "replay:s1", "replayed": "openai", "model": "m", "base_url": server.url, "stream": True}
        replay = make_client(llm, Ledger(), {}, recorded=outcomes_of(ledger), sleep=lambda s: None)
        replay.ask("slow", "plan", asked("plan"), CodeReply)
        assert take(replay, "first") == ["# first"]
    progress.close()

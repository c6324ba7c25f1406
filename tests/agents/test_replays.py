"""A recorded session answers in place of its model: the same exchanges, without a network."""

from __future__ import annotations

import json

import pytest

from rlgpt.agents.client import make_client
from rlgpt.agents.contracts import CodeReply
from rlgpt.agents.errors import NotRecorded
from rlgpt.agents.journal import Answer, Call
from tests.agents.asker import ASKED, CODE, Asker, outcomes_of, settings
from tests.agents.chat_server import (
    Reply,
    chunks,
    completion,
    event,
    json_reply,
    rate_limited,
    rejects,
    server_error,
)
from tests.agents.toys import Ledger


class Killed(BaseException):
    """In place of the end of a worker."""


def test_a_replay_gives_the_same_exchanges_without_a_network() -> None:
    asker = Asker("429", rejects("temperature"), "malformed")
    first = asker.ask()
    llm = settings(asker.server.url) | {"kind": "replay:s1", "replayed": "openai"}
    ledger = Ledger()
    client = make_client(llm, ledger, {}, recorded=outcomes_of(asker.ledger), sleep=lambda s: None)
    assert client.ask("fast", "write/dig", ASKED, CodeReply) == first
    assert ledger.ends == asker.ledger.ends
    assert [c.request_hash for _, c, _ in ledger.rows] == [c.request_hash for _, c, _ in asker.ledger.rows]


def test_a_replay_of_a_session_whose_worker_died_of_an_answer_goes_on_as_the_next_worker_did() -> None:
    asker = Asker()
    first = asker.ask()
    died = asker.ledger.rows[-1][1]
    asker.ledger.rows.insert(0, ("failed", died, "error: OverflowError"))
    llm = settings(asker.server.url) | {"kind": "replay:s1", "replayed": "openai"}
    client = make_client(llm, Ledger(), {}, recorded=outcomes_of(asker.ledger), sleep=lambda s: None)
    assert client.ask("fast", "write/dig", ASKED, CodeReply) == first


@pytest.mark.parametrize("price", [{}, {"price_in": 10.0, "price_out": 100.0}])
def test_a_replay_counts_what_the_recorded_calls_cost(price: dict[str, float]) -> None:
    answer = json.loads(completion(CODE).body)
    cut = Reply(pieces=[event(chunk) for chunk in chunks(answer)][:3], cut=True)
    asker = Asker(cut, "malformed", **price)
    first = asker.ask()
    llm = settings(asker.server.url, **price) | {"kind": "replay:s1", "replayed": "openai"}
    ledger = Ledger()
    client = make_client(llm, ledger, {}, recorded=outcomes_of(asker.ledger), sleep=lambda s: None)
    assert client.ask("fast", "write/dig", ASKED, CodeReply) == first
    counted = [
        [(state, call.reserved, getattr(row, "tokens_out", 0), getattr(row, "cost", 0.0)) for state, call, row in rows]
        for rows in (ledger.rows, asker.ledger.rows)
    ]
    assert counted[0] == counted[1]
    assert ledger.charged == asker.ledger.charged and sum(ledger.charged[0][:2]) > 0


def test_a_replay_that_asks_something_new_says_so() -> None:
    llm = settings("http://127.0.0.1:9/v1") | {"kind": "replay:s1", "replayed": "openai"}
    client = make_client(llm, Ledger(), {}, recorded=lambda step, name: [])
    with pytest.raises(NotRecorded, match="Session s1 holds no answer to this request of the fast agent"):
        client.ask("fast", "new", ASKED, CodeReply)


def test_a_replay_whose_requests_had_other_words_answers_by_the_step() -> None:
    asker = Asker("malformed")
    first = asker.ask()
    asked = [{"role": "user", "content": "other words"}]

    llm = settings(asker.server.url) | {"kind": "replay:s1", "replayed": "openai", "reworded": True}
    client = make_client(llm, Ledger(), {}, recorded=outcomes_of(asker.ledger), sleep=lambda s: None)
    assert client.ask("fast", "write/dig", asked, CodeReply) == first
    with pytest.raises(NotRecorded):
        client.ask("fast", "write/dig", asked, CodeReply)


def test_a_replay_repeats_an_outage_a_broken_stream_and_what_was_learnt() -> None:
    answer = json.loads(completion(CODE).body)
    pieces = [event(chunk) for chunk in chunks(answer)]
    cut = Reply(pieces=pieces[:3], cut=True)
    faults = [server_error(503)] * 4 + [cut, json_reply(400, {"detail": "no"}), "malformed", rejects("temperature")]
    asker = Asker(*faults, patience=1.0)
    first = asker.ask()
    llm = settings(asker.server.url) | {"kind": "replay:s1", "replayed": "openai", "patience": 1.0}
    ledger = Ledger()
    client = make_client(llm, ledger, {}, recorded=outcomes_of(asker.ledger), sleep=lambda s: None)
    assert client.ask("fast", "write/dig", ASKED, CodeReply) == first
    assert ledger.ends == asker.ledger.ends and len(ledger.ends) == 9
    assert ledger.waits == asker.ledger.waits
    assert [c.request_hash for _, c, _ in ledger.rows] == [c.request_hash for _, c, _ in asker.ledger.rows]


def test_a_long_wait_that_a_server_asks_for_is_told_at_once_and_in_a_replay_too() -> None:
    asker = Asker(rate_limited(300.0))
    first = asker.ask()
    assert [why.partition("; ")[2] for why in asker.ledger.waits] == ["it asks to be left alone for 300 s", ""]
    llm = settings(asker.server.url) | {"kind": "replay:s1", "replayed": "openai"}
    client = make_client(llm, ledger := Ledger(), {}, recorded=outcomes_of(asker.ledger), sleep=lambda s: None)
    assert client.ask("fast", "write/dig", ASKED, CodeReply) == first
    assert ledger.waits == asker.ledger.waits


def test_a_replay_tries_as_often_as_the_workers_of_its_session_did_together() -> None:
    asker = Asker(*[server_error(503)] * 7, patience=0.0)
    client, ledger = asker.client, asker.ledger

    def stop_at_the_fourth(seconds: float) -> None:
        if len(ledger.ends) == 4:
            raise Killed

    with asker.server:
        first = make_client(settings(asker.server.url), ledger, {}, sleep=stop_at_the_fourth)
        with pytest.raises(Killed):
            first.ask("critic", "judge", ASKED, CodeReply)
        reply = client.ask("critic", "judge", ASKED, CodeReply)
    llm = settings(asker.server.url) | {"kind": "replay:s1", "replayed": "openai"}
    replay = make_client(llm, Ledger(), {}, recorded=outcomes_of(ledger), sleep=lambda s: None)
    assert replay.ask("critic", "judge", ASKED, CodeReply) == reply


class DyingLedger(Ledger):
    """Its worker dies behind the row of its `left`th exchange."""

    left = 1

    def answered(self, call: Call, answer: Answer) -> None:
        super().answered(call, answer)
        self.die_of_it()

    def failed(
        self, call: Call, error: str, seconds: float, charged: tuple[int, int, float | None] = (0, 0, 0.0)
    ) -> None:
        super().failed(call, error, seconds, charged)
        self.die_of_it()

    def die_of_it(self) -> None:
        self.left -= 1
        if not self.left:
            raise Killed


@pytest.mark.parametrize("by_step", [False, True])
@pytest.mark.parametrize("killed_after", [1, 2, 3])
def test_a_replay_that_is_killed_and_goes_on_takes_no_recorded_answer_twice(by_step: bool, killed_after: int) -> None:
    asker = Asker("429", completion("no object here"))
    first = asker.ask()
    llm = settings(asker.server.url) | {"kind": "replay:s1", "replayed": "openai", "reworded": by_step}
    ledger = DyingLedger()
    ledger.left = killed_after

    def ask() -> CodeReply:
        recorded, had = outcomes_of(asker.ledger), outcomes_of(ledger)
        client = make_client(llm, ledger, {}, recorded=recorded, had=had, sleep=lambda s: None)
        return client.ask("fast", "write/dig", ASKED, CodeReply)

    with pytest.raises(Killed):
        ask()
    assert ask() == first
    assert ledger.ends == asker.ledger.ends

"""The client gets a usable answer, or one clear sentence, from whatever a server does; every exchange is a row."""

from __future__ import annotations

import json

import pytest

from rlgpt.agents import slow
from rlgpt.agents.backends import Failure
from rlgpt.agents.client import WARM, make_client
from rlgpt.agents.contracts import CodeReply
from rlgpt.agents.endpoint import RULES_MODEL
from rlgpt.agents.errors import ModelUnavailable, UselessReply
from rlgpt.agents.parsing import parse
from rlgpt.agents.waiting import MOST_WAIT
from tests.agents.asker import ASKED, CODE, Asker, chain, outcomes_of, settings
from tests.agents.chat_server import (
    ChatServer,
    Reply,
    completion,
    json_reply,
    rate_limited,
    rejects,
    server_error,
)
from tests.agents.histories import Told, context
from tests.agents.toys import BREAD, Ledger, bakery


# ---- what servers do ------------------------------------------------------------------------------
def test_a_good_reply_is_asked_for_once_with_a_strict_schema_at_temperature_0() -> None:
    asker = Asker()
    assert asker.ask().note == "n"
    (request,) = asker.server.requests
    assert request["temperature"] == 0.0 and request["max_tokens"] > 0
    form = request["response_format"]
    assert form["json_schema"]["strict"] is True
    assert form["json_schema"]["schema"]["required"] == ["source", "note"]
    assert [state for state, _, _ in asker.ledger.rows] == ["reserved", "sent", "answered"]


@pytest.mark.parametrize(
    ("fault", "code"), [("429", "429"), ("500", "500"), ("timeout", "timeout"), ("no_json", "malformed")]
)
def test_a_passing_failure_is_a_row_and_is_tried_again(fault: str, code: str) -> None:
    asker = Asker(fault, timeout=4.0)
    assert asker.ask().note == "n"
    first, second = asker.ledger.ends
    assert first.startswith(f"{code}: ") and second == ""
    assert [call.try_number for state, call, _ in asker.ledger.rows if state == "sent"] == [1, 2]
    assert len(asker.waits) == 1


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("malformed", "malformed JSON"),
        ("wrong_schema", "wrong schema: source: Field required"),
        ("truncated", "truncated"),
    ],
)
def test_a_reply_that_cannot_be_used_is_a_row_and_gets_one_repair_turn(fault: str, said: str) -> None:
    asker = Asker(fault)
    assert asker.ask().note == "n"
    assert asker.ledger.ends[0].startswith(said) and asker.ledger.ends[1] == ""
    repair = asker.server.requests[1]["messages"]
    assert [m["role"] for m in repair] == ["system", "user", "assistant", "user"]
    assert said.split(":")[0] in repair[-1]["content"]


def exceeds(tokens: int, context: int) -> Reply:
    """How a llama.cpp server refuses a prompt that is too long."""
    said = f"request ({tokens} tokens) exceeds the available context size ({context} tokens), try increasing it"
    return json_reply(400, {"error": {"code": 400, "message": said, "n_prompt_tokens": tokens, "n_ctx": context}})


def test_a_bad_reply_that_is_too_long_to_be_repaired_is_asked_for_afresh() -> None:
    asker = Asker(completion('{"source": "' + "# on\\n" * 9000), exceeds(17_000, 16_384), completion(CODE))
    assert asker.ask().note == "n"
    assert [len(request["messages"]) for request in asker.server.requests] == [2, 4, 3]


def test_a_refusal_is_a_row_and_is_asked_again_warmer() -> None:
    asker = Asker("refusal")
    assert asker.ask().note == "n"
    assert asker.ledger.ends == ["refusal: I cannot help with that.", ""]
    assert [r["temperature"] for r in asker.server.requests] == [0.0, WARM]


def test_the_temperature_is_raised_once_after_a_useless_repair_and_then_the_model_is_given_up() -> None:
    asker = Asker("malformed", "malformed", "malformed", "truncated")
    with pytest.raises(UselessReply, match="The fast agent's model m gave no usable answer: truncated"):
        asker.ask()
    assert [r["temperature"] for r in asker.server.requests] == [0.0, 0.0, WARM, WARM]
    assert len(asker.ledger.ends) == 4 and all(asker.ledger.ends)
    assert "malformed JSON" in asker.server.requests[2]["messages"][-1]["content"]


def test_an_identical_useless_source_is_not_taken_twice() -> None:
    asker = Asker()
    with pytest.raises(UselessReply, match="the same as before"):
        asker.ask(useless=lambda reply: "the same as before")
    assert asker.ledger.ends == ["useless: the same as before"] * 4


@pytest.mark.parametrize("parameter", ["temperature", "max_tokens", "response_format"])
def test_a_rejected_parameter_is_left_out_once_for_all_and_is_a_row(parameter: str) -> None:
    asker = Asker(rejects(parameter))
    with asker.server:
        for step in ("one", "two"):
            assert asker.client.ask("fast", step, ASKED, CodeReply).note == "n"
    assert asker.ledger.ends[0].startswith(f"rejected {parameter}: ")
    first, *later = asker.server.requests
    assert parameter in first and len(later) == 2
    assert all(request.get(parameter) != first[parameter] for request in later)


def test_max_tokens_gives_way_to_max_completion_tokens() -> None:
    asker = Asker(rejects("max_tokens"))
    asker.ask()
    assert "max_completion_tokens" in asker.server.requests[1]


def test_without_structured_outputs_the_schema_is_said_in_words() -> None:
    asker = Asker(rejects("response_format"), rejects("response_format"))
    asker.ask()
    _, json_mode, words = asker.server.requests
    assert json_mode["response_format"] == {"type": "json_object"} and "response_format" not in words
    for request in (json_mode, words):
        assert '"additionalProperties": false' in request["messages"][0]["content"]


def test_retry_after_is_honoured_and_bounded() -> None:
    asker = Asker(rate_limited(3), rate_limited(10_000))
    asker.ask()
    assert asker.waits == [3.0, MOST_WAIT]


@pytest.mark.parametrize(
    "date",
    [
        "Mon, 01 Jan 2020 00:00:00 +999999999999999999",
        "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
        "Mon, 99999999999999999999 Jan 2020 00:00:00 GMT",
        "Mon, 01 Jan 0001 00:00:00 +2359",
        "Mon, 01 Jan 0001 00:00:00 -0000",
        "soon",
    ],
)
def test_a_retry_after_that_no_calendar_has_is_as_good_as_none(date: str) -> None:
    asker = Asker(json_reply(429, {"error": {"message": "slow down"}}, **{"Retry-After": date}))
    assert asker.ask().note == "n"
    assert len(asker.waits) == 1 and asker.waits[0] <= 2.0


def test_a_server_that_says_soon_for_hours_is_waited_for_as_long_as_one_that_says_nothing() -> None:
    """Behind a proxy that answers every request with 503 and `Retry-After: 1` the server may be away for hours."""
    answer = json_reply(503, {"error": {"message": "upstream is away"}}, **{"Retry-After": "1"})
    asker = Asker(*[answer] * 15, patience=1.0)
    assert asker.ask().note == "n"
    assert asker.waits == sorted(asker.waits) and asker.waits[-1] >= MOST_WAIT - 1


def test_a_server_that_stays_down_is_given_up_with_a_sentence() -> None:
    asker = Asker(*[server_error(503)] * 6)
    with pytest.raises(ModelUnavailable, match=r"The fast agent got no answer after 6 tries: .* answered with 503"):
        asker.ask()
    assert len(asker.ledger.ends) == 6


def test_an_unreachable_server_is_a_sentence() -> None:
    client = make_client(settings("http://127.0.0.1:9/v1"), Ledger(), {}, sleep=lambda s: None)
    with pytest.raises(ModelUnavailable, match=r"cannot be reached .* Check --base-url"):
        client.ask("fast", "s", ASKED, CodeReply)


def test_a_wrong_model_name_is_not_tried_again() -> None:
    asker = Asker(Reply(404, b'{"error": {"message": "no such model"}}', {"Content-Type": "application/json"}))
    with pytest.raises(ModelUnavailable, match="Check --base-url and --model"):
        asker.ask()
    assert len(asker.ledger.ends) == 1 and asker.waits == []


def test_a_wrong_model_name_that_comes_with_400_is_not_tried_again_either() -> None:
    asker = Asker(json_reply(400, {"error": {"message": "Model m not found", "type": "invalid_request_error"}}))
    with pytest.raises(ModelUnavailable, match="Check --base-url and --model"):
        asker.ask()
    assert len(asker.ledger.ends) == 1


def test_a_prompt_that_a_moderator_flags_is_asked_afresh_and_no_matter_of_the_key() -> None:
    flagged = {"code": 403, "message": "Input flagged for violence", "metadata": {"reasons": ["violence"]}}
    asker = Asker(json_reply(403, {"error": flagged}))
    assert asker.ask().note == "n"
    assert asker.ledger.ends[0].startswith("filtered: the content filter of ") and "key" not in asker.ledger.ends[0]


# ---- the record -----------------------------------------------------------------------------------
def test_an_answered_request_is_never_sent_again() -> None:
    asker = Asker("malformed")
    first = asker.ask()
    again = make_client(settings("http://127.0.0.1:9/v1"), asker.ledger, {}, sleep=lambda s: None)
    assert again.ask("fast", "write/dig", ASKED, CodeReply) == first
    assert len(asker.server.requests) == 2


def test_a_refused_parameter_is_not_sent_again_after_a_restart() -> None:
    ledger = Ledger()
    refusals = [rejects("temperature"), rejects("response_format"), rejects("max_tokens")]
    with ChatServer(lambda request: json.loads(completion(CODE).body), refusals) as server:
        for _ in range(2):
            ledger.replies.clear()
            client = make_client(settings(server.url), ledger, {}, sleep=lambda s: None)
            client.ask("fast", "write/dig", ASKED, CodeReply)
        *_, accepted, again = server.requests
    assert len(server.requests) == 5 and again == accepted
    assert "temperature" not in again and "max_tokens" not in again and again["max_completion_tokens"]
    assert again["response_format"] == {"type": "json_object"}


def test_a_question_whose_repair_was_refused_is_not_paid_again_after_a_restart() -> None:
    asker = Asker(completion('{"source": "' + "# on\\n" * 9000), exceeds(17_000, 16_384), completion(CODE))
    first = asker.ask()
    paid = [call.request for state, call, _ in asker.ledger.rows if state == "answered"]
    with ChatServer(lambda request: json.loads(completion(CODE).body), [exceeds(17_000, 16_384)]) as server:
        again = make_client(settings(server.url), asker.ledger, {}, sleep=lambda s: None)
        assert again.ask("fast", "write/dig", ASKED, CodeReply) == first
    assert [call.request for state, call, _ in asker.ledger.rows if state == "answered"] == paid and len(paid) == 2
    assert len(server.requests) == 1, "the repair turn, which nothing answered"


def test_a_reply_that_was_of_no_use_when_it_came_stays_so_in_a_resumed_and_in_a_replayed_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asker = Asker(completion(CODE.replace('"n"', '"forgiven today", "unasked": 1')))
    with monkeypatch.context() as strict_once:
        strict_once.setattr("rlgpt.agents.client.parse", lambda text, contract, *_: parse(text, contract, False))
        first = asker.ask()
    assert len(asker.server.requests) == 2
    resumed = make_client(settings("http://127.0.0.1:9/v1"), asker.ledger, {}, sleep=lambda s: None)
    assert resumed.ask("fast", "write/dig", ASKED, CodeReply) == first
    llm = settings(asker.server.url) | {"kind": "replay:s1", "replayed": "openai"}
    ledger = Ledger()
    replayed = make_client(llm, ledger, {}, recorded=outcomes_of(asker.ledger), sleep=lambda s: None)
    assert replayed.ask("fast", "write/dig", ASKED, CodeReply) == first
    assert ledger.ends == asker.ledger.ends
    assert Asker(completion(CODE.replace('"n"', '"forgiven today", "unasked": 1'))).ask().note == "forgiven today"


def test_a_missing_last_brace_is_closed_only_where_the_model_had_ended_its_reply() -> None:
    asker = Asker(completion(CODE[:-1]))
    assert asker.ask().note == "n" and asker.ledger.ends == [""]
    asker = Asker(completion(CODE[:-1], "length"))
    assert asker.ask().note == "n" and asker.ledger.ends[0].startswith("truncated")


def test_a_fault_that_quotes_what_the_model_wrote_makes_no_long_question() -> None:
    fault = "there is no feature '" + "x" * 50_000 + "'"
    asker = Asker()
    asker.ask(useless=lambda reply: fault if len(asker.server.requests) == 1 else "")
    _, repair = asker.server.requests
    told = repair["messages"][-1]["content"]
    assert "there is no feature 'xxx" in told and "[... shortened ...]" in told and len(told) < 10_000


def test_a_draft_before_the_cut_is_not_taken_for_the_answer() -> None:
    asker = Asker(completion('{"draft": {"source": "a draft"}, "source": "def dig(view):\\n    yield', "length"))
    assert asker.ask().note == "n"
    assert asker.ledger.ends[0].startswith("truncated")


def test_a_failure_survives_its_text() -> None:
    failure = Failure("rejected temperature", "the server does not take it")
    assert Failure.load(str(failure)).rejected == "temperature"
    assert Failure.load(str(Failure("429", "slow down"))).transient


def test_what_one_model_was_refused_is_not_kept_from_another_that_a_fork_asks() -> None:
    no_chat = json_reply(404, {"error": {"message": "This is not a chat model. Did you mean to use v1/responses?"}})
    asker = Asker(no_chat, no_chat)
    with pytest.raises(ModelUnavailable):
        asker.ask()
    with (other := ChatServer(lambda request: json.loads(completion(CODE).body))):
        client = make_client(settings(other.url, model="another"), asker.ledger, {})
        assert client.ask("fast", "write/cut", ASKED, CodeReply).note == "n"
    assert "messages" in other.requests[0]


# ---- the whole chain ------------------------------------------------------------------------------
def test_the_whole_chain_is_the_same_over_a_faulty_network_and_in_process() -> None:
    faults = ["429", "malformed", "ok", "wrong_schema", "ok", "rejected", "ok", "refusal", "ok", "500", "truncated"]
    ledger = Ledger()
    with ChatServer(script=faults) as server:
        over = make_client(settings(server.url, model=RULES_MODEL), ledger, {}, sleep=lambda s: None)
        replies = chain(over)
    assert replies == chain(make_client({"kind": "rules"}, Ledger(), {}))
    kinds = [end.partition(":")[0] for end in ledger.ends if end]
    assert kinds == ["429", "malformed JSON", "wrong schema", "rejected temperature", "refusal", "500", "truncated"]


def test_a_language_model_is_never_shown_the_script_book() -> None:
    ledger = Ledger()
    with ChatServer() as server:
        client = make_client(settings(server.url, model="some-llm"), ledger, {}, sleep=lambda s: None)
        slow.plan(client, context(Told().iteration(), bakery(), BREAD))
        assert "script book" not in server.requests[0]["messages"][0]["content"]
        assert "def get_flour" not in json.dumps(server.requests)

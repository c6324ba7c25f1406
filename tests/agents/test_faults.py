"""What servers do wrong: each is a row and a sentence, nothing is asked twice that need not be, nothing crashes."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rlgpt.agents import fast
from rlgpt.agents.client import PAID, make_client
from rlgpt.agents.completions import Reply as Answered
from rlgpt.agents.completions import body_of, lines_of, of_stream
from rlgpt.agents.context import Context
from rlgpt.agents.contracts import CodeReply
from rlgpt.agents.errors import ModelUnavailable, UselessReply
from rlgpt.agents.waiting import MOST_WAIT, TRIES, tries_in
from tests.agents.asker import ASKED, CODE, Asker, settings
from tests.agents.chat_server import (
    DONE,
    ChatServer,
    Reply,
    chunks,
    completion,
    event,
    json_reply,
    rate_limited,
    server_error,
    streamed,
)
from tests.agents.histories import Told, context
from tests.agents.toys import BREAD, Ledger, bakery

ANSWER = json.loads(completion(CODE).body)
WHOLE = [event(chunk) for chunk in chunks(ANSWER)]
LIST = json.loads(completion(None).body)
LIST["choices"][0]["message"]["content"] = [{"type": "text", "text": CODE}]
CALLED = json.loads(completion(None, "tool_calls").body)
CALLED["choices"][0]["message"]["tool_calls"] = [{"id": "1", "function": {"name": "f", "arguments": CODE}}]
FENCED = json.loads(completion(f"Here it is:\n```json\n{CODE}\n```\nHope that helps!").body)
PROSE = json.loads(completion("Sure! What shall I write?").body)
SEPARATED = json.loads(completion(CODE.replace("yield", "yield  # \u2028\x85 ")).body)
"""JSON may hold these as they are, and they end no line of server-sent events."""


def _raw(tree: object) -> bytes:
    return b"data: " + json.dumps(tree, ensure_ascii=False).encode() + b"\n\n"


def _error(status: int, **error: object) -> Reply:
    return json_reply(status, {"error": error})


THOUGHT = json.loads(completion(None).body)
THOUGHT["choices"][0]["message"]["reasoning_content"] = CODE


@pytest.mark.parametrize("content", [None, "Here it is:", "null", "{}"])
@pytest.mark.parametrize("others", [[], [("think", '{"thought": "x"}')]])
@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_in_a_call_is_found_whatever_stands_beside_it(
    content: str | None, others: list[tuple[str, str]], stream: bool
) -> None:
    tree: dict[str, Any] = json.loads(completion(content, "tool_calls").body)
    tree["choices"][0]["message"]["tool_calls"] = [
        {"index": at, "id": str(at), "type": "function", "function": {"name": name, "arguments": arguments}}
        for at, (name, arguments) in enumerate([*others, ("CodeReply", CODE)])
    ]
    asker = Asker(streamed(tree) if stream else json_reply(200, tree), stream=stream)
    assert asker.ask().note == "n" and asker.ledger.ends == [""]


@pytest.mark.parametrize(
    ("first", "ends"),
    [
        (json_reply(200, LIST), [""]),
        (json_reply(200, CALLED), [""]),
        (json_reply(200, THOUGHT), [""]),
        (json_reply(200, ANSWER), [""]),
        (Reply(200, json.dumps(ANSWER).encode(), {"Content-Type": "text/plain"}), [""]),
        (Reply(pieces=WHOLE), [""]),
        (Reply(pieces=[b"data:" + json.dumps(ANSWER).encode() + b"\n\n", DONE]), [""]),
        (Reply(pieces=[b": waking up\n\n", b"event: ping\ndata: {}\n\n", *WHOLE, DONE]), [""]),
        (Reply(pieces=[piece.replace(b"\n", b"\r\n") for piece in WHOLE]), [""]),
        (Reply(pieces=[piece.replace(b"\n", b"\r") for piece in WHOLE]), [""]),
        (Reply(pieces=[_raw(chunk) for chunk in chunks(SEPARATED)]), [""]),
        (Reply(pieces=[b"\xef\xbb\xbf" + event(ANSWER), DONE]), [""]),
        (Reply(200, b"".join(WHOLE), {"Content-Type": "text/event-stream; charset=base64"}), [""]),
        (Reply(400, b"bad", {"Content-Type": "text/plain; charset=base64"}), ["malformed", ""]),
        (json_reply(200, {"error": {"message": "overloaded", "code": 529}}), ["529", ""]),
        (json_reply(200, {"error": {"message": "x", "code": "\u00b2"}}), ["malformed", ""]),
        (json_reply(200, {"error": {"message": "x", "code": "4" * 5000}}), ["malformed", ""]),
        (_error(400, message="context too long", n_ctx=10**400), ["tokens", ""]),
        (_error(400, message="maximum context length is 1" + "0" * 5000 + " tokens"), ["tokens", ""]),
        (_error(400, message="too many tokens: " + ",".join(["101"] * 2000)), ["tokens", ""]),
        (_error(400, message="Could not finish the message because max_tokens or model output limit was reached."),
         ["truncated", ""]),
        (json_reply(200, {"error": "out of memory"}), ["malformed", ""]),
        (json_reply(200, {"detail": "nothing here"}), ["malformed", ""]),
        (json_reply(200, []), ["malformed", ""]),
        (json_reply(200, {"choices": None}), ["unreadable", ""]),
        (json_reply(200, {"choices": [{"message": "text"}]}), ["unreadable", ""]),
        (json_reply(200, {"choices": [], "error": "out of memory"}), ["malformed", ""]),
        (json_reply(200, ANSWER | {"usage": {"prompt_tokens": "many", "completion_tokens": -3}}), [""]),
        (json_reply(200, ANSWER | {"usage": "free"}), [""]),
        (Reply(pieces=WHOLE[:3], cut=True), ["connection", ""]),
        (Reply(pieces=[*WHOLE[:3], event({"error": {"message": "provider gone", "code": 502}})]), ["502", ""]),
        (Reply(pieces=[*WHOLE[:3], b"data: {broken\n\n"]), ["unreadable", ""]),
        (Reply(pieces=[*WHOLE[:3], b"data: 7\n\n"]), ["malformed", ""]),
        (Reply(pieces=[b"data: {broken\n\n"]), ["unreadable", ""]),
        (Reply(pieces=WHOLE[:3]), ["unreadable", ""]),
        (Reply(pieces=[*WHOLE[:3], DONE]), ["malformed JSON", ""]),
        (Reply(pieces=[*WHOLE[:3], WHOLE[-1]]), ["malformed JSON", ""]),
        (Reply(pieces=WHOLE[:1]), ["unreadable", ""]),
        (Reply(pieces=WHOLE[:5]), [""]),
        (Reply(pieces=[event(chunk) for chunk in chunks(FENCED)][:5]), [""]),
        (Reply(pieces=[event(chunk) for chunk in chunks(CALLED)][:2]), [""]),
        (Reply(pieces=[event(chunk) for chunk in chunks(PROSE)][:5]), ["malformed JSON", ""]),
        (Reply(pieces=[b": only comments\n\n"]), ["rejected stream", ""]),
        (Reply(200, b"", {"Content-Type": "text/event-stream"}), ["rejected stream", ""]),
        (Reply(pieces=WHOLE, delay=60), ["timeout", ""]),
        (Reply(500, b"[[[[", {"Content-Type": "application/json"}), ["500", ""]),
        (Reply(400, b"", {}), ["suspected response_format", ""]),
    ],
)  # fmt: skip
def test_one_fault_of_a_server_is_survived(first: Reply, ends: list[str]) -> None:
    asker = Asker(first, timeout=4.0)
    assert asker.ask().note == "n"
    assert [end.partition(":")[0] for end in asker.ledger.ends] == ends


@pytest.mark.parametrize(
    "hiccup",
    [
        Reply(pieces=[": OPENROUTER PROCESSING\n\n"]),
        Reply(pieces=[DONE]),
        Reply(pieces=[""]),
        json_reply(500, {"error": {"message": "Error in input stream"}}),
        Reply(pieces=[event({"error": {"message": "stream disconnected before completion", "type": "server_error"}})]),
    ],
)
def test_who_has_streamed_an_answer_is_not_taken_for_one_that_cannot_by_one_fault(hiccup: Reply) -> None:
    asker = Asker(completion(CODE), hiccup, timeout=4.0)
    with asker.server:
        for number in range(3):
            question = [{"role": "user", "content": f"Dig {number}."}]
            asker.client.ask("fast", f"write/dig/{number}", question, CodeReply)
    assert [request.get("stream") for request in asker.server.requests] == [True] * 4
    ends = [end.partition(":")[0] for end in asker.ledger.ends]
    assert ends in (["", "malformed", "", ""], ["", "connection", "", ""])


def test_a_fault_that_comes_again_in_the_same_words_is_believed() -> None:
    fault = json_reply(500, {"error": {"message": "Error in input stream"}})
    asker = Asker(completion(CODE), fault, fault)
    with asker.server:
        for number in range(2):
            asker.client.ask("fast", f"write/dig/{number}", [{"role": "user", "content": f"Dig {number}."}], CodeReply)
    assert [request.get("stream") for request in asker.server.requests] == [True, True, True, None]


def test_a_rate_limit_within_a_stream_is_waited_for_and_lowers_no_cap() -> None:
    words = (
        "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 1500. Please try again in 40s."
    )
    limited = Reply(pieces=[event({"error": {"code": "rate_limit_exceeded", "message": words}})])
    asker = Asker(limited, limited)
    assert asker.ask().note == "n"
    assert len({request["max_tokens"] for request in asker.server.requests}) == 1
    assert len(asker.waits) == 2 and min(asker.waits) >= 40.0


def _ended(reason: str, content: str, **more: object) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(completion(content, reason).body)
    tree["choices"][0] |= more
    return tree


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("tree", "end"),
    [
        (_ended("error", "", error={"code": 502, "message": "Provider returned error"}), "502"),
        (_ended("error", CODE[:30], error={"code": 429, "message": "slow down"}), "429"),
        ({"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "gone"}}]}, "502"),
        (_ended("error", ""), "connection"),
        (_ended("abort", CODE[:30]), "connection"),
    ],
)
def test_a_reply_that_its_server_gave_up_is_waited_for_as_if_the_server_was_away(
    tree: dict[str, Any], end: str, stream: bool
) -> None:
    choice = dict(tree["choices"][0])
    last = {"choices": [{"index": 0, "delta": choice.pop("message", {}), **choice}]}
    first = Reply(pieces=[event(last), DONE]) if stream else json_reply(200, tree)
    asker = Asker(*[first] * (PAID + 1), stream=stream, patience=1.0)
    assert asker.ask().note == "n"
    assert [row.partition(":")[0] for row in asker.ledger.ends] == [end] * (PAID + 1) + [""]
    assert len(asker.waits) == PAID + 1
    assert all(len(request["messages"]) == 2 for request in asker.server.requests), "no repair turn"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("status", "end"), [("completed", "the reply is empty"), ("incomplete", "truncated")])
def test_a_response_that_was_all_thought_is_charged_and_asked_again(status: str, end: str, stream: bool) -> None:
    def response(**more: object) -> Reply:
        text = {"type": "message", "content": [{"type": "output_text", "text": CODE}]}
        body = {"object": "response", "status": "completed", "output": [text], **more}
        last = event({"type": f"response.{body['status']}", "response": body})
        delta = event({"type": "response.output_text.delta", "delta": CODE})
        pieces = [delta, last] if body["output"] else [last]
        return Reply(pieces=pieces) if stream else json_reply(200, body)

    usage = {"input_tokens": 900, "output_tokens": 80}
    details = {"reason": "max_output_tokens"} if status == "incomplete" else None
    empty = response(status=status, output=[], usage=usage, incomplete_details=details)
    asker = Asker(empty, response(), api="responses", stream=stream)
    assert asker.ask().note == "n"
    first = next(row for state, _, row in asker.ledger.rows if state == "answered")
    assert first.fault.startswith(end) and (first.tokens_in, first.tokens_out) == (900, 80)


PAGE = b"<!DOCTYPE html><html><head><title>Open &amp; Chat</title></head><body><p>sign in</p></body></html>"


@pytest.mark.parametrize("stream", [True, False])
def test_a_web_page_in_place_of_the_first_completion_is_the_wrong_address(stream: bool) -> None:
    asker = Asker(Reply(200, PAGE, {"Content-Type": "text/html; charset=utf-8"}), stream=stream)
    with pytest.raises(ModelUnavailable, match=r"with a web page \(Open & Chat\)\. Check --base-url"):
        asker.ask()
    assert len(asker.server.requests) == 1


def test_a_web_page_after_a_completion_is_waited_for() -> None:
    page = Reply(200, b"<html><style>p {}</style><p>back at nine</p></html>", {"Content-Type": "text/html"})
    asker = Asker(completion("no JSON"), page)
    assert asker.ask().note == "n"
    assert asker.ledger.ends[1].endswith("answered with a web page (back at nine)") and asker.ledger.ends[2] == ""


def test_a_completion_that_calls_itself_a_page_is_read_and_a_refusal_shows_the_title_of_its_page() -> None:
    body = json.dumps(FENCED).encode()
    assert Asker(Reply(200, body, {"Content-Type": "text/html"})).ask().note == "n"
    asker = Asker(*[Reply(413, PAGE.replace(b"Open &amp; Chat", b"413 Too Large"), {"Content-Type": "text/html"})] * 9)
    with pytest.raises(ModelUnavailable, match=r"answered with 413 \(413 Too Large\)"):
        asker.ask()


def test_a_slow_reply_is_waited_for_as_long_as_it_comes() -> None:
    asker = Asker(Reply(pieces=WHOLE, pace=0.7), timeout=4.0)
    assert len(WHOLE) * 0.7 > 4.0
    assert asker.ask().note == "n" and asker.ledger.ends == [""]


def test_a_server_that_was_asked_again_too_early_gets_more_time() -> None:
    asker = Asker(*[Reply(pieces=WHOLE, delay=5)] * 2, timeout=4.0)
    assert asker.ask().note == "n"
    assert [end.partition(":")[0] for end in asker.ledger.ends] == ["timeout", ""]


def test_a_reply_that_breaks_off_is_charged_at_its_upper_bound() -> None:
    asker = Asker(Reply(pieces=WHOLE[:3], cut=True), price_in=1.0, price_out=1.0)
    asker.ask()
    ((tokens_in, tokens_out, cost),) = asker.ledger.charged
    assert tokens_in > 100 and tokens_out > 0 and cost == pytest.approx((tokens_in + tokens_out) / 1e6)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("spoiled", "tokens"),
    [
        (json_reply(200, ANSWER | {"choices": []}), (100, 10)),
        (json_reply(200, {"choices": []}), None),
        (Reply(200, json.dumps(ANSWER).encode()[:120], {"Content-Type": "application/json"}), None),
    ],
    ids=["counted", "not counted", "cut off"],
)
def test_a_reply_that_was_paid_for_and_cannot_be_read_is_charged_and_soon_given_up(
    spoiled: Reply, tokens: tuple[int, int] | None, stream: bool
) -> None:
    asker = Asker(*[spoiled] * 20, price_in=1.0, price_out=1.0, stream=stream, patience=12.0)
    with pytest.raises(ModelUnavailable, match=f"no answer after {PAID} tries: http"):
        asker.ask()
    assert len(asker.server.requests) == PAID
    bounds = [(call.reserved_tokens - 16_000, 16_000) for _, call, _ in asker.ledger.rows if call][:PAID]
    expected = [tokens] * PAID if tokens else bounds
    assert [charge[:2] for charge in asker.ledger.charged] == expected
    assert all(charge[2] == pytest.approx(sum(charge[:2]) / 1e6) for charge in asker.ledger.charged)


def test_a_body_that_breaks_off_is_charged_at_its_upper_bound() -> None:
    cut = Reply(200, json.dumps(ANSWER).encode()[:90], {"Content-Type": "application/json"}, cut=True)
    asker = Asker(cut, stream=False)
    asker.ask()
    assert asker.ledger.ends[0].startswith("connection: ") and "broke off" in asker.ledger.ends[0]
    assert asker.ledger.charged[0][1] == 16_000


def test_what_holds_no_reply_at_all_is_free_and_waited_for() -> None:
    pages = [Reply(200, PAGE, {"Content-Type": "text/html"})] * PAID
    asker = Asker(*["no_json"] * PAID, completion("no JSON"), *pages, price_in=1.0, price_out=1.0, patience=1.0)
    assert asker.ask().note == "n" and len(asker.ledger.charged) == 2 * PAID
    assert all(charge == (0, 0, 0.0) for charge in asker.ledger.charged)


def test_a_refusal_without_a_reason_is_answered_by_leaving_things_out_one_at_a_time() -> None:
    def picky(request: dict[str, Any]) -> Any:
        return ANSWER if "stream_options" not in request else json_reply(422, {"detail": "no"})

    ledger = Ledger()
    with ChatServer(picky) as server:
        client = make_client(settings(server.url), ledger, {}, sleep=lambda s: None)
        assert client.ask("fast", "one", ASKED, CodeReply).note == "n"
        asked = len(server.requests)
        assert client.ask("fast", "two", ASKED, CodeReply).note == "n"
    names = ["response_format", "response_format", "stream_options"]
    assert [end.partition(":")[0] for end in ledger.ends] == [*(f"suspected {name}" for name in names), "", ""]
    assert len(server.requests) == asked + 1


def test_an_answer_that_is_of_no_use_is_an_answer_all_the_same() -> None:
    def picky(request: dict[str, Any]) -> Any:
        bare = not {"response_format", "stream_options", "stream", "temperature"} & set(request)
        calm = bare and request["messages"][0]["role"] == "user"
        return json.loads(completion("", "length").body) if calm else json_reply(422, {"detail": "no"})

    ledger = Ledger()
    with ChatServer(picky) as server:
        client = make_client(settings(server.url), ledger, {}, sleep=lambda s: None)
        for step in ("one", "two"):
            with pytest.raises(UselessReply, match="truncated"):
                client.ask("fast", step, ASKED, CodeReply)
    refused = [end for end in ledger.ends if end.startswith("suspected")]
    assert len(refused) == 6 and all(end.startswith("truncated") for end in ledger.ends[6:])


def test_a_server_that_refuses_everything_is_never_sent_the_same_twice_and_keeps_its_formats() -> None:
    ledger = Ledger()
    with ChatServer(lambda request: json_reply(400, {"detail": "no"})) as server:
        client = make_client(settings(server.url), ledger, {}, sleep=lambda s: None)
        with pytest.raises(ModelUnavailable, match="answered with 400"):
            client.ask("fast", "one", ASKED, CodeReply)
        sent = [json.dumps(request, sort_keys=True) for request in server.requests]
        with pytest.raises(ModelUnavailable):
            client.ask("fast", "two", ASKED, CodeReply)
    assert len(sent) == len(set(sent)) <= 7
    assert server.requests[len(sent)]["response_format"]["type"] == "json_schema"


def test_an_unnamed_error_500_that_is_about_the_format_is_found_out() -> None:
    def picky(request: dict[str, Any]) -> Any:
        return server_error(500) if "response_format" in request else ANSWER

    ledger = Ledger()
    with ChatServer(picky) as server:
        client = make_client(settings(server.url), ledger, {}, sleep=lambda s: None)
        assert client.ask("fast", "one", ASKED, CodeReply).note == "n"
    codes = [end.partition(":")[0] for end in ledger.ends]
    assert codes == ["500", "suspected response_format", "500", "suspected response_format", ""]


def test_a_prompt_that_does_not_fit_is_said_and_not_tried_again() -> None:
    too_long = "This model's maximum context length is 512 tokens. However, you requested 16900 tokens (900 in the messages, 16000 in the completion)."  # noqa: E501
    asker = Asker(*[json_reply(400, {"error": {"message": too_long}})] * 9)
    with pytest.raises(ModelUnavailable, match="Serve the model with a longer context"):
        asker.ask()
    assert len(asker.server.requests) == 1


def test_a_request_that_no_minute_has_room_for_gets_a_lower_cap() -> None:
    def limited(request: dict[str, Any]) -> Any:
        asked = 6_500 + request["max_tokens"]
        words = f"Request too large for gpt-4o on tokens per min (TPM): Limit 20000, Requested {asked}."
        return ANSWER if asked <= 20_000 else json_reply(429, {"error": {"message": words}})

    ledger = Ledger()
    with ChatServer(limited) as server:
        client = make_client(settings(server.url), ledger, {}, sleep=lambda s: None)
        assert client.ask("fast", "one", ASKED, CodeReply).note == "n"
    assert len(server.requests) == 2 and 12_000 < server.requests[1]["max_tokens"] <= 13_500


def test_a_cap_that_nobody_explains_is_halved_until_it_fits() -> None:
    def small(request: dict[str, Any]) -> Any:
        return ANSWER if request["max_tokens"] <= 3000 else json_reply(400, {"error": "too many tokens"})

    ledger = Ledger()
    with ChatServer(small) as server:
        client = make_client(settings(server.url), ledger, {}, sleep=lambda s: None)
        assert client.ask("fast", "one", ASKED, CodeReply).note == "n"
    assert [request["max_tokens"] for request in server.requests] == [16000, 8000, 4000, 2000]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("error", "hint"),
    [
        ("Unexpected endpoint or method. (POST /chat/completions)", "Check --base-url and --model."),
        ('model "x" not found, try pulling it first', "Check --base-url and --model."),
        ({"message": "Invalid API key provided", "code": "invalid_api_key"}, "Check the key"),
    ],
)
def test_an_error_with_a_good_status_that_no_waiting_mends_ends_the_question(
    error: object, hint: str, stream: bool
) -> None:
    asker = Asker(*[json_reply(200, {"error": error})] * 9, stream=stream, patience=12.0)
    with pytest.raises(ModelUnavailable, match=re.escape(hint)):
        asker.ask()
    assert len(asker.server.requests) == 1 and not asker.waits


def test_a_model_that_a_server_does_not_know_is_asked_for_once() -> None:
    error = {"object": "error", "message": "The model `x` does not exist.", "param": "model", "code": 404}
    asker = Asker(*[json_reply(404, error)] * 9)
    with pytest.raises(ModelUnavailable, match="Check --base-url and --model"):
        asker.ask()
    assert len(asker.server.requests) == 1


def test_an_error_in_a_stream_that_is_named_one_is_the_servers() -> None:
    error = {"object": "error", "message": "CUDA out of memory", "type": "InternalServerError", "code": 500}
    asker = Asker(Reply(pieces=[event(error), DONE]))
    assert asker.ask().note == "n"
    assert asker.ledger.ends[0].startswith("500: ") and "CUDA out of memory" in asker.ledger.ends[0]


def test_a_content_filter_is_a_refusal_of_the_model() -> None:
    error = {"message": "The response was filtered by the content management policy.", "code": "content_filter"}
    asker = Asker(*[json_reply(400, {"error": error})] * 4)
    with pytest.raises(UselessReply, match="content filter"):
        asker.ask()


# ---- a server that is away -------------------------------------------------------------------------
def test_an_outage_is_waited_for_and_told_once() -> None:
    asker = Asker(*[server_error(503)] * 15, patience=1.0)
    assert asker.ask().note == "n"
    assert len(asker.ledger.ends) == 16 and asker.ledger.ends[-1] == ""
    assert [words.partition(" ")[0] for words in asker.ledger.waits] == [asker.server.url, "back"]
    assert asker.waits[-1] >= MOST_WAIT - 1 and asker.waits == sorted(asker.waits)


def test_patience_ends_with_a_sentence() -> None:
    asker = Asker(*[server_error(503)] * 30, patience=0.25)
    with pytest.raises(ModelUnavailable, match=f"no answer after {tries_in(900)} tries"):
        asker.ask()
    assert asker.ledger.waits[-1].startswith("gave up: ")


def test_a_quota_that_is_used_up_is_waited_for() -> None:
    quota = json_reply(429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}})
    asker = Asker(quota, quota, patience=1.0)
    assert asker.ask().note == "n" and "quota is used up" in asker.ledger.waits[0]


def test_the_critic_is_not_waited_for() -> None:
    asker = Asker(*[server_error(503)] * 20, patience=12.0)
    with asker.server, pytest.raises(ModelUnavailable):
        asker.client.ask("critic", "judge", ASKED, CodeReply)
    assert len(asker.ledger.ends) == TRIES


def test_the_operator_ends_a_wait() -> None:
    ledger = Ledger()
    with ChatServer(lambda request: ANSWER, [rate_limited(300)]) as server:
        client = make_client(settings(server.url), ledger, {})
        answers: list[CodeReply] = []
        asking = threading.Thread(target=lambda: answers.append(client.ask("fast", "one", ASKED, CodeReply)))
        asking.start()
        while not ledger.ends:
            asking.join(0.01)
        client.try_now()
        asking.join(100)
    assert answers and [end.partition(":")[0] for end in ledger.ends] == ["429", ""]


# ---- what stands in for an answer --------------------------------------------------------------------
def told_with_code() -> Context:
    told = Told().iteration()
    told.plan("policy", get_flour="code", make_bread="rl")
    told.code("get_flour").trial("get_flour", 1)
    return context(told, bakery(), BREAD)


def test_an_rl_configuration_that_cannot_be_used_falls_back_to_the_rule_based_models() -> None:
    with ChatServer(lambda request: json.loads(completion('{"target": "moon"}').body)) as server:
        client = make_client(settings(server.url), Ledger(), {}, sleep=lambda s: None)
        config = fast.configure(client, told_with_code())
    usual = fast.configure(make_client({"kind": "rules"}, Ledger(), {}), told_with_code())
    assert "gave no usable answer" in config.note and "stands in" in config.note
    assert config.model_dump(exclude={"note"}) == usual.model_dump(exclude={"note"})


def test_a_useless_reply_keeps_the_nearest_that_fits_its_contract() -> None:
    asker = Asker()
    with pytest.raises(UselessReply) as caught:
        asker.ask(useless=lambda reply: "no")
    assert isinstance(caught.value.nearest, CodeReply)


def test_the_server_without_formats_gets_the_schema_in_words_and_keeps_it() -> None:
    ledger = Ledger()

    def ignorant(request: dict[str, Any]) -> Any:
        told = '"additionalProperties": false' in request["messages"][0]["content"]
        return ANSWER if told else json.loads(completion("Which format?").body)

    with ChatServer(ignorant) as server:
        client = make_client(settings(server.url), ledger, {}, sleep=lambda s: None)
        for step in ("one", "two"):
            assert client.ask("fast", step, ASKED, CodeReply).note == "n"
    assert [end.partition(":")[0] for end in ledger.ends] == ["malformed JSON", "", ""]


def test_the_lines_of_a_stream_are_the_same_however_it_comes_in_pieces() -> None:
    body = "data: ä\r\ndata: b\u2028c\x85\rdata: d\n\r\n\ndata: e".encode("utf-8-sig")
    expected = ["data: ä", "data: b\u2028c\x85", "data: d", "", "", "data: e"]
    for first in range(len(body) + 1):
        for second in range(first, len(body) + 1):
            assert list(lines_of([body[:first], body[first:second], body[second:]])) == expected
    assert list(lines_of(bytes([byte]) for byte in body)) == expected


@pytest.mark.parametrize("piece", [b"x", b"data: x\n", b"x\n"], ids=["line", "event", "no event"])
def test_what_never_ends_is_not_read_to_its_end(piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlgpt.agents.completions.MOST_BYTES", 10_000)
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield piece

    with pytest.raises(ValueError, match="longer than any"):
        of_stream(lines_of(endless()), Answered(), "m")
    with pytest.raises(ValueError, match="longer than any"):
        body_of(endless(), Answered())
    assert read < 30_000


def test_refusals_and_names_of_tools_count_as_what_is_said() -> None:
    refusal = _raw({"choices": [{"delta": {"refusal": "no" * 50_000}}]}).decode()
    tool = _raw({"choices": [{"delta": {"tool_calls": [{"function": {"name": "n" * 5_000}}]}}]}).decode()
    for line in (refusal, tool):
        endless = itertools.islice(itertools.repeat(line.strip()), 10_000_000)
        reply = Answered()
        done = of_stream((part for line in endless for part in (line, "")), reply, "m")
        assert done.finish_reason == "length" and all(len(call.name) <= 1_000 for call in done.calls)

"""What a call costs, and where a key may go."""

from __future__ import annotations

import base64
import json
import re
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from rlgpt.agents.backends import Hear, OpenAIBackend, unheard
from rlgpt.agents.client import Client, make_client
from rlgpt.agents.completions import Completion
from rlgpt.agents.contracts import CodeReply
from rlgpt.agents.endpoint import Endpoint, endpoints, redacted, redacted_url
from rlgpt.agents.errors import BudgetReached, MissingKey, ModelUnavailable, Unclear, UselessReply
from rlgpt.agents.journal import Call, Held
from rlgpt.agents.prices import Price, listed
from rlgpt.agents.providers import PROVIDERS
from rlgpt.store.providers import NAMES
from tests.agents.asker import ASKED, CODE, Asker, settings
from tests.agents.chat_server import (
    DONE,
    ChatServer,
    Reply,
    chunks,
    completion,
    event,
    json_reply,
    rejects,
)
from tests.agents.toys import Ledger


# ---- money ----------------------------------------------------------------------------------------
def test_a_call_is_reserved_at_its_upper_bound_and_charged_what_the_server_counted() -> None:
    asker = Asker(roles={"fast": {"price_in": 10.0, "price_out": 100.0}})
    asker.ask()
    call, answer = asker.ledger.rows[0][1], asker.ledger.rows[-1][2]
    assert answer.cost == pytest.approx((100 * 10 + 10 * 100) / 1e6)
    assert call.reserved == pytest.approx((len(call.request.encode()) * 10 + 16_000 * 100) / 1e6)
    assert call.reserved > answer.cost


def test_an_unknown_price_is_none_and_tokens_are_still_bounded() -> None:
    asker = Asker()
    asker.ask()
    assert asker.ledger.rows[0][1].reserved is None and asker.ledger.rows[0][1].reserved_tokens > 16_000
    assert asker.ledger.rows[-1][2].cost is None


def test_a_server_that_counts_no_tokens_is_charged_their_upper_bounds() -> None:
    body = json.loads(completion(CODE).body)
    del body["usage"]
    asker = Asker(Reply(200, json.dumps(body).encode(), {"Content-Type": "application/json"}))
    asker.ask()
    answer = asker.ledger.rows[-1][2]
    assert (answer.tokens_in, answer.tokens_out) == (len(asker.ledger.rows[0][1].request.encode()), len(CODE))


@pytest.mark.parametrize("stream", [False, True])
def test_a_server_that_counts_no_token_of_what_it_wrote_is_charged_their_upper_bounds(stream: bool) -> None:
    body = json.loads(completion(CODE).body)
    body["usage"] = dict.fromkeys(body["usage"], 0)
    pieces = [event(chunk) for chunk in chunks(body)] if stream else ()
    asker = Asker(Reply(pieces=pieces) if stream else json_reply(200, body), stream=stream, price_in=1.0, price_out=1.0)
    asker.ask()
    answer = asker.ledger.rows[-1][2]
    assert (answer.tokens_in, answer.tokens_out) == (len(asker.ledger.rows[0][1].request.encode()), len(CODE))
    assert answer.cost == pytest.approx((answer.tokens_in + answer.tokens_out) / 1e6)


def test_a_streamed_reply_far_beyond_its_cap_is_hung_up_on() -> None:
    piece = event({"choices": [{"delta": {"content": "and then the next step; " * 100}}]})
    asker = Asker(*[Reply(pieces=[piece] * 2_000)] * 4, max_tokens=4_000, price_in=0.0, price_out=1.0)
    with pytest.raises(UselessReply, match="truncated"):
        asker.ask()
    answers = [row for state, _, row in asker.ledger.rows if state == "answered"]
    assert [8 * 4_000 < len(answer.reply) < 9 * 4_000 for answer in answers] == [True] * 4
    assert [answer.tokens_out for answer in answers] == [4_000] * 4, "no more than it was allowed to write"
    reserved = [call.reserved_tokens for state, call, _ in asker.ledger.rows if state == "answered"]
    assert all(a.tokens_in + a.tokens_out <= most for a, most in zip(answers, reserved, strict=True))


def test_a_stream_that_broke_off_far_beyond_its_cap_is_charged_its_cap() -> None:
    piece = event({"choices": [{"delta": {"content": "and then the next step; " * 10}}]})
    asker = Asker(Reply(pieces=[piece] * 50, cut=True), max_tokens=300)
    asker.ask()
    ((_, tokens_out, _),) = asker.ledger.charged
    assert tokens_out == 300


def test_a_stream_that_broke_off_is_charged_its_bytes_whatever_its_letters() -> None:
    """A token is at least one byte, and may be less than a letter."""
    piece = event({"choices": [{"delta": {"reasoning_content": "先砍树", "content": "🌲"}}]})
    asker = Asker(Reply(pieces=[piece] * 5, cut=True))
    asker.ask()
    ((_, tokens_out, _),) = asker.ledger.charged
    assert tokens_out == 5 * len("先砍树🌲".encode()) == 65


def test_a_reply_of_long_tokens_within_its_cap_is_read_to_its_end() -> None:
    reply = json.loads(completion(CODE.replace('"n"', f'"{"n" * 19_000}"')).body)
    asker = Asker(Reply(pieces=[*(event(chunk) for chunk in chunks(reply)), DONE]), max_tokens=300)
    assert len(asker.ask().note) == 19_000


def test_nothing_is_sent_when_the_reservation_is_refused() -> None:
    asker = Asker()

    def refuse(call: Call, held: Held) -> None:
        raise BudgetReached("the budget of 5 USD is used up")

    asker.ledger.reserve = refuse  # type: ignore[method-assign]
    with pytest.raises(BudgetReached):
        asker.ask()
    assert asker.server.requests == []


def test_dated_snapshots_cost_what_their_model_costs_and_strangers_are_unknown() -> None:
    assert listed("gpt-4o-mini-2024-07-18") == listed("gpt-4o-mini") != listed("gpt-4o")
    assert listed("gpt-4o-2024-05-13") == Price(5.0, 15.0)
    assert listed("my-finetune") is None


# ---- keys -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("url", "variable"),
    [(None, "OPENAI_API_KEY"), ("https://x.openai.azure.com", "AZURE_OPENAI_API_KEY")],
)
def test_a_missing_key_is_a_sentence_that_names_the_variable(url: str | None, variable: str) -> None:
    with pytest.raises(MissingKey, match=f"set {variable} in the environment"):
        make_client({"kind": "openai", "model": "m", "base_url": url}, Ledger(), {})


@pytest.mark.parametrize("key", ["sk-1234\u2026abcd", "sk 1234", "sk-\x00", "sk-é"])
def test_a_key_that_no_header_takes_is_a_sentence_that_does_not_tell_it(key: str) -> None:
    """As a shortened copy has it: it was waited for as a server that answers with nonsense."""
    with pytest.raises(MissingKey, match="the API key in OPENAI_API_KEY holds a space or a letter") as caught:
        make_client({"kind": "openai", "model": "m"}, Ledger(), {"OPENAI_API_KEY": key})
    assert key not in str(caught.value)


def test_a_key_is_taken_without_the_blanks_and_the_line_end_around_it() -> None:
    (endpoint, *_) = endpoints({"kind": "openai", "model": "m"}, {"OPENAI_API_KEY": " sk-1\n"}).values()
    assert endpoint.key == "sk-1"


def test_the_key_is_in_the_header_and_nowhere_else() -> None:
    key = "sk-secret-0123456789"
    fault = Reply(401, json.dumps({"error": {"message": f"Incorrect API key provided: {key}"}}).encode(),
                  {"Content-Type": "application/json"})  # fmt: skip
    asker = Asker(fault, api_key_env="MY_KEY", environ={"MY_KEY": key})
    with pytest.raises(ModelUnavailable, match="Check the key") as error:
        asker.ask()
    assert asker.server.headers[0]["authorization"] == f"Bearer {key}"
    assert key not in str(error.value) and key not in repr(asker.ledger.rows)


def test_the_default_key_never_travels_over_plain_http() -> None:
    asker = Asker(environ={"OPENAI_API_KEY": "sk-secret-0123456789"})
    asker.ask()
    assert "sk-secret" not in str(asker.server.headers)


@pytest.mark.parametrize("named", [None, "OPENAI_API_KEY"])
def test_a_refusal_of_a_key_that_was_kept_back_says_that_none_was_sent(named: str | None) -> None:
    fault = Reply(401, b'{"error": {"message": "Incorrect API key"}}', {"Content-Type": "application/json"})
    asker = Asker(fault, api_key_env=named, environ={"OPENAI_API_KEY": "sk-secret-0123456789"})
    with pytest.raises(ModelUnavailable, match="no key was sent to it"):
        asker.ask()


@pytest.mark.parametrize("before", ["", "u", "us", "user:"])
def test_a_key_is_hidden_in_whatever_spelling_it_comes_back(before: str) -> None:
    key = "qZ7-verysecret/keyvalue+42=="
    coded = base64.b64encode((before + key + "more").encode()).decode()
    told = f"{key.replace('/', chr(92) + '/')} {quote(key, safe='')} {coded}"
    hidden = redacted(told, key)
    assert hidden.count("[key]") == 3 and len(hidden) < 50, hidden


@pytest.mark.parametrize("stream", [False, True])
def test_a_key_that_a_server_sends_back_is_neither_stored_nor_heard(stream: bool) -> None:
    key = "mykey-0123456789-abcdef"
    body = json.loads(completion(CODE.replace('"n"', f'"{key} {key[:9]}"')).body)
    told = [event(chunk) for chunk in chunks(body)] if stream else ()
    reply = Reply(pieces=told) if stream else json_reply(200, body)
    heard: list[str] = []

    class Listening(OpenAIBackend):
        def complete(self, endpoint: Endpoint, call: Call, hear: Hear = unheard) -> Completion:
            return super().complete(endpoint, call, lambda thought, content: heard.append(content))

    ledger = Ledger()
    with ChatServer(lambda request: body, [reply]) as server:
        roles = endpoints(settings(server.url, api_key_env="MY_KEY", stream=stream), {"MY_KEY": key})
        answer = Client(roles, Listening(), ledger).ask("fast", "s", ASKED, CodeReply)
        assert server.headers[0]["authorization"] == f"Bearer {key}"
    assert answer.note == f"[key] {key[:9]}"
    assert key not in repr(ledger.rows) and key not in "".join(heard) and "[key]" in "".join(heard)


def test_headers_of_the_account_at_openai_go_to_no_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-mine")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-custom\nX-Mine: secret")

    def sent(environ: dict[str, str]) -> dict[str, str]:
        asker = Asker()
        asker.client = make_client(settings(asker.server.url), Ledger(), environ | {"OPENAI_BASE_URL": environ.get(
            "OPENAI_BASE_URL", asker.server.url)})  # fmt: skip
        asker.ask()
        return asker.server.headers[0]

    stranger = sent({"OPENAI_BASE_URL": "https://elsewhere.example/v1"})
    assert stranger["authorization"] == "Bearer none"
    assert not {"openai-organization", "openai-project", "x-mine"} & set(stranger)
    own = sent({})
    assert own["openai-organization"] == "org-mine" and own["x-mine"] == "secret"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("stream", [False, True])
def test_a_redirect_is_not_followed_and_its_target_is_named(
    status: int, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its server would get the prompt, and the headers of the operator's gateway, which the client only takes the key
    from."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Mine: secret")
    with ChatServer() as other:
        target = f"{other.url}/chat/completions"
        asker = Asker(Reply(status, b"", {"Location": target}), stream=stream)
        environ = {"OPENAI_BASE_URL": asker.server.url}
        asker.client = make_client(settings(asker.server.url, stream=stream), Ledger(), environ)
        words = f"answered with {status}, a redirect to {target}, which is not followed. Give the address"
        with pytest.raises(ModelUnavailable, match=re.escape(words)):
            asker.ask()
        assert asker.server.headers[0]["x-mine"] == "secret" and len(asker.server.requests) == 1
        assert not other.requests


@pytest.mark.parametrize(
    "target", ["http://[", "/v2/x", "", "http://b\x80d/", f"http://{'x' * 5_000}", "//u:mykey-0123456789@b"]
)
def test_a_redirect_to_what_is_no_address_is_a_sentence(target: str) -> None:
    asker = Asker(Reply(307, b"", {"Location": target}), api_key_env="MY_KEY", environ={"MY_KEY": "mykey-0123456789"})
    with pytest.raises(ModelUnavailable, match="answered with 307, a redirect to ") as error:
        asker.ask()
    assert "mykey" not in str(error.value) and len(str(error.value)) < 600


def test_a_connection_that_cannot_be_made_is_a_sentence_and_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/certificates.pem")
    asker = Asker()
    with pytest.raises(ModelUnavailable, match=r"no connection to http://127.* can be made .*look at .*SSL_CERT_FILE"):
        asker.ask()
    assert len(asker.ledger.ends) == 1 and not asker.waits


@pytest.mark.parametrize("url", ["127.0.0.1:8000/v1", "not a url", "http://[", "http://host:99999/v1"])
def test_an_address_in_the_environment_is_checked_as_one_in_the_settings_is(url: str) -> None:
    with pytest.raises(Unclear, match="the variable OPENAI_BASE_URL "):
        endpoints({"kind": "openai", "model": "m"}, {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k"})
    asked = endpoints({"kind": "openai", "model": "m", "base_url": "https://box/v1"}, {"OPENAI_BASE_URL": url})
    assert asked["fast"].base_url == "https://box/v1"


@pytest.mark.parametrize(
    "text",
    [
        "https://user:hunter2secret@host/v1",
        "https://host/v1?api-key=hunter2secret&x=1",
        "Authorization: Bearer hunter2secret",
        "Incorrect API key provided: sk-hunter2secret.",
        "{'api_key': 'hunter2secret'}",
    ],
)
def test_what_looks_like_a_secret_is_redacted(text: str) -> None:
    assert "hunter2secret" not in redacted(text)
    assert "hunter2secret" not in redacted_url("https://u:hunter2secret@host:8/v1?key=hunter2secret")


def test_each_role_may_have_its_own_model() -> None:
    asker = Asker(roles={"fast": {"model": "small"}})
    asker.ask()
    assert asker.server.requests[0]["model"] == "small"


# ---- Azure ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("base_url", "url", "header"),
    [
        (
            "https://x.openai.azure.com?api-version=2025-01-01",
            "https://x.openai.azure.com/openai/deployments/m/chat/completions?api-version=2025-01-01",
            "api-key",
        ),
        (
            "https://x.openai.azure.com/openai/v1",
            "https://x.openai.azure.com/openai/v1/chat/completions",
            "authorization",
        ),
        (
            "https://x.openai.azure.com/openai/v1/?api-version=preview",
            "https://x.openai.azure.com/openai/v1/chat/completions?api-version=preview",
            "authorization",
        ),
        (
            "https://x.openai.azure.com/team-a?subscription=7",
            "https://x.openai.azure.com/team-a/openai/deployments/m/chat/completions"
            "?subscription=7&api-version=2024-10-21",
            "api-key",
        ),
    ],
)
def test_azure_is_reached_by_deployment_and_by_its_newer_path(base_url: str, url: str, header: str) -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, content=completion(CODE).body, headers={"Content-Type": "application/json"})

    roles = endpoints(settings(base_url), {"AZURE_OPENAI_API_KEY": "azure-key-0123"})
    client = Client(roles, OpenAIBackend(httpx2.MockTransport(answer)), Ledger())
    assert client.ask("fast", "s", ASKED, CodeReply).note == "n"
    assert str(seen[0].url) == url and "azure-key-0123" in seen[0].headers[header]
    assert "max_completion_tokens" in json.loads(seen[0].content)


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://gateway.example/v1?tenant=7", "https://gateway.example/v1/chat/completions?tenant=7"),
        (
            "https://gateway.example/v1?tag=a&tag=b&empty=&api-version=2",
            "https://gateway.example/v1/chat/completions?tag=a&tag=b&empty=&api-version=2",
        ),
        ("https://gateway.example/v1/chat/completions", "https://gateway.example/v1/chat/completions"),
    ],
)
def test_an_address_is_used_as_it_was_meant(base_url: str, url: str) -> None:
    seen: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(str(request.url))
        return httpx2.Response(200, content=completion(CODE).body, headers={"Content-Type": "application/json"})

    client = Client(endpoints(settings(base_url), {}), OpenAIBackend(httpx2.MockTransport(answer)), Ledger())
    assert client.ask("fast", "s", ASKED, CodeReply).note == "n" and seen == [url]


# ---- providers, prices and keys -----------------------------------------------------------------------
def test_a_default_key_goes_only_to_the_host_it_belongs_to() -> None:
    keys = {
        "OPENAI_API_KEY": "sk-openai", "MISTRAL_API_KEY": "k-mistral", "AZURE_OPENAI_API_KEY": "k-azure",
        "OPENROUTER_API_KEY": "k-router", "OPENAI_BASE_URL": "https://proxy.example/v1", "MINE": "k-mine",
    }  # fmt: skip

    def key(url: str | None, **llm: Any) -> str:
        return endpoints({"kind": "openai", "model": "m", "base_url": url} | llm, keys)["fast"].key

    assert key("https://api.openai.com/v1") == "sk-openai"
    assert key("https://proxy.example/v1") == key(None) == "sk-openai"
    assert key("https://api.mistral.ai/v1") == "k-mistral"
    assert key("https://x.openai.azure.com") == "k-azure"
    assert key("https://stranger.example/v1") == "none"
    assert key("https://api.openai.com.stranger.example/v1") == "none"
    assert key("http://api.openai.com/v1") == "none"
    assert key("https://stranger.example/v1", provider="mistral") == "none"
    assert key("https://stranger.example/v1", api_key_env="MINE") == "k-mine"


def test_a_role_has_its_own_provider_key_and_price() -> None:
    llm = {
        "kind": "openai", "provider": "openrouter", "model": "a/b", "price_in": 1.0, "price_out": 2.0,
        "roles": {
            "fast": {"provider": "mistral", "model": "codestral", "price_in": 3.0, "price_out": 4.0},
            "critic": {"provider": "ollama", "model": "qwen3"},
            "planner": {"api_key_env": "MINE"},
        },
    }  # fmt: skip
    keys = {"OPENROUTER_API_KEY": "k-router", "MISTRAL_API_KEY": "k-mistral", "MINE": "k-mine"}
    roles = endpoints(llm, keys)
    found = {role: (e.base_url, e.key, e.price and tuple(e.price)[:2]) for role, e in roles.items()}
    assert found == {
        "planner": ("https://openrouter.ai/api/v1", "k-mine", (1.0, 2.0)),
        "slow": ("https://openrouter.ai/api/v1", "k-router", (1.0, 2.0)),
        "fast": ("https://api.mistral.ai/v1", "k-mistral", (3.0, 4.0)),
        "critic": ("http://127.0.0.1:11434/v1", "none", (0.0, 0.0)),
    }


def test_a_key_and_a_price_that_were_named_for_one_server_are_not_another_roles_servers() -> None:
    llm = {
        "kind": "openai", "model": "m", "base_url": "https://gw.example/v1", "api_key_env": "MINE",
        "price_in": 1.0, "price_out": 2.0,
        "roles": {
            "fast": {"base_url": "http://gw.example/v1"},
            "critic": {"base_url": "https://gw.example:8443/v1"},
            "planner": {"base_url": "https://gw.example/other/v1"},
        },
    }  # fmt: skip
    roles = endpoints(llm, {"MINE": "k-mine"})
    assert {role: (e.key, e.price is None) for role, e in roles.items()} == {
        "slow": ("k-mine", False), "planner": ("k-mine", False), "fast": ("none", True), "critic": ("none", True),
    }  # fmt: skip
    own = {"critic": {"base_url": "http://other.example/v1", "api_key_env": "MINE"}}
    assert endpoints(llm | {"roles": own}, {"MINE": "k-mine"})["critic"].key == "k-mine"


@pytest.mark.parametrize(
    ("url", "of_account"),
    [
        ("https://api.openai.com/v1", True),
        ("http://api.openai.com/v1", False),
        ("https://proxy.example/v1", True),
        ("https://proxy.example:8443/v1", False),
        ("http://proxy.example/v1", False),
    ],
)
def test_the_accounts_headers_go_where_its_key_goes(url: str, of_account: bool) -> None:
    environ = {"OPENAI_BASE_URL": "https://proxy.example/v1", "OPENAI_API_KEY": "k-openai"}
    found = endpoints({"kind": "openai", "model": "m", "base_url": url}, environ)["slow"]
    assert found.account == of_account and (found.key == "k-openai") == of_account


def test_what_a_server_says_a_call_cost_is_what_it_cost() -> None:
    body = json.loads(completion(CODE).body)
    body["usage"]["cost"] = 0.0123
    asker = Asker(json_reply(200, body), provider="openrouter", environ={"OPENROUTER_API_KEY": "k"})
    asker.ask()
    assert asker.ledger.rows[-1][2].cost == 0.0123 and asker.client.priced


def test_cached_tokens_are_cheaper() -> None:
    body = json.loads(completion(CODE).body)
    body["usage"] |= {"prompt_tokens": 1000, "prompt_tokens_details": {"cached_tokens": 900}}
    asker = Asker(json_reply(200, body), price_in=1.0, price_cached=0.1, price_out=0.0)
    asker.ask()
    assert asker.ledger.rows[-1][2].cost == pytest.approx((100 + 90) / 1e6)


def test_extra_parameters_and_effort_travel_and_are_left_out_once_refused() -> None:
    asker = Asker(rejects("service_tier"), extra={"service_tier": "flex"}, reasoning_effort="low", max_tokens=500)
    asker.ask()
    first, second = asker.server.requests
    assert (first["service_tier"], first["reasoning_effort"], first["max_tokens"]) == ("flex", "low", 500)
    assert "service_tier" not in second and second["reasoning_effort"] == "low"


def test_a_preset_spares_what_its_server_is_known_to_refuse() -> None:
    for provider, sent in (("mistral", "stream_options"), ("deepseek", "json_schema")):
        key = {"MISTRAL_API_KEY": "k", "DEEPSEEK_API_KEY": "k"}
        asker = Asker(provider=provider, environ=key)
        asker.ask()
        assert sent not in json.dumps(asker.server.requests[0])


def test_every_name_of_a_provider_has_its_preset() -> None:
    assert set(PROVIDERS) == set(NAMES)


@pytest.mark.parametrize("page", ["a." * 200_000, "http://" * 60_000, "x@" * 200_000], ids=["dots", "schemes", "ats"])
def test_a_long_error_page_is_searched_for_keys_at_once(page: str) -> None:
    """In time linear in its length: one of 40 kB took 15 seconds."""
    assert redacted(page + " http://me:word@host sk-123456") == page + " http://host sk-[key]"

"""The client gets a usable answer, or one clear sentence, from whatever a server does; every exchange is a row."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from rlgpt.agents import critic, fast, planner, slow
from rlgpt.agents.backends import Failure, OpenAIBackend, Outcome
from rlgpt.agents.client import MOST_WAIT, WARM, Client, make_client
from rlgpt.agents.context import Context
from rlgpt.agents.contracts import CodeReply
from rlgpt.agents.endpoint import RULES_MODEL, endpoints, redacted, redacted_url
from rlgpt.agents.errors import BudgetReached, MissingKey, ModelUnavailable, NotRecorded, UselessReply
from rlgpt.agents.journal import Call, Held
from rlgpt.agents.prices import listed
from rlgpt.agents.providers import PROVIDERS
from rlgpt.store.providers import NAMES
from tests.agents.chat_server import (
    ChatServer,
    Reply,
    chunks,
    completion,
    event,
    json_reply,
    rate_limited,
    rejects,
    server_error,
)
from tests.agents.histories import Told, context
from tests.agents.toys import BREAD, Ledger, bakery

CODE = '{"source": "def dig(view):\\n    yield 0\\n", "note": "n"}'
ASKED = [{"role": "system", "content": "You write code."}, {"role": "user", "content": "Dig."}]


def settings(url: str, **more: Any) -> dict[str, Any]:
    usual = {"kind": "openai", "model": "m", "timeout": 60.0, "temperature": 0.0, "patience": 0.0, "stream": True}
    return usual | {"base_url": url} | more


class Asker:
    """A client against a scripted server, with what it was told and how long it waited."""

    def __init__(self, *script: Reply | str, environ: dict[str, str] | None = None, **llm: Any) -> None:
        self.server = ChatServer(lambda request: json.loads(completion(CODE).body), script)
        self.ledger, self.waits = Ledger(), list[float]()
        self.client: Client = make_client(
            settings(self.server.url, **llm), self.ledger, environ or {}, sleep=self.waits.append
        )

    def ask(self, **kwargs: Any) -> CodeReply:
        with self.server:
            return self.client.ask("fast", "write/dig", ASKED, CodeReply, **kwargs)


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
    assert listed("my-finetune") is None


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


# ---- keys -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("url", "variable"),
    [(None, "OPENAI_API_KEY"), ("https://x.openai.azure.com", "AZURE_OPENAI_API_KEY")],
)
def test_a_missing_key_is_a_sentence_that_names_the_variable(url: str | None, variable: str) -> None:
    with pytest.raises(MissingKey, match=f"set {variable} in the environment"):
        make_client({"kind": "openai", "model": "m", "base_url": url}, Ledger(), {})


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


def outcomes_of(ledger: Ledger) -> Any:
    def recorded(step: str, request_hash: str | None) -> list[Outcome]:
        return [
            Outcome(error=row) if state == "failed" else Outcome(reply=row.reply)
            for state, call, row in ledger.rows
            if state in ("answered", "failed") and call.step == step and request_hash in (None, call.request_hash)
        ]

    return recorded


def test_a_replay_gives_the_same_exchanges_without_a_network() -> None:
    asker = Asker("429", rejects("temperature"), "malformed")
    first = asker.ask()
    llm = settings(asker.server.url) | {"kind": "replay:s1", "replayed": "openai"}
    ledger = Ledger()
    client = make_client(llm, ledger, {}, recorded=outcomes_of(asker.ledger), sleep=lambda s: None)
    assert client.ask("fast", "write/dig", ASKED, CodeReply) == first
    assert ledger.ends == asker.ledger.ends
    assert [c.request_hash for _, c, _ in ledger.rows] == [c.request_hash for _, c, _ in asker.ledger.rows]


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


def test_a_failure_survives_its_text() -> None:
    failure = Failure("rejected temperature", "the server does not take it")
    assert Failure.load(str(failure)).rejected == "temperature"
    assert Failure.load(str(Failure("429", "slow down"))).transient


# ---- the whole chain ------------------------------------------------------------------------------
def chain(client: Client) -> list[Any]:
    """Task plan, plan, code, its critique, refinement, configuration, the iteration's critique."""
    told = Told(long_horizon=True)

    def there() -> Context:
        return context(told, bakery(), BREAD)

    replies: list[Any] = [planner.order(client, there())]
    told.tasks("make_bread").iteration()
    replies.append(plan := slow.plan(client, there()))
    told.plan(plan.executor, **{item.name: item.mode for item in plan.sub_actions})
    assert told.history.plan
    item = told.history.plan.items[1]
    replies.append(fast.write(client, there(), item, 1))
    told.code(item.name).trial(item.name, 1)
    trial = {"before": {"flour": 0}, "after": {"flour": 1}, "end": "return", "message": "", "yields": ["use"]}
    replies.append(critic.judge_item(client, there(), item, {"good": trial, "bad": None}))
    told.verdict(item.name)
    replies.append(slow.refine(client, there(), [item.name], True))
    replies.append(config := fast.configure(client, there()))
    told.config(**config.model_dump()).train().evaluate(4, run=1)
    replies.append(critic.judge_iteration(client, there(), 0))
    return replies


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


def test_every_name_of_a_provider_has_its_preset() -> None:
    assert set(PROVIDERS) == set(NAMES)

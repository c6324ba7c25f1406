"""What a model tries before it answers: calls in any shape, budgets, servers without tools; nothing is paid twice."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rlgpt.agents.client import Client, make_client
from rlgpt.agents.contracts import CodeReply
from rlgpt.agents.endpoint import endpoints
from rlgpt.agents.errors import AgentError, ModelUnavailable, UselessReply
from rlgpt.agents.probes import Look, Probe, Tool, TryAction
from rlgpt.agents.providers import PROVIDERS
from tests.agents.chat_server import ChatServer, Reply, completion, event, json_reply, streamed
from tests.agents.tool_models import call, calling, in_pieces, offers, turns
from tests.agents.toys import Ledger
from tests.patience import PATIENCE

QUESTION = [{"role": "system", "content": "You write code."}, {"role": "user", "content": "write"}]
CODE = '{"source": "def walk(view):\\n    yield \\"noop\\"\\n", "note": "n"}'
SOURCE = {"source": "def walk(view):\n    yield 'left'\n"}


def answered(content: str = CODE) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(completion(content).body)
    return tree


class Tools:
    """Two tools that remember what they were given."""

    def __init__(self) -> None:
        self.ran: list[object] = []

    @property
    def offered(self) -> list[Tool]:
        return [Tool("try_action", "Try it.", TryAction, self.run), Tool("look", "Look.", Look, self.run)]

    def run(self, arguments: TryAction | Look) -> Probe:
        self.ran.append(arguments.source if isinstance(arguments, TryAction) else (arguments.seed, arguments.step))
        return Probe(f"result {len(self.ran)}", 7)


def client_of(server: ChatServer, ledger: Ledger, folder: Path | None = None, **more: Any) -> Client:
    llm = {"kind": "openai", "model": "m", "base_url": server.url, "price_in": 1, "price_out": 1, "probes": 4, **more}
    return make_client(llm, ledger, {}, sleep=lambda s: None, folder=folder)


def ask(client: Client, tools: Tools, step: str = "write/0.0/walk/1") -> CodeReply:
    return client.ask("fast", step, QUESTION, CodeReply, tools=tools.offered)


def ask_once(calls: Sequence[dict[str, Any]], content: str | None = None, **more: Any) -> tuple[Tools, ChatServer]:
    """What a model brings about that makes these calls once and then answers."""

    def answer(request: dict[str, Any]) -> Any:
        if not offers(request) or turns(request):
            return answered()
        told = calling(calls, content)
        return in_pieces(told) if request.get("stream") and all(c["index"] is not None for c in calls) else told

    tools, ledger = Tools(), Ledger()
    with ChatServer(answer) as server:
        assert ask(client_of(server, ledger, **more), tools).note == "n"
    assert set(ledger.ends) == {""}, "a turn with calls is no fault"
    assert [env_steps for _, _, env_steps in ledger.probes.values()].count(7) == len(tools.ran)
    return tools, server


def last_message(server: ChatServer) -> str:
    return str(server.requests[-1]["messages"][-1]["content"])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("calls", "ran", "told"),
    [
        ([call("try_action", SOURCE)], [SOURCE["source"]], "result 1"),
        ([call("look", {"seed": 1, "step": 20})], [(1, 20)], "result 1"),
        ([call("look", {"seed": 1, "step": 0}, "a", 0), call("look", {"seed": 2, "step": 0}, "b", 1)],
         [(1, 0), (2, 0)], "result 2"),
        ([call("look", '{"seed": 1, "step": 0, "why": "I wonder"}')], [(1, 0)], "result 1"),
        ([call("look", '```json\n{"seed": "1", "step": 0,}\n```')], [(1, 0)], "result 1"),
        ([call("look", {"seed": 1, "step": 0}, "")], [(1, 0)], "result 1"),
        ([call("look", "")], [], "cannot be used"),
        ([call("look", "seed 1, please")], [], "cannot be used"),
        ([call("look", "[" * 5000)], [], "cannot be used"),
        ([call("look", '{"seed": -1, "step": 1e99}')], [], "cannot be used"),
        ([call("look", '{"seed": "first"}')], [], "cannot be used"),
        ([call("try_action", {"source": "x" * 30_000})], [], "at most 16384 characters"),
        ([call("try_action", {"source": "\ud800"})], [], "cannot be used"),
        ([call("try_action", {"source": "\x00 ````"})], ["\x00 ````"], "result 1"),
        ([call("run_shell", {"command": "ls"})], [], "there is no tool 'run_shell'; there are: try_action, look"),
        ([call("x" * 500, {})], [], "there is no tool"),
    ],
)  # fmt: skip
def test_a_call_in_any_shape_is_run_or_told_what_is_wrong(
    calls: list[dict[str, Any]], ran: list[object], told: str, stream: bool
) -> None:
    tools, server = ask_once(calls, stream=stream)
    assert tools.ran == ran
    assert told in last_message(server)
    assert len(server.requests) == 2
    assert [message["role"] for message in server.requests[-1]["messages"]] == ["system", "user"]


@pytest.mark.parametrize(
    "message",
    [
        {"tool_calls": [{"function": {"name": "look", "arguments": {"seed": 1, "step": 0}}}]},
        {"tool_calls": [{"id": 7, "index": "0", "function": {"name": "look", "arguments": '{"seed":1,"step":0}'}}]},
        {"tool_calls": [{"id": None, "type": None, "function": {"name": "look", "arguments": '{"seed":1,"step":0}'}}],
         "content": ""},
        {"function_call": {"name": "look", "arguments": '{"seed":1,"step":0}'}},
        {"tool_calls": [None, {"function": 7}, {"function": {"name": "look", "arguments": '{"seed":1,"step":0}'}}]},
        {"tool_calls": [{"function": {"name": "look", "arguments": '{"seed":1,"step":0}'}}], "content": "Let me see."},
    ],
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
def test_a_call_is_understood_as_servers_write_it(message: dict[str, Any], stream: bool) -> None:
    def answer(request: dict[str, Any]) -> Any:
        if turns(request):
            return answered()
        tree = calling([])
        tree["choices"][0]["message"] = {"role": "assistant", "content": None} | message
        if not request.get("stream"):
            return tree
        delta = {"choices": [{"delta": tree["choices"][0]["message"], "finish_reason": None}]}
        done = {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}
        return Reply(pieces=[event(delta), event(done)])

    tools, ledger = Tools(), Ledger()
    with ChatServer(answer) as server:
        ask(client_of(server, ledger, stream=stream), tools)
    assert tools.ran == [(1, 0)] and ledger.ends == ["", ""]


@pytest.mark.parametrize("idents", [("", ""), ("a", "b")])
def test_calls_of_one_stream_that_all_have_the_index_0_are_told_apart(idents: tuple[str, str]) -> None:
    def answer(request: dict[str, Any]) -> Any:
        if turns(request):
            return answered()
        deltas = [{"tool_calls": [call("look", {"seed": seed, "step": 0}, ident)]} for seed, ident in enumerate(idents)]
        done = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
        return Reply(pieces=[*(event({"choices": [{"delta": delta}]}) for delta in deltas), event(done)])

    tools = Tools()
    with ChatServer(answer) as server:
        ask(client_of(server, Ledger(), stream=True), tools)
    assert tools.ran == [(0, 0), (1, 0)]


def test_an_answer_beside_calls_is_the_answer_and_prose_beside_them_is_not() -> None:
    tools, server = ask_once([call("look", {"seed": 0, "step": 0})], content=CODE)
    assert not tools.ran and len(server.requests) == 1
    tools, server = ask_once([call("look", {"seed": 0, "step": 0})], content="Let me look {first}.")
    assert tools.ran and "You said:\n```text said\nLet me look {first}.\n```" in last_message(server)
    tools, server = ask_once([call("look", json.loads(CODE))], content="Let me look.")
    assert len(server.requests) > 1, "what an offered tool is called with is no answer"


def test_an_answer_as_the_arguments_of_a_tool_of_its_own_is_the_answer() -> None:
    tools, server = ask_once([call("CodeReply", CODE)])
    assert not tools.ran and len(server.requests) == 1


def test_calls_without_end_come_to_an_end_and_the_last_request_offers_none() -> None:
    tools, ledger = Tools(), Ledger()

    def answer(request: dict[str, Any]) -> Any:
        return calling([call("look", {"seed": 1, "step": 0})])  # whatever it is told

    with ChatServer(answer) as server, pytest.raises(UselessReply):
        ask(client_of(server, ledger), tools)
    assert len(tools.ran) == 4
    asked = [bool(offers(request)) for request in server.requests]
    assert asked == [True] * 4 + [False] * 4, "and then as ever: a repair turn, and once more afresh"
    assert "No calls are left" in server.requests[4]["messages"][-1]["content"]


def test_of_too_many_calls_at_once_the_first_are_run_and_the_others_are_counted() -> None:
    tools, server = ask_once([call("look", {"seed": n, "step": 0}, f"c{n}", n) for n in range(900)])
    assert tools.ran == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert "because no more were left: 896" in last_message(server)
    assert len(last_message(server)) < 2000


def test_arguments_that_never_end_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlgpt.agents.completions.LONGEST", 5_000)
    piece = {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "x" * 100}}]}}]}

    def answer(request: dict[str, Any]) -> Any:
        if len(server.requests) > 1:
            return answered()
        return Reply(pieces=[event(piece)] * 200)

    ledger = Ledger()
    with ChatServer(answer) as server:
        ask(client_of(server, ledger, stream=True), tools := Tools())
    assert not tools.ran and ledger.ends[0].startswith("truncated") and ledger.ends[1:] == [""]


REFUSALS = {
    # https://github.com/langchain4j/langchain4j/issues/3475
    "vllm": json_reply(400, {"object": "error", "type": "BadRequestError", "code": 400, "message":
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'}),
    # https://github.com/containers/ramalama/issues/988
    "llama.cpp": json_reply(500, {"error": {"code": 500, "type": "server_error", "message":
        "tools param requires --jinja flag"}}),
    # https://github.com/ollama/ollama/issues/6027
    "ollama": json_reply(400, {"error": {"message": "registry.ollama.ai/library/gemma:2b does not support tools",
        "type": "api_error", "param": None, "code": None}}),
    # https://github.com/googleapis/python-genai/issues/867, in the list that the compatible server sends
    "gemini": json_reply(400, [{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message":
        "Function calling with a response mime type: 'application/json' is unsupported"}}]),
    # https://github.com/evalstate/fast-agent/issues/122
    "openrouter": json_reply(404, {"error": {"code": 404, "message":
        "No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs"}}),
    # https://github.com/editor-code-assistant/eca/issues/231, for another name that its schema lacks
    "mistral": json_reply(422, {"object": "error", "message": {"detail": [
        {"type": "extra_forbidden", "loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}]}}),
    # https://github.com/vercel/ai/pull/16540
    "groq": json_reply(400, {"error": {"type": "invalid_request_error", "message":
        "json mode cannot be combined with tool/function calling"}}),
    "fastapi": json_reply(422, {"detail": [{"loc": ["body", "tools", 0], "msg": "extra fields not permitted"}]}),
    "silent": Reply(400, b"", {}),
    "broken": json_reply(500, {"error": "internal error"}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_server_without_tools_is_found_out_once_and_asked_without(name: str, api: str) -> None:
    def answer(request: dict[str, Any]) -> Any:
        if offers(request):
            return REFUSALS[name]
        output = [{"content": [{"type": "output_text", "text": CODE}]}]
        body = {"object": "response", "status": "completed", "output": output}
        return body if api == "responses" else answered()

    tools, ledger = Tools(), Ledger()
    with ChatServer(answer) as server:
        client = client_of(server, ledger, api=api)
        ask(client, tools)
        ask(client, tools, "write/0.0/walk/2")
        again = client_of(server, ledger, api=api)
        ask(again, tools, "write/0.0/walk/3")
    refused = [end.partition(":")[0] for end in ledger.ends if end]
    wanted = {"silent": ["suspected tools"], "broken": ["500", "suspected tools"]}.get(name, ["rejected tools"])
    assert refused == wanted
    assert [bool(offers(request)) for request in server.requests] == [True] * len(wanted) + [False] * 3
    kept = "response_format" if api == "chat" else "text"
    assert kept in server.requests[-1], "nothing else was given up"


def test_a_server_that_refuses_in_the_middle_is_asked_on_with_what_was_found_out() -> None:
    def answer(request: dict[str, Any]) -> Any:
        if not turns(request):
            return calling([call("try_action", SOURCE)])
        return REFUSALS["vllm"] if offers(request) else answered()

    tools, ledger = Tools(), Ledger()
    with ChatServer(answer) as server:
        ask(client_of(server, ledger), tools)
    assert [end.partition(":")[0] for end in ledger.ends] == ["", "rejected tools", ""]
    assert "result 1" in last_message(server) and not offers(server.requests[-1])


def test_what_was_tried_is_left_out_where_the_model_cannot_read_so_much() -> None:
    def answer(request: dict[str, Any]) -> Any:
        if offers(request):
            return calling([call("try_action", {"source": "# long\n" * 2_000})])
        if turns(request):
            return json_reply(400, {"error": {"message":
                "This model's maximum context length is 2000 tokens. However, your messages resulted in 9000 tokens.",
                "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}})  # fmt: skip
        return answered()

    tools, ledger = Tools(), Ledger()
    with ChatServer(answer) as server:
        assert ask(client_of(server, ledger), tools).note == "n"
    assert len(tools.ran) == 4 and server.requests[-1]["messages"] == QUESTION


HALF = "\ud83d"


@pytest.mark.parametrize(
    "first",
    [
        answered(f"{HALF} hm"),
        calling([call(HALF, {})]),
        calling([call("look", '{"seed": "' + HALF)]),
        calling([call("try_action", '{"source": "' + HALF + '"}')]),
        calling([call("look", {"seed": 0, "step": 0})], HALF),
        json_reply(500, {"error": {"message": HALF}}),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_half_a_surrogate_pair_is_survived_wherever_it_stands(first: Any, stream: bool) -> None:
    def answer(request: dict[str, Any]) -> Any:
        if len(server.requests) > 1:
            return answered()
        return streamed(first) if stream and not isinstance(first, Reply) else first

    with ChatServer(answer) as server:
        assert ask(client_of(server, Ledger(), stream=stream), Tools()).note == "n"


def test_a_surrogate_pair_that_a_stream_has_split_is_put_together() -> None:
    content = CODE.replace('"n"', '"\ud83d\ude00"')
    cut = content.index("\ude00")

    def answer(request: dict[str, Any]) -> Any:
        deltas = ({"choices": [{"delta": {"content": part}}]} for part in (content[:cut], content[cut:]))
        return Reply(pieces=[event(delta) for delta in deltas])

    with ChatServer(answer) as server:
        assert ask(client_of(server, Ledger(), stream=True), Tools()).note == "\U0001f600"


def test_a_model_behind_the_responses_api_calls_tools_too() -> None:
    def body(output: list[dict[str, Any]]) -> dict[str, Any]:
        return {"object": "response", "status": "completed", "output": output}

    def answer(request: dict[str, Any]) -> Any:
        first = {"type": "function_call", "call_id": "c", "name": "try_action", "arguments": json.dumps(SOURCE)}
        text = {"type": "message", "content": [{"type": "output_text", "text": CODE}]}
        told = body([text] if turns(request) else [{"type": "reasoning", "summary": []}, first])
        if not request.get("stream"):
            return told
        done = {"type": "response.completed", "response": told}
        delta = {"type": "response.output_text.delta", "delta": CODE}
        return Reply(pieces=[*([event(delta)] if turns(request) else []), event(done)])

    for stream in (False, True):
        tools = Tools()
        with ChatServer(answer) as server:
            ask(client_of(server, Ledger(), api="responses", stream=stream), tools)
        assert tools.ran == [SOURCE["source"]]
        assert [tool["type"] for tool in server.requests[0]["tools"]] == ["function", "function"]


def test_nothing_is_run_or_asked_again_that_a_row_tells_of() -> None:
    def answer(request: dict[str, Any]) -> Any:
        if turns(request) < 2:
            return calling([call("look", {"seed": turns(request), "step": 0})])
        return json_reply(401, {"error": "no"}) if len(server.requests) == 3 else answered()

    ledger = Ledger()
    with ChatServer(answer) as server:
        with pytest.raises(ModelUnavailable):  # the worker ends here
            ask(client_of(server, ledger), before := Tools())
        asked = len(server.requests)
        ask(client_of(server, ledger), after := Tools())
    assert before.ran == [(0, 0), (1, 0)] and after.ran == []
    assert len(server.requests) == asked + 1


def test_what_is_asked_ahead_waits_at_its_first_call_and_is_not_asked_again(tmp_path: Path) -> None:
    def answer(request: dict[str, Any]) -> Any:
        return answered() if turns(request) or not offers(request) else calling([call("look", {"seed": 0, "step": 0})])

    ledger, tools, early = Ledger(), Tools(), Tools()
    with ChatServer(answer) as server:
        client = client_of(server, ledger, tmp_path, parallel=4)
        client.ask("slow", "plan", QUESTION, CodeReply)
        aside = client.aside()
        assert aside is not None

        def look_ahead() -> None:
            with contextlib.suppress(AgentError):
                ask(aside, early)

        thread = threading.Thread(target=look_ahead, daemon=True)
        thread.start()
        thread.join(20 * PATIENCE)
        assert not thread.is_alive() and len(server.requests) == 2 and not early.ran
        again = client_of(server, ledger, tmp_path, parallel=4)  # the worker was killed: its file is what is left
        ask(again, tools)
        again.settle()
    assert tools.ran == [(0, 0)] and len(server.requests) == 3
    assert not [end for end in ledger.ends if end]


def test_the_session_s_budget_is_the_last_word_and_a_question_begun_keeps_its_own() -> None:
    def answer(request: dict[str, Any]) -> Any:
        return calling([call("look", {"seed": 0, "step": 0})]) if offers(request) else answered()

    ledger = Ledger(most_probes=5)
    with ChatServer(answer) as server:
        client = client_of(server, ledger)
        for number in (1, 2, 3):
            ask(client, tools := Tools(), f"write/0.0/walk/{number}")
        assert not tools.ran and len(ledger.probes) == 5
        asked = len(server.requests)
        ask(client_of(server, ledger), tools, "write/0.0/walk/2")  # as after a restart
        assert len(server.requests) == asked and not tools.ran
    assert [bool(offers(request)) for request in server.requests] == [True] * 4 + [False, True, False, False]


def test_only_known_providers_are_asked_unless_the_operator_says_so() -> None:
    def probes(**more: Any) -> int:
        llm = {"kind": "openai", "model": "m", "api_key_env": "K"} | more
        return endpoints(llm, {"K": "k", **{p.key: "k" for p in PROVIDERS.values() if p.key}})["fast"].probes

    found = {name for name in PROVIDERS if probes(provider=name, base_url=PROVIDERS[name].base_url or "https://a.b")}
    assert found == {"openai", "azure", "openrouter", "anthropic", "gemini", "mistral", "deepseek"}
    assert probes(base_url="http://127.0.0.1:9/v1") == 0
    assert probes(base_url="http://127.0.0.1:9/v1", probes=3) == 3
    assert probes(provider="openai", probes=0) == 0
    assert endpoints({"kind": "rules"}, {})["fast"].probes == 0

# ruff: noqa: E501  (the words of servers stand as they came)
"""Servers that speak Chat Completions each in their own way, answered by the rule-based model.

Every dialect takes, refuses and shapes what its documentation, or an error that its users reported, says; the source
stands beside it. `serve(name)` is a ChatServer in that dialect. Tokens are counted as four bytes each.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from rlgpt.agents.rules.model import respond
from tests.agents.chat_server import DONE, ChatServer, Reply, chunks, event, json_reply

Tree = dict[str, Any]
MAX_TOKENS = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)
CONTEXT = 16_000
"""Tokens of the models with a short context: the longest prompt fits, 16,000 tokens of reply beside it do not."""


def prompt_tokens(request: Tree) -> int:
    return len(json.dumps(request.get("messages") or request.get("input"))) // 4


def cap(request: Tree) -> int:
    return int(
        request.get("max_tokens") or request.get("max_completion_tokens") or request.get("max_output_tokens") or 16
    )


def form(request: Tree) -> str:
    return str((request.get("response_format") or {}).get("type", "text"))


def knows_schema(request: Tree) -> bool:
    """Whether the model can know what it is asked for: from an enforced format, or from words."""
    return form(request) == "json_schema" or '"additionalProperties": false' in request["messages"][0]["content"]


def with_usage(answer: Tree, request: Tree, **more: Any) -> Tree:
    asked, replied = prompt_tokens(request), len(str(answer["choices"][0]["message"]["content"])) // 4
    usage = {"prompt_tokens": asked, "completion_tokens": replied, "total_tokens": asked + replied}
    return answer | {"usage": usage | more}


def with_content(answer: Tree, content: Any, **message: Any) -> Tree:
    choice = answer["choices"][0]
    told = {k: v for k, v in choice["message"].items() if k != "refusal"} | {"content": content} | message
    return answer | {"choices": [choice | {"message": told}]}


def content_of(answer: Tree) -> str:
    return str(answer["choices"][0]["message"]["content"])


class Dialect:
    """OpenAI's own form, which holds where a dialect does not say otherwise:
    https://platform.openai.com/docs/api-reference/chat/create."""

    def __init__(self) -> None:
        self.seen = 0

    def refuse(self, request: Tree) -> Reply | None:
        return None

    def shape(self, answer: Tree, request: Tree) -> Tree:
        return with_usage(answer, request)

    def stream(self, answer: Tree, request: Tree) -> Reply:
        usage = bool((request.get("stream_options") or {}).get("include_usage"))
        return Reply(pieces=[*(event(chunk) for chunk in chunks(answer, usage=usage)), DONE])

    def __call__(self, request: Tree) -> Reply:
        self.seen += 1
        refused = self.refuse(request)
        if refused is not None:
            return refused
        answer = self.shape(respond(request), request)
        return self.stream(answer, request) if request.get("stream") else json_reply(200, answer)


class Vllm(Dialect):
    """https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html; the two refusals as in
    https://github.com/vllm-project/vllm/issues/20409 and https://github.com/vllm-project/vllm/issues/16880."""

    def refuse(self, request: Tree) -> Reply | None:
        asked = prompt_tokens(request)
        if asked + cap(request) > CONTEXT:
            return self.error(
                f"This model's maximum context length is {CONTEXT} tokens. However, you requested "
                f"{asked + cap(request)} tokens ({asked} in the messages, {cap(request)} in the completion). Please reduce the length of the "
                "messages or completion."
            )
        if form(request) == "json_schema":
            return self.error("The provided JSON schema contains features not supported by xgrammar.")
        return None

    def error(self, message: str) -> Reply:
        return json_reply(
            400, {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}
        )

    def shape(self, answer: Tree, request: Tree) -> Tree:
        content = content_of(answer) if knows_schema(request) else "Sure! What shall I write?"
        thought = with_content(answer, content, reasoning_content="The user wants {json}.", tool_calls=[])
        return with_usage(thought, request, prompt_tokens_details=None)


class LlamaCpp(Dialect):
    """https://github.com/ggml-org/llama.cpp/tree/master/tools/server: 503 while the model loads, `timings` in replies,
    a prompt that does not fit (https://github.com/ggml-org/llama.cpp/pull/15780), and a grammar that cannot be made
    (https://github.com/ggml-org/llama.cpp/pull/19349; earlier versions answered unconstrained)."""

    def refuse(self, request: Tree) -> Reply | None:
        if self.seen == 1:
            return self.error(503, "Loading model", "unavailable_error")
        if form(request) == "json_schema":
            return self.error(400, "failed to parse grammar", "invalid_request_error")
        asked = prompt_tokens(request)
        if asked > CONTEXT:
            message = "the request exceeds the available context size, try increasing it"
            return self.error(400, message, "exceed_context_size_error", n_prompt_tokens=asked, n_ctx=CONTEXT)
        return None

    def error(self, code: int, message: str, kind: str, **more: Any) -> Reply:
        return json_reply(code, {"error": {"code": code, "message": message, "type": kind} | more})

    def shape(self, answer: Tree, request: Tree) -> Tree:
        return with_usage(answer, request) | {"timings": {"predicted_per_second": 31.5}}


class LlamaCppPython(Dialect):
    """https://llama-cpp-python.readthedocs.io/en/latest/server/: response_format is `text` or `json_object`, refused
    with a 500; the context as https://github.com/abetlen/llama-cpp-python/blob/main/llama_cpp/server/errors.py words
    it; no `stream_options`, so no usage in a stream."""

    def refuse(self, request: Tree) -> Reply | None:
        if form(request) == "json_schema":
            return self.error(
                500,
                "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be "
                "'text' or 'json_object'\", 'input': 'json_schema', 'ctx': {'expected': \"'text' or 'json_object'\"}}]",
                "internal_server_error",
            )
        asked = prompt_tokens(request)
        if asked + cap(request) > CONTEXT:
            return self.error(
                400,
                f"This model's maximum context length is {CONTEXT} tokens. However, you requested "
                f"{asked + cap(request)} tokens ({asked} in the messages, {cap(request)} in the completion). "
                "Please reduce the length of the messages or completion.",
                "invalid_request_error", param="messages", code="context_length_exceeded",
            )  # fmt: skip
        return None

    def error(self, status: int, message: str, kind: str, **more: Any) -> Reply:
        return json_reply(status, {"error": {"message": message, "type": kind, "param": None, "code": None} | more})

    def stream(self, answer: Tree, request: Tree) -> Reply:
        return Reply(pieces=[*(event(chunk) for chunk in chunks(answer, usage=False)), DONE])


class Ollama(Dialect):
    """https://docs.ollama.com/api/openai-compatibility: formats are taken and, by thinking models, thought about aloud
    first; or the answer comes as a call of a tool."""

    def shape(self, answer: Tree, request: Tree) -> Tree:
        content = content_of(answer)
        if self.seen % 2:
            return with_usage(
                with_content(answer, f"<think>They want {{json}}, I guess.\n</think>\n\n{content}"), request
            )
        call = {"id": "call_1", "index": 0, "type": "function"}
        function = {"name": "answer", "arguments": json.loads(content)}
        return with_usage(with_content(answer, "", tool_calls=[call | {"function": function}]), request)


class LmStudio(Dialect):
    """https://lmstudio.ai/docs/developer/openai-compat; {"error": "text"} as in
    https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/189, its words as in
    https://github.com/LoadShine/tada/issues/16. That json_schema is refused as well, so that only `text` is left, is
    made up here, as the worst case: we know of no report of it."""

    def refuse(self, request: Tree) -> Reply | None:
        if form(request) == "json_object":
            return json_reply(400, {"error": "'response_format.type' must be 'json_schema' or 'text'"})
        if form(request) == "json_schema":
            return json_reply(400, {"error": "Structured output is not available for this model's engine."})
        asked = prompt_tokens(request)
        if asked > CONTEXT:
            return json_reply(
                400,
                {
                    "error": f"Trying to keep the first {asked} tokens when context the overflows. However, the model "
                    f"is loaded with context length of only {CONTEXT} tokens, which is not enough. Try to load the model "
                    "with a larger context length, or provide a shorter input"
                },
            )
        return None


class Tgi(Dialect):
    """https://huggingface.co/docs/text-generation-inference/reference/api_reference: serde refuses what it does not
    know as plain text; validation errors of a stream come inside of it with status 200
    (https://github.com/huggingface/text-generation-inference/issues/2749)."""

    def refuse(self, request: Tree) -> Reply | None:
        asked = prompt_tokens(request)
        known = {"json_schema": "unknown variant `json_schema`, expected one of `json`, `json_object`, `regex`",
                 "json_object": "missing field `value`"}  # fmt: skip
        if form(request) in known:
            text = f"Failed to deserialize the JSON body into the target type: response_format: {known[form(request)]}"
            return Reply(422, text.encode(), {"Content-Type": "text/plain; charset=utf-8"})
        if asked + cap(request) > CONTEXT:
            message = (
                f"Input validation error: `inputs` tokens + `max_new_tokens` must be <= {CONTEXT}. Given: {asked} "
                f"`inputs` tokens and {cap(request)} `max_new_tokens`"
            )
            error = {"error": message, "error_type": "validation"}
            return Reply(pieces=[event(error)]) if request.get("stream") else json_reply(422, error)
        return None

    def stream(self, answer: Tree, request: Tree) -> Reply:
        return Reply(pieces=[event(chunk).replace(b"data: ", b"data:") for chunk in chunks(answer)])


class Mistral(Dialect):
    """https://docs.mistral.ai/api: what is not in the schema is a 422
    (https://github.com/editor-code-assistant/eca/issues/231); content of reasoning models is a list of parts
    (https://docs.mistral.ai/capabilities/reasoning)."""

    KNOWN = ("model", "messages", "temperature", "max_tokens", "stream", "response_format", "top_p", "random_seed")

    def refuse(self, request: Tree) -> Reply | None:
        strange = next((name for name in request if name not in self.KNOWN), None)
        if strange is None:
            return None
        detail = {"type": "extra_forbidden", "loc": ["body", strange], "msg": "Extra inputs are not permitted"}
        tree = {"object": "error", "message": {"detail": [detail | {"input": request[strange]}]}}
        return json_reply(422, tree | {"type": "invalid_request_error", "param": None, "code": None})

    def shape(self, answer: Tree, request: Tree) -> Tree:
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "A {plan} first."}]}
        parts = [thinking, {"type": "text", "text": content_of(answer)}]
        return with_usage(with_content(answer, parts), request)


class DeepSeek(Dialect):
    """https://api-docs.deepseek.com/api/create-chat-completion: response_format is text or json_object
    (https://github.com/llm-exe/llm-exe/issues/662), max_tokens at most 8192, comments keep a stream alive (https://api-docs.deepseek.com/quick_start/rate_limit)."""

    def refuse(self, request: Tree) -> Reply | None:
        if form(request) == "json_schema":
            return self.error("This response_format type is unavailable now")
        if cap(request) > 8192:
            return self.error("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]")
        if form(request) == "json_object" and "json" not in json.dumps(request["messages"]).lower():
            return self.error(
                "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'."
            )
        return None

    def error(self, message: str) -> Reply:
        kind = "invalid_request_error"
        return json_reply(400, {"error": {"message": message, "type": kind, "param": None, "code": kind}})

    def shape(self, answer: Tree, request: Tree) -> Tree:
        thought = with_content(answer, content_of(answer), reasoning_content="First, {think}.")
        asked = prompt_tokens(request)
        return with_usage(
            thought, request, prompt_cache_hit_tokens=asked // 2, prompt_cache_miss_tokens=asked - asked // 2
        )

    def stream(self, answer: Tree, request: Tree) -> Reply:
        pieces = [b": keep-alive\n\n", *(event(chunk) for chunk in chunks(answer)), DONE]
        return Reply(pieces=pieces)


class Anthropic(Dialect):
    """https://docs.claude.com/en/api/openai-sdk: "response_format: ignored"; the cap as the API of the messages words it
    (https://docs.claude.com/en/api/errors)."""

    def refuse(self, request: Tree) -> Reply | None:
        if cap(request) > 8192:
            message = (
                f"max_tokens: {cap(request)} > 8192, which is the maximum allowed number of output tokens for claude-3-5-"
                "sonnet-20241022"
            )
            error = {
                "code": "invalid_request_error",
                "message": message,
                "type": "invalid_request_error",
                "param": None,
            }
            return json_reply(400, {"error": error})
        return None

    def shape(self, answer: Tree, request: Tree) -> Tree:
        told = '"additionalProperties": false' in request["messages"][0]["content"]
        content = content_of(answer) if told else json.dumps({"answer": "Which format would you like?"})
        return with_usage(
            with_content(answer, f"Here is the {{JSON}}:\n\n```json\n{content}\n```\n\nShall I go on?"), request
        )


class Gemini(Dialect):
    """https://ai.google.dev/gemini-api/docs/openai: an error is a list of one; a schema may have too many states
    (https://github.com/cline/cline/issues/7897); thoughts are counted in the total only."""

    def refuse(self, request: Tree) -> Reply | None:
        if form(request) != "json_schema":
            return None
        message = (
            "The specified schema produces a constraint that has too many states for serving. Typical causes of this "
            "error are schemas with lots of text (for example, very long property or enum names)."
        )
        return json_reply(400, [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}])

    def shape(self, answer: Tree, request: Tree) -> Tree:
        told = with_usage(answer, request)
        return told | {"usage": told["usage"] | {"total_tokens": told["usage"]["total_tokens"] + 40}}


class OpenRouter(Dialect):
    """https://openrouter.ai/docs/api-reference/errors: an error with status 200, or inside of a stream after it began;
    https://openrouter.ai/docs/api-reference/streaming: comments; `usage.cost` in USD."""

    def refuse(self, request: Tree) -> Reply | None:
        error = {"code": 502, "message": "Provider returned error", "metadata": {"provider_name": "Some"}}
        if self.seen == 1:
            return json_reply(200, {"error": error, "user_id": "u"})
        if self.seen == 2 and request.get("stream"):
            start = chunks(respond(request))[:3]
            last = {"object": "chat.completion.chunk", "error": error,
                    "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]}  # fmt: skip
            return Reply(pieces=[b": OPENROUTER PROCESSING\n\n", *(event(chunk) for chunk in start), event(last)])
        return None

    def shape(self, answer: Tree, request: Tree) -> Tree:
        told = with_content(answer, content_of(answer), reasoning="Let me {see}.", refusal=None)
        return with_usage(told, request, cost=0.00042, prompt_tokens_details={"cached_tokens": 8})

    def stream(self, answer: Tree, request: Tree) -> Reply:
        comment = b": OPENROUTER PROCESSING\n\n"
        return Reply(pieces=[comment, comment, *(event(c) for c in chunks(answer, thought="reasoning")), DONE])


class Azure(Dialect):
    """https://learn.microsoft.com/azure/ai-foundry/openai/how-to/structured-outputs: only some models and API versions
    take json_schema; the first chunk has no choices but the filter's word on the prompt
    (https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-streaming)."""

    def refuse(self, request: Tree) -> Reply | None:
        if "max_tokens" in request:
            return self.error(MAX_TOKENS, "max_tokens", "unsupported_parameter")
        if form(request) == "json_schema":
            message = (
                "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model. Learn more "
                "about supported models at the Structured Outputs guide"
            )
            return self.error(message, None, None)
        return None

    def error(self, message: str, param: str | None, code: str | None) -> Reply:
        error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
        return json_reply(400, {"error": error})

    def stream(self, answer: Tree, request: Tree) -> Reply:
        filtered = {"choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": []}
        return Reply(pieces=[event(filtered), *(event(chunk) for chunk in chunks(answer)), DONE])


class OSeries(Dialect):
    """https://platform.openai.com/docs/guides/reasoning: another name for the cap, no temperature; o3 streams only for
    verified organizations (https://help.openai.com/en/articles/10910291)."""

    def refuse(self, request: Tree) -> Reply | None:
        if "max_tokens" in request:
            return self.error(MAX_TOKENS, "max_tokens", "unsupported_parameter")
        if "temperature" in request:
            message = (
                f"Unsupported value: 'temperature' does not support {request['temperature']} with this model. Only the "
                "default (1) value is supported."
            )
            return self.error(message, "temperature", "unsupported_value")
        if request.get("stream"):
            message = (
                "Your organization must be verified to stream this model. Please go to the settings and verify it."
            )
            return self.error(message, "stream", "unsupported_value")
        return None

    def error(self, message: str, param: str, code: str) -> Reply:
        error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
        return json_reply(400, {"error": error})

    def shape(self, answer: Tree, request: Tree) -> Tree:
        return with_usage(answer, request, completion_tokens_details={"reasoning_tokens": 5})


class Responses(Dialect):
    """A model that lives behind https://platform.openai.com/docs/api-reference/responses only (o3-pro, the codex
    models)."""

    def __call__(self, request: Tree) -> Reply:
        self.seen += 1
        if "messages" in request:
            message = "This model is only supported in v1/responses and not in v1/chat/completions."
            error = {"message": message, "type": "invalid_request_error", "param": "model", "code": None}
            return json_reply(404, {"error": error})
        if "temperature" in request:
            message = "Unsupported parameter: 'temperature' is not supported with this model."
            error = {"message": message, "type": "invalid_request_error", "param": "temperature", "code": None}
            return json_reply(400, {"error": error})
        text = content_of(respond({"model": request["model"], "messages": request["input"]}))
        body = {
            "id": "resp_1", "object": "response", "status": "completed", "model": request["model"], "error": None,
            "output": [
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]},
            ],
            "usage": {"input_tokens": prompt_tokens(request), "output_tokens": len(text) // 4 + 64,
                      "output_tokens_details": {"reasoning_tokens": 64}},
        }  # fmt: skip
        if not request.get("stream"):
            return json_reply(200, body)
        deltas = [{"type": "response.output_text.delta", "delta": text[i : i + 200]} for i in range(0, len(text), 200)]
        done = {"type": "response.completed", "response": body}
        return Reply(pieces=[event({"type": "response.created"}), *map(event, deltas), event(done)])


DIALECTS: dict[str, Callable[[], Dialect]] = {
    "openai": Dialect,
    "vllm": Vllm,
    "llamacpp": LlamaCpp,
    "llama-cpp-python": LlamaCppPython,
    "ollama": Ollama,
    "lmstudio": LmStudio,
    "tgi": Tgi,
    "mistral": Mistral,
    "deepseek": DeepSeek,
    "anthropic": Anthropic,
    "gemini": Gemini,
    "openrouter": OpenRouter,
    "azure": Azure,
    "o-series": OSeries,
    "responses": Responses,
}


def serve(name: str) -> ChatServer:
    return ChatServer(DIALECTS[name]())

# ruff: noqa: E501  (the words of servers stand as they came)
"""Servers of companies: Mistral, DeepSeek, Anthropic, Gemini, OpenRouter, Azure, and the models of OpenAI that differ."""

from __future__ import annotations

import json

from rlgpt.agents.rules.model import respond
from tests.agents.chat_server import DONE, Reply, chunks, event, json_reply
from tests.agents.dialects.dialect import (
    MAX_TOKENS,
    Dialect,
    Tree,
    cap,
    content_of,
    form,
    prompt_tokens,
    with_content,
    with_usage,
)


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

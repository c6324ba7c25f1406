# ruff: noqa: E501  (the words of servers stand as they came)
"""Servers that one runs oneself: vLLM, llama.cpp and its Python server, Ollama, LM Studio, TGI."""

from __future__ import annotations

import json
from typing import Any

from tests.agents.chat_server import DONE, Reply, chunks, event, json_reply
from tests.agents.dialects.dialect import (
    CONTEXT,
    Dialect,
    Tree,
    cap,
    content_of,
    form,
    knows_schema,
    prompt_tokens,
    with_content,
    with_usage,
)


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

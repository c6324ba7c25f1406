"""The Responses API for models that only live there: a Chat Completions request in its form, and its answers back.

https://platform.openai.com/docs/guides/migrate-to-responses
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Tree = dict[str, Any]


def in_responses(request: Mapping[str, Any]) -> Tree:
    """The same question for `/responses`; nothing of it is stored there."""
    out: Tree = {"model": request["model"], "input": request["messages"], "store": False}
    given = {name: value for name in ("text", "reasoning") if isinstance(value := request.get(name), Mapping)}
    for name, value in request.items():  # `given`: by the operator, in `llm.extra`
        if name in ("max_tokens", "max_completion_tokens"):
            out["max_output_tokens"] = value
        elif name == "response_format":
            form = value.get("json_schema")
            out["text"] = {**given.get("text", {}), "format": {"type": "json_schema", **form} if form else value}
        elif name == "reasoning_effort":
            out["reasoning"] = {**given.get("reasoning", {}), "effort": value}
        elif name == "tools":
            out["tools"] = [{"type": "function", "strict": False, **tool["function"]} for tool in value]
        elif name in ("text", "reasoning"):
            out.setdefault(name, value)
        elif name not in ("model", "messages", "stream_options"):
            out[name] = value
    return out


def in_chat(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """The other way round, so that refusals are understood alike."""
    if "input" not in request:
        return request
    out: Tree = {"model": request["model"], "messages": request["input"]}
    for name, value in request.items():
        if name == "max_output_tokens":
            out["max_completion_tokens"] = value
        elif name == "text" and isinstance(value, Mapping) and "format" in value:
            out["response_format"] = value["format"]
        elif name == "reasoning" and isinstance(value, Mapping) and "effort" in value:
            out["reasoning_effort"] = value["effort"]
        elif name not in ("model", "input", "store"):
            out[name] = value
    return out


def completion_tree(response: Mapping[str, Any]) -> Tree:
    """A response as a chat completion; without choices where it failed."""
    texts: dict[str, str] = {"output_text": "", "refusal": "", "summary_text": ""}
    calls: list[Tree] = []
    for part in response.get("output") or ():
        if part.get("type") == "function_call":
            calls.append({"function": {"name": part.get("name"), "arguments": part.get("arguments")}})
        for piece in [*(part.get("content") or ()), *(part.get("summary") or ())]:
            if piece.get("type") in texts:
                texts[piece["type"]] += str(piece.get("text") or piece.get("refusal") or "")
    is_over = response.get("status") in ("completed", "incomplete")  # with no output where all of it was thought
    if response.get("status") == "failed" or not (is_over or response.get("output")):
        return {"error": response.get("error") or response}
    why = (response.get("incomplete_details") or {}).get("reason")
    reason = {"max_output_tokens": "length", "content_filter": "content_filter"}.get(str(why), "stop")
    message: Tree = {"content": texts["output_text"], "refusal": texts["refusal"], "reasoning": texts["summary_text"]}
    message |= {"tool_calls": calls} if calls else {}
    return {
        "model": response.get("model"),
        "choices": [{"message": message, "finish_reason": reason}],
        "usage": _usage(response.get("usage") or {}),
    }


def chunks(event: Mapping[str, Any]) -> Iterator[Tree]:
    """One event of a streamed response as chunks of a chat completion."""
    kind = str(event.get("type", ""))
    if kind in ("response.output_text.delta", "response.refusal.delta", "response.reasoning_summary_text.delta"):
        name = {"output_text": "content", "refusal": "refusal"}.get(kind.split(".")[1], "reasoning")
        yield {"choices": [{"delta": {name: event.get("delta")}}]}
    elif kind in ("response.completed", "response.incomplete"):
        tree = completion_tree(event["response"])
        if "error" in tree:
            yield tree
            return
        choice = tree["choices"][0]
        calls = {k: v for k, v in choice["message"].items() if k == "tool_calls"}  # the texts have come in pieces
        yield {**tree, "choices": [{"delta": calls, "finish_reason": choice["finish_reason"]}]}
    elif kind == "response.failed":
        yield {"error": event["response"].get("error") or event["response"]}
    elif kind == "error":
        yield {"error": dict(event)}


def _usage(usage: Mapping[str, Any]) -> Tree:
    if not usage:
        return {}
    return {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "prompt_tokens_details": usage.get("input_tokens_details"),
        "completion_tokens_details": usage.get("output_tokens_details"),
    }

"""Models that call tools before they answer, in every shape that servers give a call; they answer by the rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from rlgpt.agents.rules.model import respond
from tests.agents.chat_server import DONE, Reply, chunks, event, json_reply

Tree = dict[str, Any]


def offers(request: Tree) -> list[str]:
    """The tools that a request offers."""
    return [tool.get("function", tool)["name"] for tool in request.get("tools", ())]


def turns(request: Tree) -> int:
    """How often results of calls were told."""
    text = json.dumps(request.get("messages") or request["input"])
    return text.count("Calls that are left: ") + text.count("No calls are left. ")


def source_of(request: Tree) -> str:
    content = respond(request)["choices"][0]["message"]["content"]
    return str(json.loads(content)["source"])


def call(name: str, arguments: object, ident: str = "call_1", index: int | None = 0) -> Tree:
    told = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"index": index, "id": ident, "type": "function", "function": {"name": name, "arguments": told}}


def calling(calls: Sequence[Tree], content: str | None = None) -> Tree:
    message = {"role": "assistant", "content": content, "tool_calls": list(calls)}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message, "logprobs": None}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}


def in_pieces(answer: Tree) -> Reply:
    """The arguments of its calls in three pieces each, id and name only with the first."""
    start, *rest = chunks(answer | {"choices": [answer["choices"][0] | {"message": {"role": "assistant"}}]})
    deltas = []
    for index, one in enumerate(answer["choices"][0]["message"]["tool_calls"]):
        text = one["function"]["arguments"]
        size = len(text) // 3 + 1
        for at in range(0, max(1, len(text)), size):
            function = {"arguments": text[at : at + size]} | ({"name": one["function"]["name"]} if not at else {})
            deltas.append({"index": index, **({"id": one["id"]} if not at else {}), "function": function})
    asked = [start | {"choices": [{"index": 0, "delta": {"tool_calls": [delta]}}]} for delta in deltas]
    return Reply(pieces=[*map(event, (start, *asked, *rest)), DONE])


def trying(times: int = 1, make: Callable[[Tree], Sequence[Tree]] | None = None) -> Callable[[Tree], Any]:
    """Calls tools in so many turns, where it may, and then answers. `make` gives the calls of a turn: else the source
    that it will answer with is tried."""

    def answer(request: Tree) -> Any:
        if not offers(request) or turns(request) >= times:
            return respond(request)
        calls = make(request) if make else [call("try_action", {"source": source_of(request)})]
        told = calling(calls)
        return in_pieces(told) if request.get("stream") else json_reply(200, told)

    return answer

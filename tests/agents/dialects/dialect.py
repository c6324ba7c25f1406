"""The form of OpenAI's own server, and what every dialect of it needs."""

from __future__ import annotations

import json
from typing import Any

from rlgpt.agents.rules.model import respond
from tests.agents.chat_server import DONE, Reply, chunks, event, json_reply

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

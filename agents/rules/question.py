"""A request taken apart: the fenced blocks of its messages, by name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_OPEN = re.compile(r"^(`{3,})(\S+) (\w+)$")


class NotUnderstood(ValueError):
    """The request is not one of ours; the argument says what is missing."""


@dataclass(frozen=True)
class Question:
    ask: str
    """order | plan | refine | write | configure | judge_item | judge_iteration."""
    blocks: Mapping[str, Any]
    """JSON blocks by name; of a name that occurs more than once, the last."""
    many: Mapping[str, Sequence[Any]]
    """The same, all of them in order."""
    advice: Sequence[str] = ()
    """The operator's, word for word."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Other fenced texts by name (`previous`)."""

    def __getitem__(self, name: str) -> Any:
        if name not in self.blocks:
            raise NotUnderstood(f"the request has no block {name!r}")
        return self.blocks[name]

    def get(self, name: str) -> Any:
        return self.blocks.get(name)

    @property
    def world(self) -> Mapping[str, Any]:
        """Task and facts of the world sheet."""
        facts: Mapping[str, Any] = self["world"]
        return facts


def read(request: Mapping[str, Any]) -> Question:
    """Raises NotUnderstood. Later turns (repair) repeat the question, so the last one that asks counts."""
    many: dict[str, list[Any]] = {}
    advice: list[str] = []
    texts: dict[str, str] = {}
    for message in request.get("messages", ()):
        if message.get("role") == "assistant":
            continue
        for language, name, body in fenced(str(message.get("content", ""))):
            if language == "json":
                many.setdefault(name, []).append(json.loads(body))
            elif name == "advice":
                advice.append(body)
            else:
                texts[name] = body
    blocks = {name: bodies[-1] for name, bodies in many.items()}
    facts = blocks.get("request")
    if not isinstance(facts, dict) or "ask" not in facts:
        raise NotUnderstood("the request has no block 'request'")
    return Question(str(facts["ask"]), blocks, many, advice, texts)


def fenced(text: str) -> list[tuple[str, str, str]]:
    """(language, name, body) of every fenced block; a block ends only at its own fence."""
    out: list[tuple[str, str, str]] = []
    ticks, language, name, body = "", "", "", list[str]()
    for line in text.split("\n"):
        if ticks:
            if line == ticks:
                out.append((language, name, "\n".join(body)))
                ticks = ""
            else:
                body.append(line)
        elif opened := _OPEN.match(line):
            ticks, language, name = opened.groups()
            body = []
    return out


def rate_of(measured: Mapping[str, Any]) -> float:
    """The result of some episodes, from 0 to 1: the task's score where it has one, else the share that succeeded."""
    return float(measured["score"] if "score" in measured else measured["successes"] / measured["episodes"])

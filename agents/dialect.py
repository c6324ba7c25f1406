"""Learns from a model's refusals which parameters it takes at its URL, and builds requests in that form.

Everything is learnt from codes in the record (agents/refusals.py), so a resumed session and a replay know what the
session before them knew. A request that was refused is never sent again unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from rlgpt import prompts
from rlgpt.agents.endpoint import Endpoint
from rlgpt.agents.refusals import sent_cap, token_limits
from rlgpt.agents.responses import in_chat, in_responses
from rlgpt.agents.schema import strict_schema
from rlgpt.store.row_types import JsonObject

Message = dict[str, str]
"""{role: system | user | assistant, content}."""

LEAST = 256
"""Tokens of a reply below which a model that fits no more is given up."""
SPARE = 32
"""Tokens left free between prompt and reply: a chat template adds some."""
BYTES_PER_TOKEN = 3.0
"""Of a prompt, until a server says how many tokens one had. English prose has about 4, code and JSON 3."""
UNREADABLE = ("malformed JSON", "wrong schema", "the reply is empty")
"""How faults of a reply begin that a server without formats would show."""
SUSPECTS = ("tools", "response_format", "reasoning_effort", "stream_options", "stream", "temperature", "system")
"""In this order a parameter is left out when a server refuses a request and names none."""


@dataclass
class Dialect:
    formats: list[str] = field(default_factory=lambda: ["json_schema", "json_object", "words"])
    caps: list[str] = field(default_factory=lambda: ["max_tokens", "max_completion_tokens", ""])
    spelled: bool = False
    """The schema stands in the messages, whatever the format says: this server ignores the format."""
    without: set[str] = field(default_factory=set)
    """Parameters that it does not take; `system`: messages of that role; `chat`: Chat Completions altogether."""
    context: int | None = None
    """Tokens that prompt and reply may have together."""
    most_out: int | None = None
    bytes_per_token: float | None = None
    """Of a prompt, as the server counted one."""
    suspended: list[str] = field(default_factory=list)
    """Left out on suspicion since the last answer, to be put back if nothing helps."""
    answers: bool = False
    """It has answered; what it took then, it takes, so that an error without a reason is a passing one."""
    hopeless: bool = False
    """Leaving out all there is to leave out did not help: it is something else."""

    @staticmethod
    def expected(endpoint: Endpoint) -> Dialect:
        provider = endpoint.provider
        dialect = Dialect()
        if provider:
            dialect.formats = list(provider.formats)
            dialect.caps.sort(key=lambda name: (name != provider.cap, not name))
            dialect.spelled, dialect.without = provider.spelled, set(provider.without)
        return dialect

    # ---- what is learnt ---------------------------------------------------------------------------------
    def learn(self, error: str, request: Mapping[str, Any]) -> bool:
        """From how an exchange ended (empty: with an answer of use); True if the request now has another form."""
        word, _, rest = error.partition(":")[0].partition(" ")
        answered = f"{word} {rest}" in UNREADABLE or word in ("", "truncated", "refusal", "useless")
        if answered:
            self.answers, self.hopeless = True, False
            self.spelled = self.spelled or f"{word} {rest}" in UNREADABLE
            self.suspended.clear()
        elif word == "tokens":
            return self._fit(token_limits(f"{word} {rest}"), in_chat(request))
        elif word == "rejected":
            return self.drop(rest, request)
        elif word == "suspected":
            dropped = self.drop(rest, request)
            self.suspended += [rest] if dropped else []
            return dropped
        elif self.suspended and not self.suspect(request):
            self._put_back()
        return False

    def suspect(self, request: Mapping[str, Any]) -> str:
        """The parameter that may be what a server dislikes about this request, empty if there is none left."""
        request = in_chat(request)
        if self.hopeless:
            return ""
        return next((name for name in (*SUSPECTS, *_extras(request)) if _sends(request, name)), "")

    def drop(self, parameter: str, request: Mapping[str, Any]) -> bool:
        """Send it no more, if it was sent and still would be."""
        of_responses, request = "input" in request, in_chat(request)
        if not _sends(request, parameter):
            return False
        if parameter == "response_format":
            kind = str(request["response_format"].get("type"))
            if kind not in self.formats or len(self.formats) == 1:
                return False
            self.formats.remove(kind)
        elif parameter in self.caps:
            self.caps.remove(parameter)
            if of_responses:  # both names are one there
                self.caps = [""]
        elif parameter in self.without:
            return False
        else:
            self.without.add(parameter)
        return True

    def _put_back(self) -> None:
        whole = ["json_schema", "json_object", "words"]
        for parameter in self.suspended:
            if parameter == "response_format":
                left = len(self.formats) + self.suspended.count(parameter)
                self.formats = whole[-left:]
            self.without.discard(parameter)
        self.suspended.clear()
        self.hopeless = True

    def _fit(self, said: Mapping[str, int], request: Mapping[str, Any]) -> bool:
        """Lower the cap on replies to what fits; False if the prompt alone is too long."""
        sent = sent_cap(request)
        if sent is None:
            return False
        size = _bytes(request["messages"])
        if "context" in said:
            self.context = min(said["context"], self.context or said["context"])
            if said.get("prompt"):
                counted = 0.9 * size / said["prompt"]  # the next prompt may be denser
                self.bytes_per_token = min(self.bytes_per_token or counted, counted)
            if said.get("prompt", 0) + SPARE >= said["context"]:
                return False
        elif "output" in said:
            self.most_out = said["output"]
        if self.cap(sent, size) >= sent:
            self.most_out = sent // 2
        return self.cap(sent, size) < sent

    def cap(self, tokens: int, size: int) -> int:
        """Tokens that a reply to a prompt of `size` bytes may have."""
        fits = [tokens]
        if self.most_out is not None:
            fits.append(self.most_out)
        if self.context is not None:
            fits.append(int(self.context - size / (self.bytes_per_token or BYTES_PER_TOKEN) - SPARE))
        return max(min(fits), min(LEAST, tokens))

    # ---- the request ------------------------------------------------------------------------------------
    def request(
        self,
        endpoint: Endpoint,
        messages: Sequence[Message],
        temperature: float,
        contract: type[BaseModel],
        tools: Sequence[JsonObject] = (),
    ) -> dict[str, Any]:
        schema = strict_schema(contract)
        conversation = list(messages)
        if self.spelled or self.formats[0] != "json_schema":
            first, *others = conversation
            words = prompts.render("schema", schema=schema)
            conversation = [{**first, "content": f"{first['content']}\n\n{words}"}, *others]
        if "system" in self.without:
            conversation = _without_system(conversation)
        request: dict[str, Any] = {"model": endpoint.model, "messages": conversation}
        if self.formats[0] == "json_schema":
            form = {"name": contract.__name__, "strict": True, "schema": schema}
            request["response_format"] = {"type": "json_schema", "json_schema": form}
        elif self.formats[0] == "json_object":
            request["response_format"] = {"type": "json_object"}
        if self.caps[0]:
            request[self.caps[0]] = self.cap(endpoint.max_tokens, _bytes(conversation))
        optional: dict[str, Any] = {"temperature": temperature} | ({"tools": list(tools)} if tools else {})
        if endpoint.reasoning_effort:
            optional["reasoning_effort"] = endpoint.reasoning_effort
        if endpoint.stream and "stream" not in self.without:
            optional |= {"stream": True, "stream_options": {"include_usage": True}}
        optional |= endpoint.extra
        request |= {name: value for name, value in optional.items() if name not in self.without}
        return in_responses(request) if endpoint.api == "responses" or "chat" in self.without else request


def _sends(request: Mapping[str, Any], parameter: str) -> bool:
    if parameter == "system":
        return any(message["role"] == "system" for message in request["messages"])
    return parameter in request or parameter == "chat"


def _extras(request: Mapping[str, Any]) -> list[str]:
    usual = ("model", "messages", "max_tokens", "max_completion_tokens", *SUSPECTS)
    return sorted(name for name in request if name not in usual)


def _without_system(messages: Sequence[Message]) -> list[Message]:
    """Roles that alternate from a user's turn on, as the templates of some models demand."""
    out: list[Message] = []
    for message in messages:
        role = "user" if message["role"] == "system" else message["role"]
        if out and out[-1]["role"] == role:
            out[-1] = {"role": role, "content": f"{out[-1]['content']}\n\n{message['content']}"}
        else:
            out.append({"role": role, "content": message["content"]})
    return out


def _bytes(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(len(message["content"].encode()) for message in messages)

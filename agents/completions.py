"""A chat completion, read from whatever shape a compatible server gives it: one body, or a stream of pieces.

`content` may be a text, null, or a list of parts (Mistral); thoughts stand in `reasoning_content` (DeepSeek, vLLM),
`reasoning` (OpenRouter, Ollama), or in parts of type `thinking`; an answer may come as the arguments of a tool call.
Calls of tools come whole or in pieces, with or without ids and indices, their arguments as a text or as an object.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rlgpt.agents import responses
from rlgpt.agents.journal import canonical
from rlgpt.agents.refusals import Counted

THOUGHTS = ("reasoning_content", "reasoning", "thinking")
LONGEST = 4_000_000
"""Characters of a streamed reply after which nobody means it: it counts as cut off."""
FAR = 8
"""Characters for each token of its cap after which a streamed reply is one of a server that has forgotten the cap; a
token has 3 to 5 of code or English."""
LEAST_FAR = 20_000
"""Characters that it may have whatever its cap: some servers count thoughts beside it."""
LONGEST_NAME = 1_000
"""Characters of a tool's name, or of a call's id."""
MOST_BYTES = 64_000_000
"""Of a body that is read as a whole, and of one event."""
GIVEN_UP = ("error", "abort")
"""Ends of a reply that are none: OpenRouter's where its provider failed; vLLM's and SGLang's where they shut down."""
_LINE_END = re.compile(r"\r\n|\n|\r")


class Unreadable(Exception):
    """A body with status 200 that holds no completion but, perhaps, an error."""

    def __init__(self, body: object) -> None:
        super().__init__("no chat completion")
        self.body = body

    @property
    def is_reply(self) -> bool:
        """Whether it is a completion all the same, one without a choice, which counts as paid for."""
        return isinstance(self.body, Mapping) and "choices" in self.body and not self.body.get("error")

    @property
    def counted(self) -> Counted | None:
        """Its usage, where it tells one."""
        usage = _mapping(self.body.get("usage")) if isinstance(self.body, Mapping) else {}
        counts = _usage(usage)
        return Counted(counts["tokens_in"], counts["tokens_out"], counts["cost"]) if usage else None

    @property
    def status(self) -> int:
        """What the body says its status should have been; 0 if it says nothing."""
        error = self.body.get("error", self.body) if isinstance(self.body, Mapping) else self.body
        return status_of(error)


class BrokenOff(Exception):
    """A stream that ends before the reply does, though its connection was closed as it should be."""


class GivenUp(Exception):
    """A reply of which the server says that it stopped before its end."""

    def __init__(self, completion: Completion) -> None:
        super().__init__(completion.finish_reason)
        self.completion = completion

    @property
    def counted(self) -> Counted | None:
        """Its usage, where it tells one."""
        so_far = self.completion
        return None if so_far.tokens_in is None else Counted(so_far.tokens_in, so_far.tokens_out, so_far.cost)


class Page(Exception):
    """A web page, the error's text, in place of a completion."""


class NotStreamed(Exception):
    """A server that was asked to stream answered with something else that is no completion either."""


def status_of(error: object) -> int:
    if isinstance(error, Mapping):
        for name in ("code", "status", "status_code", "http_status_code"):
            code = error.get(name)
            if isinstance(code, int | str) and re.fullmatch("[45][0-9][0-9]", str(code)):
                return int(code)
    return 0


class ToolCall(NamedTuple):
    """A tool that the model wants to be called, as it wrote it: neither name nor arguments need to make sense."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Completion:
    """What counts of a chat completion."""

    content: str
    finish_reason: str
    refusal: str
    model: str
    tokens_in: int | None
    """None: the server reported no usage."""
    tokens_out: int | None
    """With what was thought."""
    thought: str = ""
    cached: int = 0
    """Of `tokens_in`, those from the server's cache."""
    reasoning: int = 0
    """Of `tokens_out`, those of the thought."""
    cost: float | None = None
    """USD, where the server says it."""
    seconds: float = 0.0
    """How long it took, where that is not how long the question waited for it; not kept with the reply."""
    calls: tuple[ToolCall, ...] = ()
    fault: str = ""
    """Of a recorded one: why it was of no use, as its row tells it, so that an older session goes its way again."""

    @property
    def answer(self) -> str:
        """The content, or the arguments of the first call in its place."""
        return self.content if self.content.strip() or not self.calls else self.calls[0].arguments

    def answers(self, offered: Collection[str] = ()) -> list[str]:
        """What may be the answer, the likeliest first: it may stand in any call but those of tools that were offered,
        with a word on it as content."""
        own = [call.arguments for call in self.calls if call.name not in offered]
        return list(dict.fromkeys([self.answer, *own]))

    def dump(self) -> str:
        usage: dict[str, Any] = {"tokens_in": self.tokens_in, "tokens_out": self.tokens_out}
        usage |= {k: getattr(self, k) for k in ("cached", "reasoning") if getattr(self, k)}
        if self.cost is not None:
            usage["cost"] = self.cost
        parts = {k: getattr(self, k) for k in ("content", "finish_reason", "refusal", "model")}
        thought = {"thought": self.thought} if self.thought else {}
        calls = {"calls": [call._asdict() for call in self.calls]} if self.calls else {}
        return canonical({**parts, **thought, **calls, "usage": usage})

    @staticmethod
    def load(text: str, fault: str = "") -> Completion:
        parts = json.loads(text)
        usage = parts.pop("usage")
        calls = tuple(ToolCall(**call) for call in parts.pop("calls", ()))
        return Completion(**parts, **usage, calls=calls, fault=fault)


@dataclass
class _OpenCall:
    """A call of a tool while its pieces come."""

    index: object
    ident: str = ""
    name: str = ""
    arguments: str = ""

    def goes_on(self, ident: str, name: str) -> bool:
        """Whether a piece with the same index belongs to it. Gemini gives every call the index 0, and some servers
        repeat the name with every piece."""
        if ident and self.ident:
            return ident == self.ident
        return not (name and self.name and (self.index is None or _is_object(self.arguments)))


@dataclass
class Reply:
    """A reply while it comes."""

    hear: Callable[[str, str], None] = lambda thought, content: None
    content: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)
    calls: list[_OpenCall] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    finish_reason: str = ""
    model: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    size: int = 0
    """Characters so far."""
    received: int = 0
    """Bytes of them, and so the most tokens that they can be: a token is at least one byte."""
    has_ended: bool = False
    """The server has said so, by a reason or by the usage after the last piece."""
    whole: bool = False
    """It comes as one body, or part of one: the model had written all of it before its first byte came."""

    def take(self, message: Mapping[str, Any]) -> None:
        """A message, or a piece of one."""
        thought, content, refusal = _thought(message), _text(message.get("content")), _text(message.get("refusal"))
        self.thought.append(thought)
        self.content.append(content)
        self.refusal.append(refusal)
        called = self._take_calls(message)
        self.grow(thought, content, called, refusal)
        if thought or content or called:
            self.hear(thought, content + called)

    def grow(self, *pieces: str) -> None:
        """These pieces of it have come."""
        self.size += sum(map(len, pieces))
        self.received += sum(map(octets, pieces))

    def _take_calls(self, message: Mapping[str, Any]) -> str:
        """The pieces of arguments that came."""
        pieces = message.get("tool_calls") or [{"function": message.get("function_call")}]
        came = ""
        for piece in map(_mapping, pieces if isinstance(pieces, list) else ()):
            function = _mapping(piece.get("function"))
            index, ident, name = piece.get("index"), str(piece.get("id") or ""), _text(function.get("name"))
            arguments = function.get("arguments")
            if isinstance(arguments, Mapping):  # Ollama gives an object
                arguments = json.dumps(arguments)
            if not name and not isinstance(arguments, str):
                continue
            call = next((call for call in reversed(self.calls) if call.index == index), None)
            if call is None or not call.goes_on(ident, name):
                call = _OpenCall(index)
                self.calls.append(call)
                self.grow(" ", name)
            call.ident, call.name = call.ident or ident[:LONGEST_NAME], call.name or name[:LONGEST_NAME]
            call.arguments += _text(arguments)
            came += _text(arguments)
        return came

    def completion(self, model: str) -> Completion:
        content, thought = "".join(self.content), "".join(self.thought)
        if not content.strip() and not self.calls and self.finish_reason == "stop":
            content, thought = thought, ""  # a parser of thoughts that took the answer for one
        return Completion(
            encodable(content),
            encodable(self.finish_reason),
            encodable("".join(self.refusal)),
            encodable(self.model or model),
            **_usage(self.usage),
            thought=encodable(thought),
            calls=tuple(ToolCall(encodable(call.name), encodable(call.arguments)) for call in self.calls),
        )


def of_tree(tree: Any, model: str, reply: Reply | None = None) -> Completion:
    """Raises Unreadable, GivenUp."""
    reply = reply or Reply()
    if isinstance(tree, Mapping) and tree.get("object") == "response":
        tree = responses.completion_tree(tree)
    if error := _error_of_choice(tree):
        raise Unreadable(error)
    choice = _choice(tree, "message")
    if choice is None:
        raise Unreadable(tree)
    reply.model, reply.usage = str(tree.get("model") or ""), _mapping(tree.get("usage"))
    reply.finish_reason = str(choice.get("finish_reason") or "")
    reply.take(choice["message"])
    return _not_given_up(reply.completion(model))


def body_of(pieces: Iterable[bytes], reply: Reply) -> bytes:
    """Raises ValueError where it is longer than any."""
    body, size, is_blank = [], 0, True
    for piece in pieces:
        body.append(piece)
        if is_blank and piece.strip():  # blanks keep a connection alive; what is no object is a page
            is_blank, reply.whole = False, piece.lstrip().startswith(b"{")
        size += len(piece)
        if size > MOST_BYTES:
            raise ValueError("a body longer than any reply")
    return b"".join(body)


def lines_of(pieces: Iterable[bytes]) -> Iterator[str]:
    """The lines of server-sent events, which are UTF-8 whatever their header says and end at CR, LF or CRLF alone.
    httpx2's own ends them as str.splitlines does, at U+2028 too, which JSON may hold as it is. Raises ValueError.

    https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream"""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    line: list[str] = []
    size, after_return = 0, False
    for piece in pieces:
        text = decoder.decode(piece)
        if after_return and text:
            text, after_return = text.removeprefix("\n"), False
        after_return = after_return or text.endswith("\r")
        first, *others = _LINE_END.split(text)
        line.append(first)
        size += len(first)
        for other in others:
            yield "".join(line)
            line, size = [other], len(other)
        if size > MOST_BYTES:
            raise ValueError("an event longer than any")
    if last := "".join(line) + decoder.decode(b"", True):
        yield last


def of_stream(lines: Iterable[str], reply: Reply, model: str, cap: int = LONGEST) -> Completion:
    """From server-sent events, or from one JSON body in their place. `cap`: tokens that the reply may have. Raises
    Unreadable, BrokenOff, GivenUp, NotStreamed, ValueError."""
    longest = min(LONGEST, max(FAR * cap, LEAST_FAR))
    other: list[str] = []
    began = is_over = False
    for data in _events(lines, other):
        if data.startswith("[DONE]"):
            is_over = True
            continue
        try:
            event = json.loads(data)
        except ValueError:
            reply.grow(data)
            raise
        began = True
        is_response = isinstance(event, Mapping) and str(event.get("type", "")).startswith(("response.", "error"))
        for tree in responses.chunks(event) if is_response else (event,):
            _take(tree, reply)
        if reply.size > longest:
            reply.finish_reason, reply.has_ended = "length", True
            break
    if began:
        completion = reply.completion(model)
        if not (is_over or reply.has_ended or _is_complete(completion)):
            raise BrokenOff
        return _not_given_up(completion)
    body = "\n".join(other)
    reply.whole = body.lstrip().startswith("{")
    try:
        return of_tree(json.loads(body), model, reply)
    except ValueError as error:
        raise NotStreamed from error


def _take(tree: Any, reply: Reply) -> None:
    """One chunk. Raises Unreadable."""
    if not isinstance(tree, Mapping) or tree.get("error") or tree.get("object") == "error":  # vLLM has no field `error`
        raise Unreadable(tree)
    if error := _error_of_choice(tree):
        raise Unreadable(error)
    reply.model = reply.model or str(tree.get("model") or "")
    reply.usage = _mapping(tree.get("usage")) or reply.usage
    reply.has_ended = reply.has_ended or bool(tree.get("usage") and not tree.get("choices"))
    choice = _choice(tree, "delta") or _choice(tree, "message")
    if choice is not None:
        reply.take(_mapping(choice.get("delta", choice.get("message"))))
        reply.size, reply.received = max(reply.size, 1), max(reply.received, 1)  # the prompt was read
        reply.finish_reason = str(choice.get("finish_reason") or reply.finish_reason)
        reply.has_ended = reply.has_ended or bool(reply.finish_reason)


def _events(lines: Iterable[str], other: list[str]) -> Iterator[str]:
    """The data of each event, [DONE] too; lines that belong to none go to `other`. Raises ValueError.

    https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation"""
    data: list[str] = []
    kept = 0
    for line in lines:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
            kept += len(line)
        elif not line.strip():
            if data:
                yield from _data(data)
            data = []
            kept = 0
        elif not line.startswith((":", "event:", "id:", "retry:")):
            other.append(line)
            kept += len(line)
        if kept > MOST_BYTES:
            raise ValueError("an event longer than any")
    if data:
        yield from _data(data)


def _data(lines: list[str]) -> Iterator[str]:
    text = "\n".join(lines).strip()
    if text:
        yield text


def _choice(tree: Any, part: str) -> Mapping[str, Any] | None:
    choices = tree.get("choices") if isinstance(tree, Mapping) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        return None
    return choices[0] if isinstance(choices[0].get(part), Mapping) else None


def _error_of_choice(tree: Any) -> dict[str, Any] | None:
    """The body that OpenRouter gives where the error stands above the choices; here it is part of the first."""
    choices = tree.get("choices") if isinstance(tree, Mapping) else None
    first = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
    return {"error": first["error"]} if first.get("error") else None


def _not_given_up(completion: Completion) -> Completion:
    """Raises GivenUp."""
    if completion.finish_reason.lower() in GIVEN_UP:
        raise GivenUp(completion)
    return completion


def _text(part: Any) -> str:
    """A text, or the texts of a list of parts."""
    if isinstance(part, str):
        return part
    if isinstance(part, list):
        return "".join(_text(one) for one in part if not (isinstance(one, Mapping) and one.get("type") == "thinking"))
    if isinstance(part, Mapping):
        return _text(part.get("text") or part.get("content"))
    return ""


def _thought(message: Mapping[str, Any]) -> str:
    own = next((_text(message[name]) for name in THOUGHTS if message.get(name)), "")
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    thinking = [p for p in parts if isinstance(p, Mapping) and p.get("type") == "thinking"]
    return own + "".join(_text(part.get("thinking")) for part in thinking)


def octets(text: str) -> int:
    """Its bytes in UTF-8, those of half a surrogate pair included."""
    return len(text.encode("utf-8", "surrogatepass"))


def encodable(text: str) -> str:
    """The text with what UTF-8 cannot hold replaced. JSON can escape half of a surrogate pair, and a stream may have
    the other in its next piece."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _is_complete(completion: Completion) -> bool:
    """Whether it may be all that the model wrote: some servers do not say that a stream is over. Text without an object
    counts, since it may be all that a model without formats had to say; an object that is left open does not. Of calls
    of tools the last one counts."""
    text = completion.calls[-1].arguments if completion.calls else completion.answer.strip()
    start = text.find("{")
    if start < 0 or text.rstrip("`] \r\n").endswith("}"):
        return bool(text or completion.refusal)
    try:
        json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return False
    return True


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    tokens_in, tokens_out = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    whole = _count(usage, "total_tokens")
    if tokens_in is not None and tokens_out is not None and whole is not None:
        tokens_out = max(tokens_out, whole - tokens_in)  # Gemini counts thoughts in the total only
    cached = _count(_mapping(usage.get("prompt_tokens_details")), "cached_tokens")
    if cached is None:
        cached = _count(usage, "prompt_cache_hit_tokens")  # DeepSeek
    thought = _count(_mapping(usage.get("completion_tokens_details")), "reasoning_tokens")
    cost = usage.get("cost")
    valid = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < 1e6
    return {
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "cached": min(cached or 0, tokens_in or 0),
        "reasoning": thought or 0,
        "cost": float(cost) if valid else None,  # type: ignore[arg-type]
    }


def _count(tree: Mapping[str, Any], name: str) -> int | None:
    value = tree.get(name)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def _mapping(part: Any) -> Mapping[str, Any]:
    return part if isinstance(part, Mapping) else {}

"""What a server's refusal means: which parameter it will not take, how many tokens fit, or that nobody is there.

Servers agree on neither status nor wording: the same unsupported `response_format` is a 400 of OpenAI with a field
`param`, a 400 of LM Studio with {"error": "text"} (of its form json_object), a 422 of FastAPI with
{"detail": [{"loc": ...}]}, a 500 of llama-cpp-python, and an error inside a stream that began with 200 at
text-generation-inference. So the whole body is read as text, by words that name a parameter.
docs/language-models.md shows what was learnt from whom.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

TRANSIENT_STATUS = (408, 409, 423, 425, 429)

_NAMES = {
    "tools": r"\btools?\b|\btool_\w+|function[_ ]?call",
    "response_format": (
        r"response_format|response format|json_schema|json_object|json schema|json mode|structured output|guided"
        r"|grammar|gbnf|xgrammar|outlines|llguidance|schema|input should be 'text'"
    ),
    "stream_options": r"stream_options|include_usage",
    "stream": r"\bstream(?:ing)?\b",
    "temperature": r"temperature",
    "reasoning_effort": r"reasoning_effort|reasoning effort",
    "max_completion_tokens": r"max_completion_tokens|max_output_tokens",
    "max_tokens": r"max_tokens|max_new_tokens|maxoutputtokens|max_output_tokens",
    "system": r"system (?:role|message)|['\"]system['\"]|role:? ?system|roles must alternate|messages\[0\]\.role",
}
"""Words by which servers name what we send; `system` is a message of that role."""
_TOKENS = re.compile(
    r"context|too (?:long|large|many)|too big|exceed|at most|maximum|valid range|supported range|\brange of"
    r"|must be <=|less than",
    re.IGNORECASE,
)
_UNSUPPORTED = re.compile(
    r"unsupported (?:parameter|value)|not supported|unrecognized|unknown (?:parameter|field)|extra inputs"
    r"|extra_forbidden|does not support|instead",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient[_ ](?:quota|balance|credits)|more credits|exceeded your current quota|credit balance is too low"
    r"|budget has been exceeded|billing_hard_limit|hard limit has been reached",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content_filter|content management policy|content_policy|responsible ?ai|\binvalid_prompt\b|usage polic(?:y|ies)",
    re.IGNORECASE,
)
_FLAGGED = re.compile(r"\b(?:inputs?|prompts?|messages?|content|requests?)\b[^.]{0,60}\bflagged\b", re.IGNORECASE)
"""OpenRouter, with 403: a moderator did not like the prompt."""
_CUT_OFF = re.compile(r"could not finish the message because max_tokens", re.IGNORECASE)
_BAD_JSON = re.compile(r"json_validate_failed|failed to generate json", re.IGNORECASE)
"""Groq, where what the model wrote does not follow the format that was asked for."""
_RESPONSES = re.compile(r"v1/responses\b", re.IGNORECASE)
_NO_KEY = re.compile(
    r"(?:invalid|incorrect|missing|no|wrong)[_ ]api[_ ]?key|api[_ ]key[_ ](?:is )?(?:not valid|invalid|missing)"
    r"|authentication_error|\bunauthorized\b|no auth credentials",
    re.IGNORECASE,
)
"""Gemini and xAI say so with 400."""
_NOT_THERE = re.compile(
    r"unexpected endpoint|model_not_found|no such model|unknown model|invalid model\b|not a valid model\b"
    r"|\bmodel\b.{0,200}?(?:\bnot found|\b(?:does )?not exist)|模型不存在",
    re.IGNORECASE,
)
_NO_SUCH_MODEL = re.compile(r"\bmodel_not_found\b|no available channels? for model\b|无可用渠道", re.IGNORECASE)
"""One API and New API with 503: no server behind the gateway has the model."""
_OVER_RATE = re.compile(
    r"request too large.{0,300}?limit:? ([\d,]*\d).{0,100}?requested:? ([\d,]*\d)", re.IGNORECASE | re.DOTALL
)
"""OpenAI with 429, Groq with 413: what is asked for at once is more than the limit on tokens per minute."""
_RATE = re.compile(
    r"rate[ _-]?limit|too many requests|\b(?:tokens|requests) per (?:second|minute|min|hour|day)\b"
    r"|\b(?:try again|retry) in \d",
    re.IGNORECASE,
)
"""What comes with 429, and without it where a stream had begun with 200, as OpenAI's and Anthropic's do:
https://docs.anthropic.com/en/api/errors"""
_OWN_FAULT = re.compile(
    r"context (?:deadline exceeded|cancell?ed)|\bcreat(?:e|ing)\b.{0,20}\bcontext\b|out of memory|\bcuda\b",
    re.IGNORECASE,
)
"""Of servers written in Go, whose `context` is a deadline, and of memory that a model does not fit into."""
_WAIT = re.compile(
    r"\b(?:try again|retry) in (?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)(ms|s\b| ?sec))?", re.IGNORECASE
)
_NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?![\w.,]\d)|(?<![\w.])\d+(?![\w]|\.\d)")

_CONTEXT = re.compile(
    r"(?:(?:context (?:length|window|limit|size)|model length)(?: is| of)*(?: only)?|\+ `max_new_tokens` must be <=)"
    r" ([\d,]*\d)"
)
_LENGTH = re.compile(r"\bmodel length\b|\brange of input length\b")
"""vLLM and DashScope speak of lengths where others speak of tokens or the context."""
_OUTPUT = re.compile(
    r"(?<!\+ )(?<!\+ `)max_(?:new_|completion_|output_)?tokens`? must be (?:<=|at most|less than(?: or equal to)?)"
    r" `?([\d,]*\d)"
)
"""Groq's puts the number between two marks, and speaks of the context in the same sentence."""
_PROMPT = re.compile(
    r"(?<![\d,])([\d,]*\d)(?: tokens?)? (?:in the messages|from the input|of text input|input tokens|prompt tokens"
    r"|`inputs` tokens)|\bprompt \(length ([\d,]*\d)\)"
)
_PAGE = re.compile(r"\s*<(?:!doctype|html|head|\?xml)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title\b[^>]{0,200}>([^<]{0,500})</title>", re.IGNORECASE)
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)

LONGEST_ERROR = 8_000
"""Characters of an error that are read."""
MOST_NUMBERS = 50
MOST_TOKENS = 1_000_000_000
"""A larger number in an error is no number of tokens."""


class Counted(NamedTuple):
    """What a server says of a reply: tokens both ways, and USD; None where it says nothing."""

    tokens_in: int | None
    tokens_out: int | None
    cost: float | None


LONG = 30.0
"""Seconds from which on a wait that a server asks for is told at once."""
ASKS = "; it asks to be left alone for "
"""Before such a wait, in the sentence of a failure."""


class Failure(Exception):
    """No reply. `code` says what was learnt from it; it is kept in the record, so that a resumed or replayed session
    learns the same:

    a status, `timeout`, `connection`, `malformed`, `quota`, `page`    whether it may pass by itself: `transient`
    `unreadable`                                               a reply that counts as paid for; so is each new try
    `rejected PARAMETER`, `suspected PARAMETER`                the server names it; it may be this one
    `tokens context=N prompt=N output=N`                       the cap on a reply is too high; each part may be missing
    `filtered`                                                 the prompt was refused by a content filter
    """

    def __init__(
        self,
        code: str,
        sentence: str,
        retry_after: float | None = None,
        received: int = 0,
        *,
        whole: bool = False,
        counted: Counted | None = None,
        recorded: bool = False,
        again: bool = False,
        unsure: bool = False,
    ) -> None:
        """`retry_after`: seconds that the server asks for. `received`: bytes of a reply that broke off. `whole`: the
        model had written all of the reply before its first byte came. `counted`: what the server says it took. `again`:
        the recorded session has asked the same once more. `unsure`: a server's own fault whose words name a parameter,
        which may be chance where it took the same before."""
        super().__init__(f"{code}: {sentence}")
        self.code, self.sentence, self.retry_after, self.received = code, sentence, retry_after, received
        self.whole, self.counted, self.recorded, self.again = whole, counted, recorded, again
        self.unsure = unsure

    def called(self, code: str) -> Failure:
        """The same with another code."""
        return Failure(
            code, self.sentence, self.retry_after, self.received,
            whole=self.whole, counted=self.counted, recorded=self.recorded, again=self.again, unsure=self.unsure,
        )  # fmt: skip

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later."""
        if self.code.isdigit():
            return int(self.code) in TRANSIENT_STATUS or int(self.code) >= 500
        return self.code in ("timeout", "connection", "malformed", "unreadable", "quota", "page")

    @property
    def is_long(self) -> bool:
        """Whether the server asks for a wait of which the operator is told at once. Read from the sentence, so that a
        replay, which does not wait, has the same rows."""
        return ASKS in self.sentence

    @property
    def rejected(self) -> str:
        """The parameter that the server does not take, or may not take, else empty."""
        word, _, parameter = self.code.partition(" ")
        return parameter if word in ("rejected", "suspected") else ""

    @staticmethod
    def load(text: str, charge: tuple[int, int, float | None] = (0, 0, 0.0), again: bool = False) -> Failure:
        """As a session recorded it, with what it was charged: its replay does not wait again."""
        code, _, sentence = text.partition(": ")
        return Failure(code, sentence, counted=Counted(*charge), recorded=True, again=again)


def understood(request: Mapping[str, Any], status: int, body: object, shown: str) -> str:
    """The code of an answer with this status and body; 0: an error that came with a good status, and does not tell the
    one it should have had. `shown`: what is told of it, where the body is empty."""
    text = " ".join(texts(body))[:LONGEST_ERROR] or shown
    if not status and (status := _meant(text)) == 404:
        return "404"
    if status in (400, 403) and _FLAGGED.search(text):
        return "filtered"
    if status in (401, 403, 407):
        return str(status)
    if status in (400, 422) and _NO_KEY.search(text):
        return "401"
    if status == 503 and _NO_SUCH_MODEL.search(text):
        return "404"
    if _QUOTA.search(text) or status == 402:
        return "quota"
    if code := _over_rate(request, text):
        return code
    if status == 429 or status in (408, 425, 502, 503, 504, 529):
        return str(status)
    if _RATE.search(text) and (status == 400 or status >= 500):
        return "429"
    if status >= 500 and _OWN_FAULT.search(text):
        return str(status)
    if _FILTERED.search(text):
        return "filtered"
    if _BAD_JSON.search(text) and "response_format" in request:
        return "rejected response_format"
    if _RESPONSES.search(text):
        return "rejected chat"
    field = _field(request, body)
    if field not in ("", "model", "max_tokens", "max_completion_tokens", "messages"):
        return f"rejected {field}"
    if code := _too_long(request, body, text):
        return code
    if field in ("max_tokens", "max_completion_tokens"):
        return f"rejected {field}"
    if status == 404 and "model" in text and "support" not in text:
        return "404"
    if named := _named(request, text):
        return f"rejected {named}"
    # Last: what else is wrong is often said of "this model".
    return "404" if status < 500 and (field == "model" or _NOT_THERE.search(text)) else str(status)


def _meant(text: str) -> int:
    """The status that an error with a good one should have had: what no waiting mends is told by its words."""
    if _NO_KEY.search(text):
        return 401
    return 404 if _NOT_THERE.search(text) else 500


def asked_wait(body: object) -> float | None:
    """Seconds after which an error's own words ask for another try."""
    found = _WAIT.search(" ".join(texts(body))[:LONGEST_ERROR])
    if not found or not any(found.groups()):
        return None
    hours, minutes, count, unit = found.groups()
    seconds = float(count or 0) / (1000 if unit and unit.lower() == "ms" else 1)
    return 3600 * float(hours or 0) + 60 * float(minutes or 0) + seconds


def is_cut_off(body: object) -> bool:
    """OpenAI's error in place of a reply that came to the cap on its tokens while it was thought about."""
    return bool(_CUT_OFF.search(" ".join(texts(body))[:LONGEST_ERROR]))


_QUOTED = ("input", "ctx", "url", "failed_generation", "flagged_input")
"""Parts of an error in which what we or the model wrote comes back."""


def texts(body: object) -> Iterator[str]:
    """Every text in the body of an error, and its numbers as `name=number`."""
    if isinstance(body, str):
        yield body
    elif isinstance(body, Mapping):
        for name, part in body.items():
            if isinstance(part, int) and not isinstance(part, bool) and name not in ("code", "status"):
                yield f"{name}={part}" if abs(part) < MOST_TOKENS else str(name)
            elif name not in _QUOTED:
                yield from texts(part)
    elif isinstance(body, list | tuple):
        for part in body:
            yield from texts(part)


_OF_RESPONSES = {
    "text": "response_format", "reasoning": "reasoning_effort", "max_output_tokens": "max_completion_tokens",
}  # fmt: skip
"""What the Responses API calls a parameter (agents/responses.py)."""


def _field(request: Mapping[str, Any], body: object) -> str:
    """The parameter that the body names in a field of its own: `param`, or the last but one of `loc`."""
    for node in _nodes(body):
        param = node.get("param")
        if isinstance(param, str) and param:
            if param.startswith("messages[0].role"):
                return "system"
            first = re.split(r"[.\[]", param)[0]
            name = _OF_RESPONSES.get(first, first)
            if name in request:
                return name
        place = node.get("loc")
        if isinstance(place, list | tuple):
            part_name = next((part for part in place if isinstance(part, str) and part in request), "")
            if part_name:
                return part_name
    return ""


def _nodes(body: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(body, Mapping):
        yield body
        for part in body.values():
            yield from _nodes(part)
    elif isinstance(body, list | tuple):
        for part in body:
            yield from _nodes(part)
    elif isinstance(body, str) and body.lstrip().startswith(("{", "[{")):  # an error of an error: proxies quote it
        try:
            yield from _nodes(json.loads(body))
        except (ValueError, RecursionError):
            return


def _named(request: Mapping[str, Any], text: str) -> str:
    """The first of our parameters that the text names."""
    sent = [name for name in _NAMES if name in request or (name == "system" and _has_system(request))]
    low = text.lower()
    places = [(match.start(), name) for name in sent if (match := re.search(_NAMES[name], low))]
    if "tools" in [name for _, name in places]:  # of two that do not go together, the one that a session can do without
        return "tools"
    others = [(low.find(name), name) for name in request if name not in _NAMES and name not in ("model", "messages")]
    places += [(at, name) for at, name in others if at >= 0]
    return min(places)[1] if places else ""


def _has_system(request: Mapping[str, Any]) -> bool:
    return any(message.get("role") == "system" for message in request.get("messages", ()))


# ---- how many tokens fit --------------------------------------------------------------------------------
def _over_rate(request: Mapping[str, Any], text: str) -> str:
    """`tokens ...` of a request that alone is more than a minute may have: no waiting mends it, a lower cap may."""
    found = _OVER_RATE.search(text)
    limit, asked = (_tokens(found[1]), _tokens(found[2])) if found else (None, None)
    if limit is None or asked is None or asked <= limit:
        return ""
    prompt = asked - (sent_cap(request) or 0)
    return _code(context=limit, prompt=prompt if 0 < prompt < asked else None)


def _too_long(request: Mapping[str, Any], body: object, text: str) -> str:
    """`tokens ...` if the text complains of the number of tokens, not of the parameter's name."""
    low = text.lower()
    if "token" not in low and "context" not in low and not _LENGTH.search(low):
        return ""
    cap = sent_cap(request)
    if _UNSUPPORTED.search(low) and not re.search(r"context|at most|maximum|range", low):
        return ""
    if not _TOKENS.search(low):
        return ""
    fields = {
        str(name): int(value)
        for node in _nodes(body)
        for name, value in node.items()
        if name in ("n_ctx", "n_prompt_tokens") and type(value) is int and 0 < value < MOST_TOKENS
    }
    if "n_ctx" in fields:
        prompt = fields.get("n_prompt_tokens")
        return _code(context=fields["n_ctx"], prompt=prompt)
    if output := _OUTPUT.search(low):
        return _code(output=_tokens(output[1]))
    if context := _CONTEXT.search(low):
        prompt_said = _PROMPT.search(low)
        prompt_tokens = prompt_said[1] or prompt_said[2] if prompt_said else ""
        return _code(context=_tokens(context[1]), prompt=_tokens(prompt_tokens))
    numbers = [n for word in _NUMBER.findall(low)[:MOST_NUMBERS] if (n := _tokens(word)) is not None]
    others = sorted({n for n in numbers if n > 15 and n != cap}, reverse=True)
    if not re.search(r"context|input|prompt|messages", low):
        return _code(output=next((n for n in others if cap is None or n < cap), None))
    sums = [(a, b) for a in others for b in others if cap and abs(a - b - cap) <= 1]
    if sums:  # all that was asked for, and the prompt's part of it
        whole, prompt = sums[0]
        left = [n for n in others if n not in (whole, prompt)]
        return _code(context=max(left) if left else None, prompt=prompt)
    if len(others) >= 2 and cap is not None and cap in numbers:
        return _code(context=others[0], prompt=others[1])
    if len(others) >= 2:  # the prompt alone: which of the two is larger?
        return _code(context=others[1], prompt=others[0])
    return _code(context=others[0] if others else None)


def _tokens(word: str) -> int | None:
    """None for what is no number of tokens."""
    digits = word.replace(",", "")
    return int(digits) if len(digits) < len(str(MOST_TOKENS)) and digits.isascii() and digits.isdigit() else None


def _code(**parts: int | None) -> str:
    return " ".join(["tokens", *(f"{name}={value}" for name, value in parts.items() if value is not None)])


# ---- pages ------------------------------------------------------------------------------------------------
def is_page(text: str) -> bool:
    return bool(_PAGE.match(text))


def words_of(text: str) -> str:
    """Of a page its title, or what it shows if it has none; any other text as it is."""
    if not is_page(text):
        return text
    title = _TITLE.search(text := text[:LONGEST_ERROR])
    return html.unescape(title[1] if title and title[1].strip() else _TAGS.sub(" ", text))


def token_limits(code: str) -> dict[str, int]:
    """{context, prompt, output} of a `tokens` code, as far as the server said."""
    said = {name: _tokens(value) for name, _, value in (word.partition("=") for word in code.split()[1:])}
    return {name: value for name, value in said.items() if value is not None}


def sent_cap(request: Mapping[str, Any]) -> int | None:
    for name in ("max_tokens", "max_completion_tokens", "max_output_tokens"):
        if isinstance(request.get(name), int):
            return int(request[name])
    return None

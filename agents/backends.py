"""Ways to get one reply: the real `openai` client (over the network, or in process), or a recorded session."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import httpx2
import openai
from openai.types.chat import ChatCompletion

from rlgpt.agents.endpoint import Endpoint, redacted, redacted_url
from rlgpt.agents.errors import NotRecorded
from rlgpt.agents.journal import Call, canonical

AZURE_API_VERSION = "2024-10-21"
TRANSIENT_STATUS = (408, 409, 429)


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

    def dump(self) -> str:
        usage = {"tokens_in": self.tokens_in, "tokens_out": self.tokens_out}
        parts = {k: getattr(self, k) for k in ("content", "finish_reason", "refusal", "model")}
        return canonical({**parts, "usage": usage})

    @staticmethod
    def load(text: str) -> Completion:
        parts = json.loads(text)
        usage = parts.pop("usage")
        return Completion(**parts, **usage)


class Failure(Exception):
    """No reply. `code` is a status, `timeout`, `connection`, `malformed`, or `rejected PARAMETER`."""

    def __init__(self, code: str, sentence: str, retry_after: float | None = None) -> None:
        super().__init__(f"{code}: {sentence}")
        self.code, self.sentence, self.retry_after = code, sentence, retry_after

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later."""
        if self.code.isdigit():
            return int(self.code) in TRANSIENT_STATUS or int(self.code) >= 500
        return self.code in ("timeout", "connection", "malformed")

    @property
    def rejected(self) -> str:
        """The parameter that the server does not take, else empty."""
        return self.code.removeprefix("rejected ") if self.code.startswith("rejected ") else ""

    @staticmethod
    def load(text: str) -> Failure:
        code, _, sentence = text.partition(": ")
        return Failure(code, sentence, 0.0)


class Backend(Protocol):
    def complete(self, endpoint: Endpoint, call: Call) -> Completion:
        """Raises Failure (or NotRecorded)."""


# ---- the real client ----------------------------------------------------------------------------
class OpenAIBackend:
    """The `openai` package against OpenAI, Azure, vLLM, Ollama, llama.cpp or anything alike, by URL.

    `transport` replaces the network (the rule-based model answers in process).
    """

    def __init__(self, transport: httpx2.BaseTransport | None = None) -> None:
        self._transport = transport
        self._clients: dict[tuple[str, str], openai.OpenAI] = {}

    def complete(self, endpoint: Endpoint, call: Call) -> Completion:
        client = self._client(endpoint)
        request: dict[str, Any] = json.loads(call.request)
        try:
            reply = client.chat.completions.create(**request, timeout=endpoint.timeout)
        except openai.APITimeoutError as error:
            raise Failure("timeout", f"no answer from {_where(endpoint)} in {endpoint.timeout:g} s") from error
        except openai.APIConnectionError as error:
            cause = _shown(endpoint, error.__cause__ or error)
            raise Failure("connection", f"{_where(endpoint)} cannot be reached ({cause})") from error
        except openai.APIStatusError as error:
            raise _status_failure(endpoint, request, error) from error
        except (ValueError, openai.APIError) as error:
            raise Failure("malformed", f"{_where(endpoint)} answered with no valid JSON") from error
        return _completion(endpoint, reply)

    def _client(self, endpoint: Endpoint) -> openai.OpenAI:
        name = (endpoint.base_url, endpoint.key)
        if name not in self._clients:
            self._clients[name] = self._make(endpoint)
        return self._clients[name]

    def _make(self, endpoint: Endpoint) -> openai.OpenAI:
        http = httpx2.Client(transport=self._transport) if self._transport else None
        parts = urlsplit(endpoint.base_url)
        if endpoint.azure and "/openai/v1" not in parts.path:
            version = parse_qs(parts.query).get("api-version", [AZURE_API_VERSION])[0]
            return openai.AzureOpenAI(
                azure_endpoint=f"{parts.scheme}://{parts.netloc}", api_version=version, api_key=endpoint.key,
                max_retries=0, http_client=http,
            )  # fmt: skip
        return openai.OpenAI(base_url=endpoint.base_url, api_key=endpoint.key, max_retries=0, http_client=http)


def _completion(endpoint: Endpoint, reply: object) -> Completion:
    if not isinstance(reply, ChatCompletion) or not reply.choices or reply.choices[0].message is None:
        raise Failure("malformed", f"{_where(endpoint)} answered with no chat completion")
    choice = reply.choices[0]
    usage = reply.usage
    return Completion(
        content=choice.message.content or "",
        finish_reason=choice.finish_reason or "",
        refusal=getattr(choice.message, "refusal", None) or "",
        model=reply.model or endpoint.model,
        tokens_in=usage.prompt_tokens if usage else None,
        tokens_out=usage.completion_tokens if usage else None,
    )


def _status_failure(endpoint: Endpoint, request: Mapping[str, Any], error: openai.APIStatusError) -> Failure:
    shown = _shown(endpoint, error.message)
    if error.status_code in (400, 404, 422):
        parameter = _blamed(request, error)
        if parameter:
            return Failure(f"rejected {parameter}", f"{_where(endpoint)} does not take it ({shown})")
    if error.status_code == 429 and error.code == "insufficient_quota":
        return Failure("quota", f"{_where(endpoint)} says that the account's quota is used up")
    retry_after = _retry_after(error.response.headers)
    return Failure(
        str(error.status_code), f"{_where(endpoint)} answered with {error.status_code} ({shown})", retry_after
    )


_WORDS = {
    "response_format": ("response_format", "json_schema", "json_object", "structured output", "guided"),
    "temperature": ("temperature",),
    "max_completion_tokens": ("max_completion_tokens",),
    "max_tokens": ("max_tokens",),
}


def _blamed(request: Mapping[str, Any], error: openai.APIStatusError) -> str:
    """Which of the parameters that we sent the server complains about: by field, else by the first named."""
    field = str(error.param or "").partition(".")[0]
    if field in _WORDS and field in request:
        return field
    text = error.message.lower()
    places = [
        (text.find(word), name) for name, words in _WORDS.items() if name in request for word in words if word in text
    ]
    return min(places)[1] if places else ""


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from `retry-after-ms`, or `retry-after` as a number or an HTTP date."""
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * scale)
        except (KeyError, ValueError):
            continue
    try:
        from email.utils import parsedate_to_datetime

        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (KeyError, ValueError, TypeError):
        return None


def _where(endpoint: Endpoint) -> str:
    return redacted_url(endpoint.base_url)


def _shown(endpoint: Endpoint, error: object) -> str:
    return " ".join(redacted(str(error), endpoint.key).split())[:300]


# ---- a recorded session -------------------------------------------------------------------------
@dataclass(frozen=True)
class Outcome:
    """How one recorded exchange ended: `reply` (Answer.reply), or `error` when there was none."""

    reply: str = ""
    error: str = ""


class ReplayBackend:
    """Answers, and fails, as the recorded session did. No network."""

    def __init__(self, session: str, outcomes: Callable[[str, str], Sequence[Outcome]]) -> None:
        """`outcomes(step, request_hash)`: the recorded exchanges of that request, in order."""
        self._session, self._outcomes = session, outcomes
        self._used: Counter[tuple[str, str]] = Counter()

    def complete(self, endpoint: Endpoint, call: Call) -> Completion:
        name = (call.step, call.request_hash)
        recorded = self._outcomes(*name)
        if self._used[name] >= len(recorded):
            raise NotRecorded(
                f"Session {self._session} holds no answer to this request of the {call.role} agent "
                f"(step {call.step}): from here on the replayed session differs from the recorded one."
            )
        outcome = recorded[self._used[name]]
        self._used[name] += 1
        if outcome.error:
            raise Failure.load(outcome.error)
        return Completion.load(outcome.reply)

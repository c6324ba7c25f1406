"""Two ways to get a reply: the `openai` client, over the network or in process, and a recorded session."""

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

from rlgpt.agents.completions import Completion, NotStreamed, Reply, Unreadable, encodable, of_stream, of_tree
from rlgpt.agents.endpoint import Endpoint, redacted, redacted_url
from rlgpt.agents.errors import NotRecorded
from rlgpt.agents.journal import Call
from rlgpt.agents.refusals import Failure, texts, understood
from rlgpt.agents.responses import in_chat

AZURE_API_VERSION = "2024-10-21"
CONNECT = 30.0
"""Seconds to reach a server, or to hand it the request."""
PATIENCE = 3
"""How often the limit on silence doubles: a slow server that is asked again too early queues one try behind another."""

__all__ = ["Backend", "Completion", "Failure", "OpenAIBackend", "Outcome", "ReplayBackend"]


Hear = Callable[[str, str], None]
"""Is told of a reply while it comes: (thought, content), piece by piece. What it raises ends the exchange."""


def unheard(thought: str, content: str) -> None:
    """Nobody listens."""


class Backend(Protocol):
    def complete(self, endpoint: Endpoint, call: Call, hear: Hear = unheard) -> Completion:
        """Raises Failure (or NotRecorded)."""


# ---- the real client ----------------------------------------------------------------------------
class OpenAIBackend:
    """The `openai` package against OpenAI, Azure, vLLM, Ollama, llama.cpp or anything alike, by URL."""

    def __init__(self, transport: httpx2.BaseTransport | None = None) -> None:
        """`transport` replaces the network (the rule-based model answers in process)."""
        self._transport = transport
        self._clients: dict[tuple[str, str], openai.OpenAI] = {}
        self._silences: Counter[str] = Counter()

    def complete(self, endpoint: Endpoint, call: Call, hear: Hear = unheard) -> Completion:
        request: dict[str, Any] = json.loads(call.request)
        silence = endpoint.timeout * 2 ** min(self._silences[endpoint.base_url], PATIENCE)
        reply = Reply(hear)
        where = redacted_url(endpoint.base_url)
        try:
            return self._exchange(endpoint, request, silence, reply)
        except (openai.APITimeoutError, httpx2.TimeoutException) as error:
            self._silences[endpoint.base_url] += 1
            raise Failure("timeout", f"no word from {where} in {silence:g} s", received=reply.size) from error
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            word = "broke off" if reply.size else "cannot be reached"
            sentence = f"{where} {word} ({_shown(endpoint, error.__cause__ or error)})"
            raise Failure("connection", sentence, received=reply.size) from error
        except openai.APIStatusError as error:
            retry_after = _retry_after(error.response.headers)
            raise _failure(endpoint, request, error.status_code, error.body, reply, retry_after) from error
        except Unreadable as error:  # an error in a body with status 200
            raise _failure(endpoint, request, error.status, error.body, reply) from error
        except NotStreamed as error:
            raise Failure("rejected stream", f"{where} does not stream") from error
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError, openai.APIError) as error:
            raise Failure("malformed", f"{where} answered with no valid JSON", received=reply.size) from error

    def _exchange(self, endpoint: Endpoint, request: Mapping[str, Any], silence: float, reply: Reply) -> Completion:
        """The body is read by agents/completions.py rather than by the client's models: what compatible servers send
        does not always fit them. Raises the client's and httpx2's errors, Unreadable, NotStreamed, ValueError."""
        client = self._client(endpoint)
        named = ("model", "messages", "input", "stream")
        more = {name: part for name, part in request.items() if name not in named}
        # The limit is on silence: httpx2's read timeout runs anew with every piece that comes.
        timeout = httpx2.Timeout(silence, connect=min(CONNECT, silence))
        stream: Any = bool(request.get("stream")) or openai.omit
        create: Any = client.chat.completions.with_streaming_response.create
        payload: dict[str, Any] = {"messages": request.get("messages")}
        if "input" in request:
            create, payload = client.responses.with_streaming_response.create, {"input": request["input"]}
        with create(model=request["model"], stream=stream, extra_body=more, timeout=timeout, **payload) as response:
            kind = response.headers.get("content-type", "").lower()
            if not request.get("stream") or "json" in kind:
                return of_tree(json.loads(response.read()), endpoint.model, reply)
            if "html" in kind:
                raise ValueError("a page in place of a stream")
            return of_stream(response.iter_lines(), reply, endpoint.model)

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


def _failure(
    endpoint: Endpoint,
    request: Mapping[str, Any],
    status: int,
    body: object,
    reply: Reply,
    retry_after: float | None = None,
) -> Failure:
    """`status` 0: the body of a good status that holds no completion."""
    shown = _shown(endpoint, " ".join(texts(body)))
    code = understood(in_chat(request), status or 500, body, shown)
    if not status and code == "500":
        code = "malformed"
    where = redacted_url(endpoint.base_url)
    shown_body = f" ({shown})" if shown else ""
    if code.startswith("rejected"):
        sentence = f"{where} does not take it{shown_body}"
    elif code.startswith("tokens"):
        sentence = f"{where} has no room for so many tokens{shown_body}"
    elif code == "quota":
        sentence = f"{where} says that the account's quota is used up{shown_body}"
    elif code == "filtered":
        sentence = f"the content filter of {where} refused the request{shown_body}"
    elif not status:
        sentence = f"{where} answered with no chat completion{shown_body}"
    else:
        sentence = f"{where} answered with {status}{shown_body}"
    return Failure(code, sentence, retry_after, reply.size)


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


def _shown(endpoint: Endpoint, error: object) -> str:
    return encodable(" ".join(redacted(str(error), endpoint.key).split())[:300])


# ---- a recorded session -------------------------------------------------------------------------
@dataclass(frozen=True)
class Outcome:
    """How one recorded exchange ended: `reply` (Answer.reply), or `error` when there was none."""

    reply: str = ""
    error: str = ""


class ReplayBackend:
    """Answers, and fails, as the recorded session did. No network."""

    def __init__(
        self, session: str, outcomes: Callable[[str, str | None], Sequence[Outcome]], by_step: bool = False
    ) -> None:
        """`outcomes(step, request_hash)`: the recorded exchanges of that request, or None: of that step, in order.
        `by_step`: its questions had other words, so an answer is known by the step that asked."""
        self._session, self._outcomes, self._by_step = session, outcomes, by_step
        self._used: Counter[tuple[str, str | None]] = Counter()

    def complete(self, endpoint: Endpoint, call: Call, hear: Hear = unheard) -> Completion:
        name = (call.step, None if self._by_step else call.request_hash)
        recorded = self._outcomes(*name)
        if self._used[name] >= len(recorded):
            raise NotRecorded(
                f"Session {self._session} holds no answer to this request of the {call.role} agent "
                f"(step {call.step}): from here on the replayed session differs from the recorded one. A session "
                "repeats another only with the same task, seed and settings, of which `rlgpt show` tells."
            )
        outcome = recorded[self._used[name]]
        self._used[name] += 1
        if outcome.error:
            raise Failure.load(outcome.error)
        return Completion.load(outcome.reply)

"""Two ways to get a reply: the `openai` client, over the network or in process, and a recorded session."""

from __future__ import annotations

import json
import os
import re
import ssl
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit, urlunsplit
from urllib.request import proxy_bypass

import httpx2
import openai

from rlgpt.agents.charges import FREE, Charge, Recorded
from rlgpt.agents.completions import (
    BrokenOff,
    Completion,
    GivenUp,
    NotStreamed,
    Page,
    Reply,
    Unreadable,
    body_of,
    encodable,
    lines_of,
    of_stream,
    of_tree,
)
from rlgpt.agents.endpoint import NO_KEY, Endpoint, redacted, redacted_url, spellings, without_key
from rlgpt.agents.errors import NotRecorded
from rlgpt.agents.journal import Call
from rlgpt.agents.refusals import (
    ASKS,
    LONG,
    Failure,
    asked_wait,
    is_cut_off,
    is_page,
    sent_cap,
    texts,
    understood,
    words_of,
)
from rlgpt.agents.responses import in_chat

AZURE_API_VERSION = "2024-10-21"
CONNECT = 30.0
"""Seconds to reach a server, or to hand it the request."""
PATIENCE = 3
"""How often the limit on silence doubles: a slow server that is asked again too early queues one try behind another."""
DIED = "error: "
"""How a row begins whose exchange ended by an error of this program, and the worker with it."""
LEFT = "stopped"
"""The code of an exchange that was under way when the session was stopped."""

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
        reply = Reply(_withholding(endpoint.key, hear))
        where = redacted_url(endpoint.base_url)
        client = self._client(endpoint)
        try:
            return _without_key(endpoint.key, self._exchange(client, endpoint, request, silence, reply))
        except (openai.APITimeoutError, httpx2.TimeoutException) as error:
            self._silences[endpoint.base_url] += 1
            sentence = f"no word from {where} in {silence:g} s"
            raise Failure("timeout", sentence, received=reply.received, whole=reply.whole) from error
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            raise _unconnected(endpoint, error, reply) from error
        except openai.APIStatusError as error:
            if error.response.has_redirect_location:
                raise _moved(endpoint, error.response) from error
            if is_cut_off(error.body):
                return Completion("", "length", "", endpoint.model, None, None)
            retry_after = _retry_after(error.response.headers)
            raise _failure(endpoint, request, error.status_code, error.body, reply, retry_after) from error
        except Unreadable as error:  # an error in a body with status 200
            failure = _failure(endpoint, request, error.status, error.body, reply)
            if error.is_reply:
                sentence = f"{where} answered with a chat completion that holds no reply"
                failure = Failure("unreadable", sentence, received=reply.received, whole=True, counted=error.counted)
            raise failure from error
        except BrokenOff as error:
            sentence = f"the stream of {where} ended before the reply did"
            raise Failure("unreadable", sentence, received=max(1, reply.received)) from error
        except GivenUp as error:
            sentence = f"{where} broke off (finish_reason {_shown(endpoint, error)})"
            begun = reply.whole and reply.size > 0
            received, counted = reply.received, error.counted
            raise Failure("connection", sentence, received=received, whole=begun, counted=counted) from error
        except NotStreamed as error:
            sentence = f"the stream of {where} holds nothing"
            raise Failure("rejected stream", sentence, whole=reply.whole, unsure=True) from error
        except Page as error:
            sentence = f"{where} answered with a web page ({_shown(endpoint, error)})"
            raise Failure("page", sentence) from error
        except (*_UNREADABLE, openai.APIError) as error:
            code = "unreadable" if reply.size or reply.whole else "malformed"
            sentence = f"{where} answered with no valid JSON"
            raise Failure(code, sentence, received=reply.received, whole=reply.whole) from error

    def _exchange(
        self, client: openai.OpenAI, endpoint: Endpoint, request: Mapping[str, Any], silence: float, reply: Reply
    ) -> Completion:
        """The body is read by agents/completions.py rather than by the client's models: what compatible servers send
        does not always fit them. Raises the client's and httpx2's errors, Unreadable, BrokenOff, GivenUp,
        NotStreamed, ValueError."""
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
            if not request.get("stream") or "json" in kind or "html" in kind:
                body = body_of(response.iter_bytes(), reply)
                if is_page(text := body.decode(errors="replace")):
                    raise Page(text)
                return of_tree(json.loads(body), endpoint.model, reply)
            cap = sent_cap(request) or endpoint.max_tokens
            return of_stream(lines_of(response.iter_bytes()), reply, endpoint.model, cap)

    def _client(self, endpoint: Endpoint) -> openai.OpenAI:
        """Raises Failure where none can be made, which no waiting mends."""
        name = (endpoint.base_url, endpoint.key)
        if name not in self._clients:
            try:
                self._clients[name] = self._make(endpoint)
            except (OSError, ImportError, ValueError, TypeError, httpx2.InvalidURL, openai.OpenAIError) as error:
                where, why = redacted_url(endpoint.base_url), _shown(endpoint, error)
                sentence = f"no connection to {where} can be made ({why}){_hint(_CONNECTION)}"
                raise Failure("unusable", sentence) from error
        return self._clients[name]

    def _make(self, endpoint: Endpoint) -> openai.OpenAI:
        parts = urlsplit(endpoint.base_url)
        query = parse_qsl(parts.query, keep_blank_values=True)
        by_deployment = endpoint.azure and "/openai/v1" not in parts.path
        version = dict(query).get("api-version", AZURE_API_VERSION)
        if by_deployment:
            query = [(name, value) for name, value in query if name != "api-version"]
        # A redirect would take the operator's headers and the prompt to a place that nobody named. The query is the
        # connection's, which sends a name as often as it stands in the URL; `default_query` holds each name once.
        http = openai.DefaultHttpxClient(follow_redirects=False, transport=self._transport, params=tuple(query))
        if endpoint.account:
            _check_account()
        headers = None if endpoint.account else _no_account(endpoint)
        if by_deployment:
            before = parts.path.partition("/openai")[0].rstrip("/")
            return openai.AzureOpenAI(
                azure_endpoint=f"{parts.scheme}://{parts.netloc}{before}",
                api_version=version, api_key=endpoint.key, max_retries=0, http_client=http, default_headers=headers,
            )  # fmt: skip
        path = parts.path.rstrip("/").removesuffix("/chat/completions").removesuffix("/responses")
        url = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
        return openai.OpenAI(
            base_url=url, api_key=endpoint.key, max_retries=0, http_client=http, default_headers=headers,
        )  # fmt: skip


_UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError, AssertionError)
"""What a body that nobody meant raises where it is read; the last in CPython's own codec of base64."""
_CONNECTION = ("SSL_CERT_FILE", "SSL_CERT_DIR", "ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")
"""Variables that say how connections are made, the last three in small letters too."""
_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+:[\t -~]*", re.ASCII)
"""A line of a header as RFC 9110 has it: a token, a colon, and letters of ASCII that can be seen."""


def _hint(names: Sequence[str]) -> str:
    """Those of these variables that the environment holds; empty where it holds none."""
    variables = [name for name in os.environ if name.upper() in names and os.environ[name]]
    return f"; look at {', '.join(variables)} in the environment" if variables else ""


def _proxy_hint(base_url: str) -> str:
    """The variables that name a proxy for this URL."""
    scheme, host = urlsplit(base_url).scheme.upper(), urlsplit(base_url).hostname or ""
    return "" if proxy_bypass(host) else _hint((f"{scheme}_PROXY", "ALL_PROXY"))


def _unconnected(endpoint: Endpoint, error: Exception, reply: Reply) -> Failure:
    """A connection that failed: at what, and whether waiting may mend it."""
    where, why = redacted_url(endpoint.base_url), _shown(endpoint, error.__cause__ or error)
    cause = (error.__cause__ if isinstance(error, openai.APIConnectionError) else None) or error
    if _is_untrusted(error):
        cure = "SSL_CERT_FILE may name a file with its issuer's"
        return Failure("unusable", f"the certificate of {where} is not trusted ({why}); {cure}")
    if isinstance(cause, httpx2.ProxyError):  # only a proxy that is reached raises it
        sentence = f"the proxy in front of {where} answered with {why}{_proxy_hint(endpoint.base_url)}"
        if str(cause).startswith("407"):
            return Failure("unusable", sentence)
    elif isinstance(cause, httpx2.DecodingError):  # it was reached, and has answered
        sentence = f"{where} answered with a body that is not encoded as it says ({why})"
    else:
        sentence = f"{where} {'broke off' if reply.size or reply.whole else 'cannot be reached'} ({why})"
        if isinstance(cause, httpx2.ConnectError):  # it may be the proxy that is away, and not the server
            sentence += _proxy_hint(endpoint.base_url)
    return Failure("connection", sentence, received=reply.received, whole=reply.whole)


def _check_account() -> None:
    """Raises Failure where the account's variables hold what no header takes: the client would fail before it sends
    anything, which looks like a fault of the server, and no waiting mends it."""
    lines = [(name, f"{name}: {os.environ.get(name, '')}") for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID")]
    custom = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
    lines += [("OPENAI_CUSTOM_HEADERS", line.strip()) for line in custom if ":" in line]
    for name, line in lines:
        if not _HEADER.fullmatch(line):
            sentence = f"the variable {name} holds a letter that no header has, such as the … of a shortened copy"
            raise Failure("unusable", sentence)


def _is_untrusted(error: BaseException | None) -> bool:
    """Whether what is behind it is a certificate that cannot be verified, which no waiting mends."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None


def _no_account(endpoint: Endpoint) -> dict[str, Any]:
    """Headers in place of those that the client takes from the environment for the operator's account at OpenAI."""
    headers: dict[str, Any] = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
    for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines():
        name = line.partition(":")[0].strip()
        own = {"authorization": f"Bearer {endpoint.key}", "api-key": endpoint.key if endpoint.azure else openai.Omit()}
        headers[name] = own.get(name.lower(), openai.Omit())
    return headers


def _without_key(key: str, completion: Completion) -> Completion:
    """Some servers send back what they were sent; the completion is stored and shown."""
    if not _is_secret(key):
        return completion
    calls = (call._replace(name=without_key(call.name, key), arguments=without_key(call.arguments, key))
             for call in completion.calls)  # fmt: skip
    return replace(
        completion,
        content=without_key(completion.content, key),
        finish_reason=without_key(completion.finish_reason, key),
        refusal=without_key(completion.refusal, key),
        model=without_key(completion.model, key),
        thought=without_key(completion.thought, key),
        calls=tuple(calls),
    )


def _withholding(key: str, hear: Hear) -> Hear:
    """`hear` without the key, whose end may come with a later piece."""
    if not _is_secret(key):
        return hear
    held = {"thought": "", "content": ""}
    known = spellings(key)

    def pass_on(name: str, piece: str) -> str:
        text = without_key(held[name] + piece, key)
        most = min(len(known[0]) - 1, len(text))
        begun = next((n for n in range(most, 0, -1) if any(spelt.startswith(text[-n:]) for spelt in known)), 0)
        held[name] = text[len(text) - begun :]
        return text[: len(text) - begun]

    return lambda thought, content: hear(pass_on("thought", thought), pass_on("content", content))


def _is_secret(key: str) -> bool:
    """A shorter one is a word in the place of a key, such as a server of the operator's own is given."""
    return len(key) >= 16


def _moved(endpoint: Endpoint, response: httpx2.Response) -> Failure:
    """Of a redirect, which is not followed. Its target is told as the server sent it, which may be no URL."""
    where, status = redacted_url(endpoint.base_url), response.status_code
    target = _shown(endpoint, response.headers["location"])
    return Failure(str(status), f"{where} answered with {status}, a redirect to {target}, which is not followed")


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
    try:
        code = understood(in_chat(request), status, body, shown)
    except _UNREADABLE:  # nothing that a server says of a failure makes a worse one of it
        code = str(status or 500)
    if not status and code == "500":
        code = "malformed"
    unsure = code.startswith("rejected") and (not status or status >= 500)
    retry_after = asked_wait(body) if retry_after is None and code == "429" else retry_after
    where = redacted_url(endpoint.base_url)
    shown_body = f" ({shown})" if shown else ""
    if code.startswith("rejected") and not unsure:
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
    if code in ("401", "403") and endpoint.key == NO_KEY:
        sentence += "; no key was sent to it"
    if retry_after is not None and retry_after >= LONG:
        sentence += f"{ASKS}{retry_after:.0f} s"
    return Failure(code, sentence, retry_after, reply.received, unsure=unsure)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from `retry-after-ms`, or `retry-after` as a number or an HTTP date."""
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * scale)
        except (KeyError, ValueError):
            continue
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (*_UNREADABLE, OSError):  # a date that no calendar has is none
        return None


def _shown(endpoint: Endpoint, error: object) -> str:
    return encodable(" ".join(redacted(words_of(str(error)), endpoint.key).split())[:300])


# ---- a recorded session -------------------------------------------------------------------------
@dataclass(frozen=True)
class Outcome:
    """How one recorded exchange ended: `reply` (Answer.reply) and its fault in `error`, or `error` alone."""

    reply: str = ""
    error: str = ""
    charge: Charge = FREE
    """What its row counts."""


Outcomes = Callable[[str, str | None], Sequence[Outcome]]
"""By step and the hash of a request."""


def _ended(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Those that no end of a worker cut off."""
    gone = (DIED, f"{LEFT}: ")
    return [outcome for outcome in outcomes if outcome.reply or not outcome.error.startswith(gone)]


class ReplayBackend:
    """Answers, and fails, as the recorded session did. No network. What ended its worker (`DIED`), or ended with it
    (`LEFT`), is left out: the next worker asked again."""

    def __init__(
        self, session: str, outcomes: Outcomes, by_step: bool = False, had: Outcomes = lambda step, name: ()
    ) -> None:
        """`outcomes(step, request_hash)`: the recorded exchanges of that request, or None: of that step, in order.
        `by_step`: its questions had other words, so an answer is known by the step that asked. `had`: the exchanges
        of the session that is answered, which an earlier worker of it may have begun."""
        self._session, self._outcomes, self._by_step, self._had = session, outcomes, by_step, had
        self._used: dict[tuple[str, str | None], int] = {}

    def complete(self, endpoint: Endpoint, call: Call, hear: Hear = unheard) -> Completion:
        name = (call.step, None if self._by_step else call.request_hash)
        recorded = _ended(self._outcomes(*name))
        if name not in self._used:
            self._used[name] = len(_ended(self._had(*name)))
        if self._used[name] >= len(recorded):
            raise NotRecorded(
                f"Session {self._session} holds no answer to this request of the {call.role} agent "
                f"(step {call.step}): from here on the replayed session differs from the recorded one. A session "
                "repeats another only with the same task, seed and settings, of which `rlgpt show` tells, and on the "
                "same kind of processor."
            )
        outcome = recorded[self._used[name]]
        self._used[name] += 1
        if not outcome.reply:
            raise Failure.load(outcome.error, outcome.charge, self._used[name] < len(recorded))
        return Recorded.of(Completion.load(outcome.reply, outcome.error), outcome.charge)

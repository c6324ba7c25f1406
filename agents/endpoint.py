"""Where each role's model is, what it may cost, and which key it gets: settings and environment in, values out."""

from __future__ import annotations

import base64
import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from rlgpt.agents.errors import MissingKey, Unclear
from rlgpt.agents.prices import Price, listed
from rlgpt.agents.providers import PROVIDERS, Provider, is_azure, provider_of
from rlgpt.store.urls import checked_url

ROLES = ("planner", "slow", "fast", "critic")
OPENAI_URL = "https://api.openai.com/v1"
RULES_URL = "http://rules.invalid/v1"
NO_KEY = "none"
"""In place of a key, which the client needs."""
RULES_MODEL = "rlgpt-rules"
"""The rule-based model's name. A request to it carries the world's script book; a language model's never does,
so that what a language model writes is its own."""


@dataclass(frozen=True)
class Endpoint:
    model: str
    base_url: str
    temperature: float = 0.0
    timeout: float = 300.0
    """Seconds of silence after which a try is given up; without streaming, seconds of one try."""
    max_tokens: int = 16_000
    """Cap on one reply."""
    stream: bool = False
    reasoning_effort: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further parameters of the request, word for word."""
    api: str = "chat"
    """chat | responses."""
    provider: Provider | None = None
    price: Price | None = None
    tells_cost: bool = False
    """The server says what each call cost."""
    parallel: int = 1
    """Calls that may be under way at once."""
    probes: int = 0
    """Tools that the model may call before it answers one question (agents/probes.py)."""
    key: str = field(default=NO_KEY, repr=False)
    account: bool = False
    """It is where the operator has an account at OpenAI: the organisation and headers of the environment go there."""

    @property
    def azure(self) -> bool:
        return self.provider is PROVIDERS["azure"] or is_azure(self.base_url)

    @property
    def rule_based(self) -> bool:
        return self.model == RULES_MODEL


def endpoints(llm: Mapping[str, Any], environ: Mapping[str, str] | None) -> dict[str, Endpoint]:
    """One endpoint a role from the `llm` part of the settings; without keys if `environ` is None.

    Raises MissingKey, Unclear.
    """
    if llm["kind"] == "rules":
        rules = Endpoint(RULES_MODEL, RULES_URL, price=Price(0.0, 0.0))
        return dict.fromkeys(ROLES, rules)
    return {role: _endpoint(role, llm, environ) for role in ROLES}


def _endpoint(role: str, llm: Mapping[str, Any], environ: Mapping[str, str] | None) -> Endpoint:
    own = {k: v for k, v in ((llm.get("roles") or {}).get(role) or {}).items() if v is not None}
    session = {k: v for k, v in llm.items() if v is not None and k != "roles"}
    if "provider" in own:  # a role's provider does not speak at the session's URL with the session's key
        session = {k: v for k, v in session.items() if k not in ("base_url", *OF_ONE_SERVER)}
    elif "base_url" in own and _is_elsewhere(str(own["base_url"]), session, environ):
        session = {k: v for k, v in session.items() if k not in OF_ONE_SERVER}
    settings = {**session, **own}
    named = PROVIDERS.get(str(settings.get("provider") or ""))
    url = _url(settings, environ)
    provider = named or provider_of(url)
    model = str(settings["model"])
    return Endpoint(
        model=model,
        base_url=url,
        temperature=float(settings.get("temperature", 0.0)),
        timeout=float(settings.get("timeout", 120.0)),
        max_tokens=int(settings.get("max_tokens", 16_000)),
        stream=bool(settings.get("stream", False)),
        reasoning_effort=str(settings.get("reasoning_effort") or ""),
        extra={**(session.get("extra") or {}), **(own.get("extra") or {})},
        api=str(settings.get("api", "chat")),
        parallel=int(settings.get("parallel") or _side_by_side(url)),
        probes=_probes(settings.get("probes"), provider),
        provider=provider,
        price=_price(settings, model, url, provider),
        tells_cost=provider is not None and provider.tells_cost,
        key=_key(url, settings.get("api_key_env"), environ) if environ is not None else NO_KEY,
        account=_is_account(url, environ or {}),
    )


OF_ONE_SERVER = ("api_key_env", "price_in", "price_out", "price_cached")
"""Settings of a session that say nothing of another server, which one of its roles may have."""


def _url(settings: Mapping[str, Any], environ: Mapping[str, str] | None) -> str:
    named = PROVIDERS.get(str(settings.get("provider") or ""))
    preset = named.base_url if named else ""
    return str(settings.get("base_url") or preset or _default_url(named, environ)).rstrip("/")


def _is_elsewhere(url: str, session: Mapping[str, Any], environ: Mapping[str, str] | None) -> bool:
    try:
        return _place(url) != _place(_url(session, environ))
    except Unclear:  # the session names no server of its own
        return False


SIDE_BY_SIDE = 8
"""Calls at once to a server on another machine. One on this machine computes them itself, and most such servers compute
one at a time: the others would wait in its queue, and be given up for its silence."""


PROBES = 6


def _probes(asked: int | None, provider: Provider | None) -> int:
    return asked if asked is not None else PROBES if provider is not None and provider.tools else 0


def _side_by_side(url: str) -> int:
    return 1 if _is_here(url) else SIDE_BY_SIDE


def _is_here(url: str) -> bool:
    host = _host(url)
    return host == "localhost" or host.startswith("127.") or host in ("::1", "0.0.0.0")


def _is_account(url: str, environ: Mapping[str, str]) -> bool:
    """Headers may be secrets, as keys are: they cross no network in clear text."""
    owned = provider_of(url) is PROVIDERS["openai"] or _place(url) == _place_of_account(environ)
    return owned and (url.startswith("https://") or _is_here(url))


def _default_url(named: Provider | None, environ: Mapping[str, str] | None) -> str:
    if named is PROVIDERS["azure"]:
        raise Unclear("Azure has no URL of its own: give the one of your resource with --base-url")
    try:
        return checked_url((environ or {}).get("OPENAI_BASE_URL") or OPENAI_URL)
    except ValueError as error:
        raise Unclear(f"the variable OPENAI_BASE_URL {error}") from error


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def _place(url: str) -> tuple[str, str, int | None]:
    """What a key is sent to: scheme, host and port."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"https": 443, "http": 80}.get(parts.scheme)


def _place_of_account(environ: Mapping[str, str]) -> tuple[str, str, int | None] | None:
    """That of OPENAI_BASE_URL, if there is one."""
    try:
        return _place(checked_url(environ.get("OPENAI_BASE_URL", "")))
    except ValueError:
        return None


def _price(asked: Mapping[str, Any], model: str, url: str, provider: Provider | None) -> Price | None:
    if asked.get("price_in") is not None and asked.get("price_out") is not None:
        return Price(asked["price_in"], asked["price_out"], asked.get("price_cached"))
    if model == RULES_MODEL or (provider is not None and provider.free):
        return Price(0.0, 0.0)
    if urlsplit(url).hostname == "api.openai.com" or is_azure(url):
        return listed(model)
    return None


def _key(url: str, variable: str | None, environ: Mapping[str, str]) -> str:
    """A key goes only to the host it belongs to, and never in clear text unless its variable was named for that.

    A provider's key belongs to the provider's host, OPENAI_API_KEY also to that of OPENAI_BASE_URL; what `variable`
    names belongs to wherever the operator sends it.
    """
    parts = urlsplit(url)
    owner = provider_of(url)
    own = owner.key if owner else ""
    if owner is None and _place(url) == _place_of_account(environ):
        own = "OPENAI_API_KEY"
    names = [name for name in (own if is_azure(url) or not variable else "", variable) if name]
    if variable not in (None, "OPENAI_API_KEY"):
        names = [str(variable)]
    named, key = next(((name, environ[name].strip()) for name in names if environ.get(name, "").strip()), ("", ""))
    if not key and (owner is not None or variable not in (None, "OPENAI_API_KEY")):
        raise MissingKey(
            f"{redacted_url(url)} needs an API key: set {names[0]} in the environment and start again, "
            "or run with --llm rules, which needs none."
        )
    if not all("!" <= letter <= "~" for letter in key):  # a header takes no others
        raise MissingKey(
            f"the API key in {named} holds a space or a letter that no key has, such as the … of a shortened copy: "
            "set it anew and start again."
        )
    in_clear = parts.scheme != "https" and variable in (None, "OPENAI_API_KEY")
    return key if key and not in_clear else NO_KEY


# ---- redaction ----------------------------------------------------------------------------------
_SECRET = re.compile(
    r"(?i)(\bsk-|\bbearer\s+|\bapi[-_ ]?key[\"' ]*[:=]\s*[\"']?|\b(?:token|sig|signature|key|password)=)[^\s\"'&,;)}]+"
)
_USERINFO = re.compile(r"(?i)\b([a-z][a-z0-9+.-]{0,20}://)[^/\s@]+@")


def redacted_url(url: str) -> str:
    """The URL without user, password and query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


@functools.lru_cache(8)
def spellings(key: str) -> tuple[str, ...]:
    """The key as it may come back, the longest first: as it is, in JSON, in a URL, and within a text in base64."""
    in_json = json.dumps(key)[1:-1]
    in_url = (quote(key), quote(key, safe=""))
    found = {key, in_json, key.replace("/", "\\/"), in_json.replace("/", "\\/"), *in_url}
    found |= {re.sub("%..", lambda code: code[0].lower(), url) for url in in_url}
    for before in range(3):  # bytes in front of it in a group; the letters at its ends hold bits of others too
        coded = base64.b64encode(b"\0" * before + key.encode()).decode().rstrip("=")
        own = coded[(0, 2, 3)[before] : len(coded) - (1 if (before + len(key)) % 3 else 0)]
        found |= {own, own.translate(str.maketrans("+/", "-_")), own.replace("/", "\\/")}
    return tuple(sorted(found, key=len, reverse=True))


@functools.lru_cache(8)
def _escaped(key: str) -> re.Pattern[str]:
    """The key where any of its letters stands as JSON may escape it, also JSON within JSON. Without the limit of 8 a
    reply of backslashes, which a model may repeat for ever, would be searched in the square of its length."""
    return re.compile("".join(rf"(?:{re.escape(one)}|\\{{1,8}}u(?i:{ord(one):04x}))" for one in key))


def without_key(text: str, key: str) -> str:
    for spelling in spellings(key):
        text = text.replace(spelling, "[key]")
    return _escaped(key).sub("[key]", text) if "\\u" in text else text


def redacted(text: str, *keys: str) -> str:
    """`text` without the given keys and without whatever looks like one."""
    for key in keys:
        if len(key) >= 6:
            text = without_key(text, key)
    return _SECRET.sub(r"\1[key]", _USERINFO.sub(r"\1", text))

"""Where each role's model is, what it may cost, and which key it gets: settings and environment in, values out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from rlgpt.agents.errors import MissingKey
from rlgpt.agents.prices import Price, listed

ROLES = ("planner", "slow", "fast", "critic")
OPENAI_URL = "https://api.openai.com/v1"
RULES_URL = "http://rules.invalid/v1"
RULES_MODEL = "rlgpt-rules"
"""The rule-based model's name. A request to it carries the world's script book; a language model's never does,
so that what a language model writes is its own."""


@dataclass(frozen=True)
class Endpoint:
    model: str
    base_url: str
    temperature: float = 0.0
    timeout: float = 120.0
    """Seconds per try."""
    max_tokens: int = 16_000
    """Cap on one reply."""
    price: Price | None = None
    key: str = field(default="none", repr=False)

    @property
    def azure(self) -> bool:
        return _azure(self.base_url)

    @property
    def rule_based(self) -> bool:
        return self.model == RULES_MODEL


def endpoints(llm: Mapping[str, Any], environ: Mapping[str, str] | None) -> dict[str, Endpoint]:
    """One endpoint a role from the `llm` part of the settings; without keys and for free if `environ` is None.

    Raises MissingKey.
    """
    if llm["kind"] == "rules":
        rules = Endpoint(RULES_MODEL, RULES_URL, price=Price(0.0, 0.0))
        return dict.fromkeys(ROLES, rules)
    return {role: _endpoint(role, llm, environ) for role in ROLES}


def _endpoint(role: str, llm: Mapping[str, Any], environ: Mapping[str, str] | None) -> Endpoint:
    own = {k: v for k, v in ((llm.get("roles") or {}).get(role) or {}).items() if v is not None}
    asked = {**llm, **own}
    url = str(asked.get("base_url") or (environ or {}).get("OPENAI_BASE_URL") or OPENAI_URL).rstrip("/")
    model = str(asked["model"])
    price: Price | None = None
    if environ is not None and own.get("price_in") is not None and own.get("price_out") is not None:
        price = Price(own["price_in"], own["price_out"])
    elif model == RULES_MODEL or environ is None:
        price = Price(0.0, 0.0)
    elif urlsplit(url).hostname == "api.openai.com" or _azure(url):
        price = listed(model)
    return Endpoint(
        model=model,
        base_url=url,
        temperature=float(asked.get("temperature", 0.0)),
        timeout=float(asked.get("timeout", 120.0)),
        price=price,
        key=_key(url, str(llm.get("api_key_env") or "OPENAI_API_KEY"), environ) if environ is not None else "none",
    )


def _key(url: str, variable: str, environ: Mapping[str, str]) -> str:
    """A default key never travels in clear text, and a server on plain http needs none."""
    parts = urlsplit(url)
    names = ["AZURE_OPENAI_API_KEY", variable] if _azure(url) else [variable]
    found = next((environ[name] for name in names if environ.get(name)), "")
    if parts.hostname == "api.openai.com" or _azure(url) or variable != "OPENAI_API_KEY":
        if not found:
            raise MissingKey(
                f"{redacted_url(url)} needs an API key: set {names[0]} in the environment and start again, "
                "or run with --llm rules, which needs none."
            )
        return found
    return found if found and parts.scheme == "https" else "none"


def _azure(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host.endswith((".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"))


# ---- redaction ----------------------------------------------------------------------------------
_SECRET = re.compile(
    r"(?i)(\bsk-|\bbearer\s+|\bapi[-_ ]?key[\"' ]*[:=]\s*[\"']?|\b(?:token|sig|signature|key|password)=)[^\s\"'&,;)}]+"
)
_USERINFO = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@]+@")


def redacted_url(url: str) -> str:
    """The URL without user, password and query."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.port:
        host += f":{parts.port}"
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def redacted(text: str, *keys: str) -> str:
    """`text` without the given keys and without whatever looks like one."""
    for key in keys:
        if len(key) >= 6:
            text = text.replace(key, "[key]")
    return _SECRET.sub(r"\1[key]", _USERINFO.sub(r"\1", text))

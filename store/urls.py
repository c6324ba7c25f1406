"""Addresses of servers, as settings and environment give them."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

_SECRET = re.compile("key|token|secret|password|sig", re.IGNORECASE)


def checked_url(url: str) -> str:
    """The URL of a server that can be asked. It is stored with the session, and a key in it would be too. Raises
    ValueError, whose sentence follows the name of the setting."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")
    except ValueError as error:
        raise ValueError(f"is no address: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("must begin with http:// or https:// and name a host")
    if not url.isprintable() or " " in url:
        raise ValueError("must hold no space and no control character")
    try:
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"has no port that can be: {error}") from error
    secret = [name for name, _ in parse_qsl(parts.query) if _SECRET.search(name)]
    if parts.username or parts.password or secret:
        raise ValueError("must hold no key or password: put the key in the variable that llm.api_key_env names")
    return url

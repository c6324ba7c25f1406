"""Plain data: what every database that may hold a session keeps as it is. Standard library only."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

EARLIEST, LATEST = -60_000_000_000, 200_000_000_000
"""Seconds from 1970: the years 68 and 8307. Python tells the time of nothing much earlier or later."""
MOST_BITS = 4096
"""Of a whole number in JSON: far below the 4,300 digits that Python's own `json` refuses."""

_DOUBTFUL = re.compile(r"\\u|NaN|Infinity|[eE]\+?\d\d|\d{290}")
"""In JSON of ASCII: without it no text is half of a pair or holds U+0000, and no number is too large: fewer than 290
digits and an exponent of one."""


def plain(value: Any) -> Any:
    """`value` as JSON gives it back. Raises TypeError or OverflowError for what JSON cannot hold."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int):
        if value.bit_length() > MOST_BITS:
            raise OverflowError(f"a whole number of more than {MOST_BITS} bits")
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_key(k): plain(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [plain(v) for v in value]
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:  # a numpy scalar
        return plain(value.item())
    raise TypeError(f"a {type(value).__name__} is not plain data")


def is_plain(value: Any) -> bool:
    """Whether `value`, read from JSON of any origin, is what a row may hold: no NaN, no 9e999, no half of a pair."""
    try:
        return _is_kept(value)
    except RecursionError:
        return False


def reads_plain(body: str, value: Any) -> bool:
    """`is_plain` of what the JSON `body` was read as; nearly all of it shows in the text that it is."""
    return (body.isascii() and _DOUBTFUL.search(body) is None) or is_plain(value)


def _is_kept(value: Any) -> bool:
    """Whether `plain` would give back `value`, which `json` has made; it is asked of each value of each row."""
    kind = type(value)
    if kind is str:
        return (value.isascii() and "\0" not in value) or text(value) == value
    if kind is float:
        return math.isfinite(value)
    if kind is int:
        return int(value).bit_length() <= MOST_BITS
    if kind is dict:
        return all(map(_is_kept, value)) and all(map(_is_kept, value.values()))
    if kind is list:
        return all(map(_is_kept, value))
    return value is None or kind is bool


def text(value: Any) -> str:
    """Unicode without U+0000, which PostgreSQL refuses in a text: each becomes U+FFFD."""
    if not isinstance(value, str):
        raise TypeError("not a text")
    if "\0" in value:
        value = value.replace("\0", "\ufffd")
    if not value.isascii():  # it may hold half of a surrogate pair
        try:
            value.encode()
        except UnicodeEncodeError:
            return str(value.encode("utf-8", "replace"), "utf-8")
    return str(value)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return text(key)
    if isinstance(key, bool) or not isinstance(key, int):
        raise TypeError(f"a key must be a text, not {key!r}")
    return str(int(key))

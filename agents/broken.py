"""What of a reply is not JSON: where its outermost object breaks, and its end where nothing else is missing."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from rlgpt.agents.relaxed import COMMENT, OBJECT, as_json, loaded, tidied

_TOKEN = re.compile(rf'"(?>[^"\\]+|\\.)*+"|\\.|{COMMENT}|[{{}}\[\]"]', re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}
_DECODER = json.JSONDecoder(strict=False)


class Broken(NamedTuple):
    start: int
    """Where the object begins in the text."""
    fault: str
    missing: str
    """The brackets and braces after the end of the text that would close it; empty where it is closed, or where the
    text ends inside of a string."""


def broken_object(text: str, start: int = 0) -> Broken | None:
    """The outermost object after `start` that cannot be read, however freely; None if another can, or if there is none.
    One that is never closed contains whatever follows it."""
    first, is_readable = None, False
    while found := OBJECT.search(text, start):
        at = found.start()
        try:
            start, is_readable = _DECODER.raw_decode(text, at)[1], True
            continue
        except RecursionError:
            return Broken(at, "malformed JSON: it is nested too deeply", "")
        except ValueError as error:
            end, missing = _end(text, at)
            if end < 0:
                too_short = getattr(error, "pos", 0) >= len(text.rstrip())
                why = "the reply ends before its JSON does: " if too_short else ""
                return Broken(at, f"malformed JSON: {why}{error}", missing)
            own = text[at:end]
            if any(isinstance(loaded(form), dict) for form in (tidied(own), as_json(own), tidied(as_json(own)))):
                is_readable = True
            first, start = first or Broken(at, f"malformed JSON: {error}", ""), end
    return None if is_readable else first


def closed(text: str, start: int = 0) -> Any:
    """The object after `start` with the brackets and braces that are missing at the text's very end; None where
    anything else is wrong with it."""
    text = text.rstrip().removesuffix("```").rstrip()
    broken = broken_object(text, start)
    if broken is None or not broken.missing or text.endswith((",", ":")):  # then more was to come
        return None
    whole = text[broken.start :] + broken.missing
    return next((tree for form in (whole, tidied(whole)) if isinstance(tree := loaded(form), dict)), None)


def _end(text: str, start: int) -> tuple[int, str]:
    """(end of the object, ""), or (-1, what would close it)."""
    opened: list[str] = []
    for token in _TOKEN.finditer(text, start):
        mark = token[0]
        if mark in _CLOSING:
            opened.append(_CLOSING[mark])
        elif mark == '"':
            return -1, ""
        elif mark in ("}", "]"):
            if mark not in opened:
                continue
            while opened.pop() != mark:
                pass
            if not opened:
                return token.end(), ""
    return -1, "".join(reversed(opened))

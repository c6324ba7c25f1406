"""Writes as JSON what language models write in its place: JSON with comments and trailing commas, Python's or
JavaScript's literals, the quotation marks and blanks of a word processor."""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

COMMENT = r"/\*(?>[^*/]+|\*(?!/)|/(?!\*))*+\*/"
GAP = rf"(?>\s+|(?:#|//)[^\n]{{0,300}}|{COMMENT})*+"
"""Blanks and comments between two tokens."""
_LOOSE = re.compile(
    r'"""(?P<long>.*?)"""|(?P<text>"(?>[^"\\]+|\\.)*+")|\\.|//[^\n]*|'
    rf"{COMMENT}|,(?=(?>\s+|//[^\n]*\n|{COMMENT})*+[}}\]])",
    re.DOTALL,
)
"""In time linear in the text: nothing is given back, an escape outside of a text is one piece, and a comment ends where
another begins, so that what is never closed is looked for once."""
_BAD_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|(?P<stray>\\)', re.DOTALL)
QUOTE = "[\"'`“”„‘’]"
OBJECT = re.compile(rf"\{{{GAP}{QUOTE}?[\w\- ]{{1,80}}{QUOTE}?\s*+:")
"""A brace and what looks like a field, so that a brace in prose is not taken for an object that is broken."""
_FOREIGN = re.compile(
    r"""(?P<marks>'''|\"\"\")(?P<long>.*?)(?P=marks)|(?P<text>"(?>[^"\\]+|\\.)*+"|'(?>[^'\\]+|\\.)*+')|\\.|"""
    r"""[“”„](?P<double>(?>[^“”„\\]+|\\.)*+)[“”„]|‘(?P<single>(?>[^‘’\\]+|\\.)*+)’|"""
    rf"""(?P<comment>(?:#|//)[^\n]*|{COMMENT})|(?P<key>(?<![\w-])[^\W\d][\w-]*+(?=\s*+:))|"""
    r"""(?P<word>\b(?:True|False|None)\b)|(?P<blank>[^\S \t\r\n]|\u200b|\ufeff)""",
    re.DOTALL,
)
"""Tokens that JSON lacks, and texts, so that nothing inside of a text is taken for one. In linear time as well."""
_ESCAPE_OR_QUOTE = re.compile(r'\\.|"', re.DOTALL)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_MOST = 400_000
"""Characters that are read as literals of another language."""
_DECODER = json.JSONDecoder(strict=False)


def loaded(text: str) -> Any:
    """The JSON value, None where the text is none."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def tidied(text: str) -> str:
    """Without trailing commas and comments; texts in triple quotes, or with escapes that JSON lacks, as JSON."""

    def tidy(match: re.Match[str]) -> str:
        if match["long"] is not None:
            return json.dumps(match["long"])
        if match["text"] is not None:
            return _BAD_ESCAPE.sub(lambda escape: "\\\\" if escape["stray"] else escape[0], match["text"])
        return ""

    return _LOOSE.sub(tidy, text)


def as_json(text: str) -> str:
    """What stands from the first object to the last brace, with literals of other languages as JSON; empty if nothing
    does."""
    first = OBJECT.search(text)
    start, end = first.start() if first else text.find("{"), text.rfind("}") + 1
    return _FOREIGN.sub(_token_as_json, text[start:end]) if 0 < end - start < _MOST and start >= 0 else ""


def _token_as_json(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind == "word":
        return _WORDS[match["word"]]
    if kind == "long":
        return json.dumps(match["long"])
    if kind == "key":
        return json.dumps(match["key"])
    if kind in ("comment", "blank"):
        return " "
    if kind in ("double", "single"):
        own = _ESCAPE_OR_QUOTE.sub(lambda found: '\\"' if found[0] == '"' else found[0], match[kind])
        return f'"{own}"'
    token = match["text"]
    if token is None or (token[0] == '"' and isinstance(loaded(token), str)):
        return match[0]
    if "\\" not in token:
        return json.dumps(token[1:-1])
    try:  # one text at a time: nothing is nested
        with warnings.catch_warnings(action="ignore"):
            return json.dumps(ast.literal_eval(token.replace("\r", "\\r").replace("\n", "\\n")))
    except (ValueError, SyntaxError, MemoryError):
        return token

"""Writes as JSON what language models write in its place: JSON with comments and trailing commas, Python's literals."""

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
_PYTHON = re.compile(
    r"""'''(?P<long>.*?)'''|(?P<text>"(?>[^"\\]+|\\.)*+"|'(?>[^'\\]+|\\.)*+')|\\.|(?P<word>\b(?:True|False|None)\b)""",
    re.DOTALL,
)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_MOST = 400_000
"""Characters that are read as Python's literals."""
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
    """What Python's literals from the first brace to the last are in JSON; empty if there are none."""
    start, end = text.find("{"), text.rfind("}") + 1
    if not 0 < end - start < _MOST or start < 0:
        return ""

    def token_as_json(match: re.Match[str]) -> str:
        if match["word"]:
            return _WORDS[match["word"]]
        if match["long"] is not None:
            return json.dumps(match["long"])
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

    return _PYTHON.sub(token_as_json, text[start:end])

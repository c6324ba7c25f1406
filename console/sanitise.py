"""The sanitiser for all text that a model, a world, generated code or another person wrote.

Its results are safe for a terminal: no control characters, no direction overrides, no invisible
characters, no unbounded lines or stacks of combining marks. The raw text stays in the store.
"""

from __future__ import annotations

import re
import unicodedata

LINE_LIMIT = 2_000
"""Characters of one line that a pane ever shows."""
COMBINING_LIMIT = 2
"""Combining marks kept per base character."""

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\ud800-\udfff\U0001f3fb-\U0001f3ff\U000e0000-\U000e0fff]"
)
_HARMLESS = re.compile("[ -~\u00b7\u2013\u2014\u2026\u2190-\u2193\u2500-\u25ff\u2800-\u28ff]*")
"""What charts, borders and plain words are made of: nothing in it has to be looked at one by one."""
_VISIBLE = {c: chr(0x2400 + c) for c in range(0x20)} | {0x7F: "␡", 0x09: "    "}
_DROPPED = "\xad\u061c\u180b\u180c\u180d\u180e\u180f\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"


def clean(text: str, limit: int = LINE_LIMIT) -> str:
    """One line: controls become their visible pictures, a line feed `␊`; cut with the number of characters left out."""
    cut = len(text) - limit
    if cut > 0:
        text = text[:limit]
    if not _HARMLESS.fullmatch(text):
        text = _UNSAFE.sub(_replacement, text)
        if not text.isascii():
            text = _thin_marks(text)
    return f"{text} … {cut:,} more characters" if cut > 0 else text


def clean_lines(text: str, limit: int = LINE_LIMIT, most: int = 20_000) -> list[str]:
    """Text split at line feeds, each line cleaned; past `most` lines one line says how many are left out."""
    lines = text.replace("\r\n", "\n").split("\n")
    shown = [clean(line, limit) for line in lines[:most]]
    if len(lines) > most:
        shown.append(f"… {len(lines) - most:,} more lines")
    return shown


def clean_text(text: str) -> str:
    """`clean_lines` joined again, for the clipboard and exports that keep line feeds."""
    return "\n".join(clean_lines(text, limit=1_000_000, most=1_000_000))


def _replacement(match: re.Match[str]) -> str:
    character = match[0]
    if ord(character) in _VISIBLE:
        return _VISIBLE[ord(character)]
    if character in _DROPPED or "\ufe00" <= character <= "\ufe0f" or ord(character) >= 0x1F3FB:
        return ""
    return "\ufffd"


def _thin_marks(text: str) -> str:
    kept: list[str] = []
    run = 0
    for character in text:
        if unicodedata.category(character) in ("Mn", "Me", "Mc"):
            run += 1
            if run > COMBINING_LIMIT:
                continue
            if not kept:
                kept.append("◌")
        else:
            run = 0
        kept.append(character)
    return "".join(kept)

"""The words of the console with their meanings, read from the glossary of the documentation."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

_WORD = re.compile(r"[\w-]+")
FILE = Path(__file__).parents[1] / "glossary.md"
"""The same text as docs/glossary.md, installed with the console."""


class Term(NamedTuple):
    section: str
    word: str
    meaning: str


@cache
def terms() -> tuple[Term, ...]:
    """In the order of the page: each row of a table under its heading."""
    collected: list[Term] = []
    section = ""
    for text in FILE.read_text(encoding="utf-8").splitlines():
        if text.startswith("## "):
            section = text.removeprefix("## ")
        cells = [cell.strip().replace("`", "") for cell in text.strip("|").split(" | ")]
        if section and text.startswith("| ") and len(cells) == 2 and cells != ["word", "meaning"]:
            collected.append(Term(section, *cells))
    return tuple(collected)


def terms_in(text: str) -> list[Term]:
    """Those whose word, or its plural, stands in `text`, in the order of the page."""
    words = set(_WORD.findall(text.casefold()))
    return [term for term in terms() if all({part, f"{part}s"} & words for part in _WORD.findall(term.word.casefold()))]

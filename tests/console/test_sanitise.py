"""Nothing that passes the sanitiser can be interpreted by a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hostile import CORPUS
from hypothesis import given
from hypothesis import strategies as st

from rlgpt.console.sanitise import LINE_LIMIT, clean, clean_lines, clean_text


def harmless(text: str) -> bool:
    return not any(
        ord(c) < 0x20 or 0x7F <= ord(c) <= 0x9F or 0xD800 <= ord(c) <= 0xDFFF or unicodedata.category(c) in ("Cc", "Cs")
        or c in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u200b\u200d\ufeff"
        for c in text
    )  # fmt: skip


@given(st.text(alphabet=st.characters(), max_size=300))
def test_cleaned_text_holds_no_control_surrogate_or_invisible_character(text: str) -> None:
    assert harmless(clean(text))


@given(st.text(max_size=300))
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=300))
def test_plain_text_passes_unchanged(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize("text", CORPUS)
def test_hostile_texts_become_harmless_and_bounded(text: str) -> None:
    for line in clean_lines(text):
        assert harmless(line)
        assert len(line) < LINE_LIMIT * 5
    assert "\x1b" not in clean_text(text)


def test_a_cut_line_says_how_much_is_left_out() -> None:
    assert clean("x" * 100_000).endswith(" … 98,000 more characters")


def test_too_many_lines_are_counted() -> None:
    assert clean_lines("a\n" * 30_000)[-1] == "… 10,001 more lines"


def test_an_escape_is_shown_not_obeyed() -> None:
    assert clean("\x1b]0;title\x07") == "␛]0;title␇"


def test_stacks_of_combining_marks_are_thinned() -> None:
    assert clean("a" + "\u0301" * 50) == "a" + "\u0301" * 2
    assert clean("\u0301a").startswith("◌")

"""Plain data: what is seen of it in its JSON is what a look at each value finds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgpt.store.plain import is_plain, plain, reads_plain

WRONG = (
    '{"a": 9e999}', '[-9E+999]', "[NaN]", "[-Infinity]", '["\\u0000"]', '{"\\ud800": 1}', '["\\udc00"]',
    f"[{'1' * 310}.0]", f"[1{'0' * 250}e99]", f"[1{'0' * 300}e9]", f"[1{'0' * 200}E+199]", f"[{'7' * 1300}]",
)  # fmt: skip
RIGHT = ('{"a": 1e308, "b": [null, true, -0.5e-7]}', '["\\u00e4", "ä", "\\ud83d\\ude00"]', f"[{'7' * 1200}]", "[1e22]")


@pytest.mark.parametrize("body", WRONG, ids=lambda body: body[:20])
def test_what_no_row_may_hold_is_seen_in_its_json(body: str) -> None:
    assert not reads_plain(body, json.loads(body))


@pytest.mark.parametrize("body", RIGHT, ids=lambda body: body[:20])
def test_what_a_row_may_hold_is_taken(body: str) -> None:
    assert reads_plain(body, json.loads(body))


NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,320})(\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
TEXTS = st.text(st.characters(codec=None, categories=None), max_size=4)
TREES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers(), lambda t: st.lists(t) | st.dictionaries(TEXTS, t)
)


@given(NUMBERS | TREES.map(json.dumps))
def test_the_quick_look_passes_nothing_that_a_thorough_one_refuses(body: str) -> None:
    value = json.loads(body)
    assert reads_plain(body, value) == is_plain(value) == _comes_back(value)


def _comes_back(value: object) -> bool:
    try:
        return bool(plain(value) == value)
    except OverflowError:
        return False

"""Panes always tile the screen, whatever was chosen; the choice is kept, and a damaged one is no reason to fail."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from rlgpt.console.preferences import FILE, Preferences
from rlgpt.console.view import layout
from rlgpt.console.view import sessions as listed
from rlgpt.console.view.layout import MEDIUM, NARROW, PANES, WIDE, Choices
from rlgpt.store.catalog import Summary

VARIANTS = (NARROW, MEDIUM, WIDE)
sizes = st.tuples(st.integers(1, 300), st.integers(1, 120))
share = st.floats(0.01, 10)
shares = st.lists(share, max_size=4).map(tuple)
slots = st.builds(
    lambda v, c, s: f"{v}:{c}:{s}", st.sampled_from([v.name for v in VARIANTS]), st.integers(0, 3), st.integers(0, 2)
)
names = st.sampled_from([v.name for v in VARIANTS])
choices = st.builds(
    Choices,
    st.dictionaries(names, shares),
    st.dictionaries(names, st.lists(shares, max_size=4).map(tuple)),
    st.dictionaries(slots, st.sampled_from([*PANES, "nothing"])),
    st.sampled_from(["", *PANES]),
)


@given(st.sampled_from(VARIANTS), choices, sizes)
def test_the_visible_panes_cover_every_cell_once(
    variant: layout.Variant, chosen: Choices, size: tuple[int, int]
) -> None:
    width, height = size
    regions = layout.arrange(variant, chosen, width, height)
    assert set(regions) == set(layout.shown_panes(variant, chosen))
    assert sum(w * h for _, _, w, h in regions.values()) == width * height
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in regions.values())
    boxes = [r for r in regions.values() if r[2] and r[3]]
    for i, (x, y, w, h) in enumerate(boxes):
        for x2, y2, w2, h2 in boxes[i + 1 :]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


@given(st.sampled_from(VARIANTS), choices, st.sampled_from(PANES))
def test_every_pane_can_be_brought_to_the_front(variant: layout.Variant, chosen: Choices, pane: str) -> None:
    shown = {**chosen.shown, layout.slot_of(variant, pane): pane}
    assert pane in layout.shown_panes(variant, Choices(chosen.widths, chosen.heights, shown))


@given(st.lists(share, min_size=1, max_size=4), st.integers(-1, 4), st.floats(-2, 2))
def test_moving_a_border_keeps_the_whole(before: list[float], index: int, by: float) -> None:
    total = sum(before)
    before = [value / total for value in before]
    after = layout.moved(before, index, by)
    assert len(after) == len(before) and abs(sum(after) - 1) < 1e-9
    changed = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    assert all(i in (index, index + 1) for i in changed)


@given(choices, st.sampled_from(["", "nord", "rlgpt-dark"]), st.booleans())
def test_what_was_chosen_is_there_the_next_time(chosen: Choices, theme: str, reverse: bool) -> None:
    with TemporaryDirectory() as place:
        wanted = Preferences(theme, chosen, "cost", reverse)
        wanted.save(Path(place))
        assert Preferences.load(Path(place)) == replace(wanted, choices=replace(chosen, zoomed=""))


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
damaged = st.fixed_dictionaries(
    {},
    optional={
        "theme": json_values, "sort": json_values, "reverse": json_values,
        "choices": json_values | st.fixed_dictionaries(
            {"widths": json_values, "heights": json_values, "shown": json_values, "zoomed": json_values}
        ),
    },
)  # fmt: skip


@given(damaged | json_values, sizes)
def test_a_damaged_file_of_preferences_never_breaks_a_screen(found: object, size: tuple[int, int]) -> None:
    with TemporaryDirectory() as place:
        (Path(place) / FILE).write_text(json.dumps(found))
        loaded = Preferences.load(Path(place))
        assert listed.entries([Summary("one")], 80, 0.0, sort=loaded.sort, reverse=loaded.reverse)
        for variant in VARIANTS:
            regions = layout.arrange(variant, loaded.choices, *size)
            assert sum(w * h for _, _, w, h in regions.values()) == size[0] * size[1]

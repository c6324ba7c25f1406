"""Curves: what is drawn is what was measured, at any length."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from driving import console, screen_text
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from rlgpt.console.charts.axes import padded, tick_labels, ticks
from rlgpt.console.charts.braille import EMPTY, Canvas, columns_of
from rlgpt.console.charts.plot import GLYPHS, Curve, Marks, Plot, draw, value_at
from rlgpt.console.charts.smooth import smoothed
from rlgpt.console.view.numbers import decimal
from rlgpt.console.view.text import plain, width_of


def dots(canvas: Canvas) -> set[tuple[int, int]]:
    """(column, row from the bottom) of every dot."""
    bits = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
    return {
        (2 * x + dx, 4 * canvas.height - 1 - (4 * y + dy))
        for y in range(canvas.height)
        for x in range(canvas.width)
        for dy in range(4)
        for dx in range(2)
        if canvas.codes[y, x] & bits[dy][dx]
    }


def test_a_dot_lands_where_its_point_is() -> None:
    canvas = Canvas(3, 2)
    columns = np.full((2, 6), np.nan)
    columns[:, 4] = 5
    canvas.curve(columns, 0)
    assert dots(canvas) == {(4, 5)}


def test_a_jump_is_joined_by_a_line_without_gaps() -> None:
    canvas = Canvas(1, 2)
    canvas.curve(np.array([[0.0, 7.0], [0.0, 7.0]]), 0)
    assert {row for _, row in dots(canvas)} == set(range(8))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400))
def test_roll_up_loses_no_peak(values: list[float]) -> None:
    y = np.array(values)
    x = np.arange(len(y), dtype=float)
    low, high = min(values) - 1.0, max(values) + 1.0
    columns = columns_of(x, y, (0.0, max(len(y) - 1.0, 1.0), low, high), 10, 5)
    scale = 19 / (high - low)
    assert np.nanmin(columns[0]) == pytest.approx((min(values) - low) * scale)
    assert np.nanmax(columns[1]) == pytest.approx((max(values) - low) * scale)


def test_a_canvas_names_the_layer_of_each_run_of_cells() -> None:
    canvas = Canvas(4, 1)
    canvas.whisker(0, 0, 3, 1)
    canvas.whisker(7, 0, 3, 2)
    (row,) = canvas.rows()
    assert [layer for _, layer in row] == [1, -1, 2]
    assert row[0][0] == chr(EMPTY + 0x47)


@pytest.mark.parametrize("weight", [0.6, 0.9, 0.97])
def test_smoothing_equals_the_recurrence(weight: float) -> None:
    y = np.random.default_rng(0).normal(size=3_000)
    y[::7] = np.nan
    average, expected, seen = 0.0, [], 0
    for value in y:
        if np.isnan(value):
            expected.append(np.nan)
            continue
        seen += 1
        average = weight * average + (1 - weight) * value
        expected.append(average / (1 - weight**seen))
    np.testing.assert_allclose(smoothed(y, weight), expected, rtol=1e-9, atol=1e-12)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.integers(1, 20))
def test_ticks_are_few_and_inside(low: float, span: float, most: int) -> None:
    found = ticks(low, low + span, most)
    slack = 1e-6 * max(abs(low), abs(low + span), span)
    assert 1 <= len(found) <= most + 1
    assert all(low - slack <= t <= low + span + slack for t in found) or found == [low]


def test_padding_gives_a_single_value_a_range_around_it() -> None:
    low, high = padded(3.0, 3.0)
    assert low < 3.0 < high


@pytest.mark.parametrize(("width", "height"), [(16, 4), (30, 7), (70, 20), (200, 50), (5, 3), (20, 1)])
def test_a_chart_fills_exactly_its_place(width: int, height: int) -> None:
    x = np.arange(100.0)
    plot = Plot(
        "loss",
        [Curve("a", x, x, "curve1"), Curve("b", x[:3], x[:3], "curve2", points=True, low=x[:3] - 1, high=x[:3] + 1)],
        marks=[Marks(np.array([50.0]), "◆", "ok")],
    )
    lines = draw(plot, width, height)
    assert len(lines) <= height
    assert all(sum(cell_len(s.text) for s in line) <= width for line in lines)


def test_a_chart_without_points_says_so() -> None:
    assert "no points yet" in "".join(plain(line) for line in draw(Plot("loss"), 40, 10))


def test_the_crosshair_reads_the_value_at_its_place() -> None:
    curve = Curve("", np.array([0.0, 10.0, 20.0]), np.array([1.0, np.nan, 3.0]), "curve1")
    assert value_at(curve, None) == 3.0
    assert value_at(curve, 15.0) == 1.0
    assert value_at(curve, -1.0) is None


def test_a_logarithmic_chart_leaves_out_what_has_no_logarithm() -> None:
    curve = Curve("", np.arange(4.0), np.array([-1.0, 0.0, 10.0, 1000.0]), "curve1")
    text = "".join(plain(line) for line in draw(Plot("kl", [curve], log=True), 60, 12))
    assert "kl log" in text and "1000┤" in text


def test_labels_of_an_axis_say_their_value_in_the_room_there_is() -> None:
    assert tick_labels([0.005, 0.01], 5) == ["0.005", "0.01"]
    assert tick_labels([-0.02, -0.015, -0.01], 5) == ["-0.02", "-.015", "-0.01"]
    assert tick_labels([0.0, 50_000.0, 100_000.0], 5) == ["0", "50k", "100k"]
    assert tick_labels([9e-4, 9.5e-4, 1e-3], 5) == [".0009", "", "0.001"]


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 8))
@example(-131.0, 1.0, 2)  # -130.5 is not -13.5
@example(-10050.0, 1.0, 2)  # nor -10.1k -10.1
def test_no_label_of_an_axis_lies_or_is_cut(low: float, span: float, most: int) -> None:
    values = ticks(low, low + span, most)
    for value, label in zip(values, tick_labels(values, 5), strict=True):
        assert len(label) <= 5
        if label and label[-1] not in "kMG":
            assert abs(float(label) - value) <= 0.51 * span / most


def many_curves(number: int) -> Plot:
    x = np.linspace(0.0, 1e5, 50)
    return Plot(
        "usage",
        [Curve(f"option_{n}", x, np.full(50, n / number), f"curve{n + 1}") for n in range(number)],
        y_range=(0.0, 1.0),
        crosshair=5e4,
    )


def test_a_chart_alone_names_every_curve_with_its_value_at_the_crosshair() -> None:
    lines = draw(many_curves(8), 70, 20)
    text = "\n".join(plain(line) for line in lines)
    for n in range(8):
        assert f"option_{n} {decimal(n / 8)}" in text
    assert len(lines) == 20 and all(width_of(line) == 70 for line in lines)


def test_curves_without_colours_are_told_apart_by_glyphs_that_the_legend_names() -> None:
    lines = [plain(line) for line in draw(many_curves(8), 90, 24, marked=True)]
    legend, canvas = "\n".join(lines[:4]), "\n".join(lines[4:])
    for n, glyph in enumerate(GLYPHS):
        assert f"{glyph}option_{n}" in legend and glyph in canvas
    assert not set(GLYPHS) & set("".join(plain(line) for line in draw(many_curves(8), 90, 24)))


@given(st.integers(16, 120), st.integers(4, 40), st.integers(0, 8))
def test_glyphs_and_long_legends_leave_a_chart_in_its_place(width: int, height: int, number: int) -> None:
    for marked in (False, True):
        lines = draw(many_curves(number) if number else Plot("none"), width, height, marked)
        assert len(lines) == height and all(width_of(line) <= width for line in lines)


async def test_the_curves_pane_marks_its_curves_under_no_color(
    home: Path, store: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    store("261121-010000-aa")
    monkeypatch.setenv("NO_COLOR", "1")
    async with console(home, "261121-010000-aa", (120, 40)) as (app, _):
        assert "●train" in screen_text(app)

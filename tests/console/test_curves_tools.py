"""The curves pane: picked series, an overlay, zoom, and the table of values at the crosshair."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from driving import SIZES, console, screen_text, until
from hypothesis import given
from hypothesis import strategies as st
from moments import moment
from sample_sessions import whole

from rlgpt.console.charts.plot import value_at, values
from rlgpt.console.panes.curves import CurvesPane
from rlgpt.console.screens.picker import OverlayPicker, SeriesPicker
from rlgpt.console.view import overlay
from rlgpt.console.view.curves import CHARTS, Charts, Options, Overlay, shifted, zoomed
from rlgpt.console.view.numbers import decimal
from rlgpt.console.view.text import plain, width_of

USAGE = next(chart for chart in CHARTS if chart.key == "usage")
RETURN = next(chart for chart in CHARTS if chart.key == "return")


def test_picked_series_are_drawn_and_the_others_counted() -> None:
    m = moment(whole())
    every = Charts(m, Options()).series(USAGE)
    assert len(every) > 2
    one = every[1].name
    plot = Charts(m, Options(picked={"usage": frozenset({one})})).plot(USAGE)
    assert [c.name for c in plot.curves] == [one] and plot.note == f"1 of {len(every)}"
    assert len(Charts(m, Options(picked={"ends": frozenset()})).plot(USAGE).curves) == min(len(every), 8)


def test_every_value_of_the_table_is_that_of_its_curve() -> None:
    m = moment(whole())
    charts = Charts(m, Options(smoothing=0.0, crosshair=0.4))
    plot = charts.plot(USAGE)
    rows = values(plot, 60, 40)
    assert len(rows) == len(plot.curves) + 1 and all(width_of(row) <= 60 for row in rows)
    for curve, row in zip(plot.curves, rows[1:], strict=True):
        told = plain(row)
        at = value_at(curve, plot.crosshair)
        assert curve.name in told and at is not None and decimal(at) in told.split()


@given(st.floats(0, 1), st.floats(1, 1e6), st.lists(st.sampled_from([0.5, 2.0]), max_size=12))
def test_a_zoom_stays_inside_and_keeps_what_the_crosshair_stands_on(
    cross: float, whole_: float, steps: list[float]
) -> None:
    options = Options(crosshair=cross)
    for by in steps:
        span = options.zoom or (0.0, whole_)
        assert options.crosshair is not None
        here = span[0] + options.crosshair * (span[1] - span[0])
        options = zoomed(options, span, whole_, by)
        new = options.zoom or (0.0, whole_)
        assert 0.0 <= new[0] < new[1] <= whole_ * (1 + 1e-9) + 1.0
        assert options.crosshair is not None
        if new[1] - new[0] > 2.0:
            there = new[0] + options.crosshair * (new[1] - new[0])
            assert abs(there - here) <= 1e-6 * whole_ + 1e-6
    assert shifted((0.0, whole_ / 2), -1.0, whole_) == (0.0, whole_ / 2)


def test_another_session_and_another_iteration_can_be_drawn_over_a_chart() -> None:
    m, other = moment(whole()), moment(whole("s-2", llm="openai"))
    drawn = Charts(m, Options(overlay=Overlay("the other", other))).plot(RETURN)
    assert [c.name for c in drawn.curves] == ["", "the other"]
    assert drawn.curves[0].style != drawn.curves[1].style
    own = [i for i in m.history.iterations if i.runs]
    assert len(own) >= 2
    first, last = own[0], own[-1]
    offered = overlay.of_iteration(m, f"iteration:{first.sub_task}:{first.number}")
    assert offered is not None
    charts = Charts(m, Options(smoothing=0.0, overlay=offered))
    base, over = charts.plot(RETURN).curves
    start = min(charts.axis.run_starts[r] for r in last.runs)
    begin = min(charts.axis.run_starts[r] for r in first.runs)
    inside = np.isin(m.metrics.column("run")[charts.axis.rows], first.runs)
    assert np.allclose(over.x, base.x[inside] + start - begin) and np.allclose(over.y, base.y[inside], equal_nan=True)


@pytest.mark.parametrize("size", SIZES)
async def test_the_keys_of_the_curves_pane_pick_zoom_and_overlay(two_sessions: Path, size: tuple[int, int]) -> None:
    async with console(two_sessions, "261121-010000-aa", size) as (app, pilot):
        await pilot.press("3", "right", "right", "enter", "c")
        await until(pilot, lambda: isinstance(app.screen, SeriesPicker) and "■" in screen_text(app))
        await pilot.press("j", "enter")  # the second alone
        await until(pilot, lambda: not isinstance(app.screen, SeriesPicker))
        pane = app.screen.query_one(CurvesPane)
        await until(pilot, lambda: len(pane.options.picked.get("usage", ())) == 1)
        await pilot.press("x", "i", "i")
        await until(pilot, lambda: pane.options.zoom is not None)
        assert "lowest" in screen_text(app) and "highest" in screen_text(app)
        await pilot.press("u", "u", "u")
        await until(pilot, lambda: pane.options.zoom is None)
        await pilot.press("m")
        await until(pilot, lambda: isinstance(app.screen, OverlayPicker) and "make_stone" in screen_text(app))
        await pilot.press("G", "enter")
        await until(pilot, lambda: pane.options.overlay is not None and pane.options.overlay.iteration is None)


async def test_without_colours_curves_are_told_apart_by_marks(
    two_sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with console(two_sessions, "261121-010000-aa", (120, 40)) as (app, pilot):
        await pilot.press("3", "right", "right", "enter", "x")
        await until(pilot, lambda: "▲" in screen_text(app) and "●" in screen_text(app))
        assert "lowest" in screen_text(app)


def test_a_replayed_moment_has_no_series_that_came_later() -> None:
    s = whole()
    m = moment(s)
    then = moment(s, next(r.seq for r in m.history.runs.values()))
    assert not Charts(replace(then, metrics=m.metrics), Options()).series(USAGE)

"""The curves of a comparison: the arms that they stand for, their axis, and what a point means."""

from __future__ import annotations

import numpy as np
import pytest
from moments import moment
from sample_sessions import CHOP_2
from story import Story

from rlgpt.console import statistics
from rlgpt.console.view import compare
from rlgpt.console.view.compare_curves import SUCCESS, WINDOW, ArmCurve, Chart, arm_curves
from rlgpt.console.view.moment import Moment


def trained(name: str, level: float, task: str = "make_stone_pickaxe", updates: int = 20) -> Moment:
    story = Story(name, task=task)
    story.open()
    story.add("iteration", 0.0, sub_task=0, number=0)
    story.plan(0, 1)
    story.attempt(0, 1, "collect_wood", CHOP_2, 5)
    story.configure(0, 1)
    story.train(0, 1, 1, updates=updates, level=level, gain=0.0)
    return moment(story)


def drawn(moments: list[Moment], arms: list[str], chart: Chart = SUCCESS) -> list[ArmCurve]:
    return arm_curves(chart, [(m.history, m.metrics) for m in moments], arms)


def test_seeds_of_an_arm_make_one_curve_with_an_interval() -> None:
    (curve,) = drawn([trained("a", 0.1), trained("b", 0.4), trained("c", 0.9)], ["x", "x", "x"])
    assert (curve.name, curve.sessions) == ("x, IQM of 3", (0, 1, 2))
    assert curve.low is not None and curve.high is not None
    assert (curve.low <= curve.y).all() and (curve.y <= curve.high).all()
    assert curve.low[-1] < curve.high[-1]


def test_an_arm_of_one_session_is_called_by_the_session_and_has_no_interval() -> None:
    curves = drawn([trained("a", 0.1), trained("b", 0.4)], ["x", "y"])
    assert [curve.name for curve in curves] == ["make_stone_pickaxe-1"] * 2
    assert all(curve.low is None for curve in curves)


def test_an_arm_of_one_session_that_has_a_label_is_called_by_label_and_seed() -> None:
    labelled = trained("a", 0.1)
    labelled.history.session["settings"]["method"] = {"label": "rl dense"}
    (curve,) = drawn([labelled], ["rl dense"])
    assert curve.name == "rl dense, seed 1"
    (by_settings,) = drawn([labelled], ["designed"])  # arms by another setting (--by)
    assert by_settings.name == "make_stone_pickaxe-1"


def test_one_arm_in_two_tasks_makes_two_curves() -> None:
    curves = drawn([trained("a", 0.1), trained("b", 0.4, "collect_wood")], ["x", "x"])
    assert [curve.task for curve in curves] == ["make_stone_pickaxe", "collect_wood"]


def test_seeds_without_a_common_stretch_are_drawn_one_by_one() -> None:
    short, long = trained("a", 0.1, updates=3), trained("b", 0.1, updates=9)
    long.metrics.column("env_steps")[:] += 1_000_000
    assert len(drawn([short, long], ["x", "x"])) == 2


def test_a_point_of_success_is_the_share_of_the_last_50_episodes_and_stands_at_the_sessions_env_steps() -> None:
    m = trained("a", 0.5)
    (curve,) = drawn([m], ["x"])
    won, of = m.metrics.column("successes"), m.metrics.column("episodes")
    last = int(np.flatnonzero(np.cumsum(of[::-1]) >= WINDOW)[0]) + 1
    assert curve.y[-1] == pytest.approx(won[-last:].sum() / of[-last:].sum())
    in_trials = sum(a.trial.env_steps for a in m.history.attempts if a.trial)
    assert in_trials > 0 and curve.x[-1] == in_trials + m.metrics.column("env_steps")[-1]


def test_the_screen_draws_each_session_and_each_arm_of_several() -> None:
    moments = [trained("a", 0.1), trained("b", 0.4)]
    plot = compare.plot(SUCCESS, moments)
    (arm,) = drawn(moments, ["all", "all"])
    assert [curve.name for curve in plot.curves] == ["make_stone_pickaxe-1", "make_stone_pickaxe-1", arm.name]
    assert np.array_equal(plot.curves[-1].y, arm.y) and plot.curves[-1].low is not None


def test_the_interval_of_a_curve_is_that_of_its_points() -> None:
    values = np.random.default_rng(1).random((6, 3))
    band = statistics.bootstrap_curve(values, resamples=20_000)
    for point in range(3):
        alone = statistics.bootstrap(values[:, [point]], statistics.iqm, resamples=20_000)
        assert band.value[point] == pytest.approx(alone.value)
        assert (band.low[point], band.high[point]) == pytest.approx((alone.low, alone.high), abs=0.02)

"""The curves of a comparison, arm by arm: what the Compare screen and `rlgpt compare --svg` and `--png` draw. Pure.

An arm of one session is that session's curve. An arm of several is the IQM over its sessions with a 95% bootstrap
interval over the env steps that all of them have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlgpt.console import statistics
from rlgpt.console.charts.smooth import smoothed
from rlgpt.console.view.axis import axis_of
from rlgpt.console.view.metrics import MetricTable
from rlgpt.store.history import History

Floats = NDArray[np.float64]
GRID = 100
"""Points of a curve."""
WINDOW = 50
"""Finished episodes behind a point of the success rate, at least."""
WEIGHT = 0.9
"""Of the past, in the exponential average of the other charts."""


@dataclass(frozen=True)
class Chart:
    title: str
    column: str = ""
    """Of metric rows; empty for success."""


SUCCESS = Chart("success rate in training (or score so far)")
CHARTS = (
    SUCCESS,
    Chart("episode return", "return_mean"),
    Chart("episode length (env steps)", "length_mean"),
    Chart("entropy (normalised)", "entropy"),
    Chart("approximate KL", "kl"),
    Chart("explained variance", "explained_variance"),
)


@dataclass(frozen=True)
class ArmCurve:
    """One arm in one task. Success in different tasks is not comparable, so no curve mixes them."""

    task: str
    name: str
    """Of an arm of one session its label and seed, if it has a label, as those of an experiment have; else that
    session's name: the settings that it differs in may be many."""
    sessions: tuple[int, ...]
    """Their places in what was compared."""
    x: Floats
    """Env steps of the session."""
    y: Floats
    low: Floats | None = None
    high: Floats | None = None


def arm_curves(
    chart: Chart, sessions: Sequence[tuple[History, MetricTable]], arms: Sequence[str]
) -> list[ArmCurve]:  # fmt: skip
    """`arms`: the arm of each session. Sessions without PPO have no curve."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, ((history, _), arm) in enumerate(zip(sessions, arms, strict=True)):
        groups.setdefault((str(history.session["task"]), arm), []).append(place)
    curves = []
    for (task, arm), places in groups.items():
        series = {place: one for place in places if len((one := _series(chart, *sessions[place]))[0]) > 1}
        start = max((x[0] for x, _ in series.values()), default=0.0)
        end = min((x[-1] for x, _ in series.values()), default=0.0)
        if len(series) > 1 and end > start:
            x = np.linspace(start, end, GRID)
            band = statistics.bootstrap_curve(np.array([np.interp(x, *one) for one in series.values()]))
            name = f"{arm}, IQM of {len(series)}"
            curves.append(ArmCurve(task, name, tuple(series), x, band.value, band.low, band.high))
        else:  # one session, or several that share no stretch
            for place, (seen, values) in series.items():
                x = np.linspace(seen[0], seen[-1], GRID)
                name = _name(sessions[place][0], arm)
                curves.append(ArmCurve(task, name, (place,), x, np.interp(x, seen, values)))
    return curves


def session_curves(chart: Chart, sessions: Sequence[tuple[History, MetricTable]]) -> list[ArmCurve]:
    """Each session as an arm of its own."""
    return arm_curves(chart, sessions, [str(place) for place in range(len(sessions))])


def _name(history: History, arm: str) -> str:
    settings = history.session["settings"]
    labelled = arm and arm == settings.get("method", {}).get("label")
    return f"{arm}, seed {settings['seed']}" if labelled else str(history.session["name"])


def _series(chart: Chart, history: History, metrics: MetricTable) -> tuple[Floats, Floats]:
    """(env steps of the session, values) without superseded updates and those that have no value."""
    axis = axis_of(history, metrics)
    if chart.column:
        y = smoothed(metrics.column(chart.column)[axis.rows], WEIGHT)
    elif history.scored:
        y = metrics.column("score")[axis.rows]
    else:
        y = _success(metrics.column("successes")[axis.rows], metrics.column("episodes")[axis.rows])
    has_value = np.isfinite(y)
    return axis.x[has_value], y[has_value]


def _success(successes: Floats, episodes: Floats) -> Floats:
    """The share of successes among the last WINDOW episodes; NaN before the first episode."""
    won, of = np.cumsum(np.nan_to_num(successes)), np.cumsum(np.nan_to_num(episodes))
    before = np.searchsorted(of, of - WINDOW, side="right") - 1
    won_before, of_before = (np.where(before >= 0, counts[before], 0.0) for counts in (won, of))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(of > of_before, (won - won_before) / (of - of_before), np.nan)

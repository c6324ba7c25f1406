"""Two or more sessions side by side: curves on one axis, plans, success with interval, cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlgpt.console.charts.plot import Curve, Plot
from rlgpt.console.charts.smooth import smoothed
from rlgpt.console.view.axis import axis_of
from rlgpt.console.view.curves import CURVE_STYLES
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.numbers import count, duration, measured, money
from rlgpt.console.view.status import limits_of
from rlgpt.console.view.text import Entry, Line, Span, columns, line, wrap
from rlgpt.console.view.words import model_name, state_of
from rlgpt.store.history import History, PlanState

Floats = NDArray[np.float64]
Z = 1.959964


@dataclass(frozen=True)
class Chart:
    key: str
    title: str
    column: str
    bounded: bool = False


CHARTS = (
    Chart("success", "success rate in training (or score so far)", "", True),
    Chart("return", "episode return", "return_mean"),
    Chart("length", "episode length (env steps)", "length_mean"),
    Chart("entropy", "entropy (normalised)", "entropy"),
    Chart("kl", "approximate KL", "kl"),
    Chart("explained", "explained variance", "explained_variance"),
)


def group_of(h: History) -> tuple[str, str, str, str]:
    """Sessions that differ only in their seed are one group: (task, world, model, executor of the last plan)."""
    session = h.session
    executor = h.plan.executor if h.plan else ""
    return str(session["task"]), str(session["world"]), model_name(session["settings"]), executor


def plot(chart: Chart, moments: Sequence[Moment], weight: float = 0.9) -> Plot:
    """One curve a session; groups of two or more seeds also get their mean with a 95% interval over seeds."""
    series = [_series(chart, m) for m in moments]
    curves = [
        Curve(str(m.history.session["name"]), x, smoothed(y, weight), CURVE_STYLES[i % len(CURVE_STYLES)])
        for i, (m, (x, y)) in enumerate(zip(moments, series, strict=True))
        if len(x)
    ]
    curves += _bands(moments, series, weight)
    end = max((float(c.x[-1]) for c in curves), default=1.0)
    return Plot(
        chart.title,
        curves,
        x_range=(0.0, end),
        y_range=(0.0, 1.0) if chart.bounded else None,
        empty="no PPO update in these sessions",
    )


def _series(chart: Chart, m: Moment) -> tuple[Floats, Floats]:
    axis = axis_of(m.history, m.metrics)
    if chart.column:
        return axis.x, m.metrics.column(chart.column)[axis.rows]
    if m.history.scored:
        return axis.x, m.metrics.column("score")[axis.rows]
    won, of = m.metrics.column("successes")[axis.rows], m.metrics.column("episodes")[axis.rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        return axis.x, np.where(of > 0, won / of, np.nan)


def _bands(moments: Sequence[Moment], series: Sequence[tuple[Floats, Floats]], weight: float) -> list[Curve]:
    groups: dict[tuple[str, ...], list[int]] = {}
    for index, m in enumerate(moments):
        groups.setdefault(group_of(m.history), []).append(index)
    out: list[Curve] = []
    for number, members in enumerate(g for g in groups.values() if len(g) >= 2):
        parts = [series[i] for i in members if len(series[i][0]) >= 2]
        if len(parts) < 2:
            continue
        low, high = max(p[0][0] for p in parts), min(p[0][-1] for p in parts)
        if high <= low:
            continue
        x = np.linspace(low, high, 24)
        values = np.array([np.interp(x, px, np.nan_to_num(smoothed(py, weight))) for px, py in parts])
        mean, half = values.mean(axis=0), Z * values.std(axis=0, ddof=1) / np.sqrt(len(parts))
        style = CURVE_STYLES[(len(moments) + number) % len(CURVE_STYLES)]
        out.append(
            Curve(f"mean of {len(parts)} seeds ±95%", x, mean, style, points=True, low=mean - half, high=mean + half)
        )
    return out


def table(moments: Sequence[Moment], base: int, width: int) -> list[Entry]:
    """Facts in rows, sessions in columns; what differs from the base is marked."""
    label = 16
    wide = max((width - label) // max(len(moments), 1) - 1, 12)
    head = [(line(("", "")), label)]
    for i, m in enumerate(moments):
        name = str(m.history.session["name"])
        head.append(
            (
                line(
                    ("■ ", CURVE_STYLES[i % len(CURVE_STYLES)]), (name, "bold"), (" base" if i == base else "", "dim")
                ),
                wide,
            )
        )
    rows: list[Line] = [columns(head)]
    for title, values in _facts(moments):
        cells: list[tuple[Line, int]] = [(line((title, "dim")), label)]
        for i, value in enumerate(values):
            style = "warn" if i != base and value != values[base] else ""
            cells.append((line((value, style)), wide))
        rows.append(columns(cells))
    entries = [Entry("facts", tuple(rows), selectable=False)]
    return entries + _plans(moments, base, label, wide)


def _facts(moments: Sequence[Moment]) -> list[tuple[str, list[str]]]:
    def each(value: Callable[[Moment], object]) -> list[str]:
        return [str(value(m)) for m in moments]

    return [
        ("state", each(lambda m: state_of(m)[0])),
        ("task", each(lambda m: m.history.session["task"])),
        ("model", each(lambda m: model_name(m.history.session["settings"]))),
        ("seed", each(lambda m: m.history.session["settings"].get("seed"))),
        ("iterations", each(lambda m: len(m.history.iterations))),
        ("dev result", each(lambda m: _success(m.history, "dev"))),
        ("test result", each(lambda m: _success(m.history, "test"))),
        ("code alone, dev", each(lambda m: _success(m.history, "dev", "plan"))),
        ("env steps", each(lambda m: f"{count(m.history.spent.env_steps)} of {count(limits_of(m).get('env_steps'))}")),
        ("active time", each(lambda m: duration(m.history.active))),
        ("calls", each(lambda m: str(m.history.spent.calls))),
        ("tokens", each(lambda m: count(m.history.spent.tokens))),
        (
            "cost",
            each(lambda m: "none (rules)" if m.rules else money(m.history.spent.cost, m.history.spent.unknown_price)),
        ),
        ("overrides", each(lambda m: str(sum(c.state == "applied" for c in m.history.commands.values())))),
        ("executor", each(lambda m: m.history.plan.executor if m.history.plan else "–")),
    ]


def _success(h: History, split: str, variant: str = "full") -> str:
    best = h.incumbent or h.iteration
    return measured(h.pooled(best, split, variant)) if best else "–"


def _plans(moments: Sequence[Moment], base: int, label: int, wide: int) -> list[Entry]:
    """The plans in force, one sub-action a row, joined by name."""
    plans = [m.history.plan for m in moments]
    names = list(dict.fromkeys(item.name for plan in plans if plan for item in plan.items))
    if not names:
        return [Entry("plans", (line(("No plan yet in any of them.", "dim")),), selectable=False)]
    rows: list[Line] = [line(("Active plans", "head"))]
    for name in names:
        cells: list[tuple[Line, int]] = [(line((name, "")), label)]
        cells += [(_cell(plan, plans[base], name), wide) for plan in plans]
        rows.append(columns(cells))
    return [Entry("plans", tuple(rows), selectable=False)]


def _cell(plan: PlanState | None, base: PlanState | None, name: str) -> Line:
    item = plan.item(name) if plan else None
    if plan is None or item is None:
        return line(("–", "dim"))
    other = base.item(name) if base else None
    differs = other is None or other.mode != item.mode or other.goal != item.goal
    badge = Span(item.mode, "curve1" if item.mode == "code" else "rl")
    return (badge, Span(" ⚑" if item.pinned else ""), Span(f" {item.goal}", "warn" if differs else "dim"))


def unreadable(sentences: Sequence[str], width: int) -> list[Entry]:
    return [Entry(f"fault:{i}", tuple(wrap(text, width, "bad")), selectable=False) for i, text in enumerate(sentences)]

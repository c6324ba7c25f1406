"""The charts of a session: which there are, and each as a plot at a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rlgpt.console.charts.plot import Curve, Marks, Plot
from rlgpt.console.charts.smooth import smoothed
from rlgpt.console.view.axis import Axis, axis_of
from rlgpt.console.view.metrics import SCALARS, MetricTable
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.words import CALL_ENDS
from rlgpt.store.history import EvaluationState, IterationState
from rlgpt.store.measured import pool

Floats = NDArray[np.float64]
SCORE_TITLE = "score (of training: all episodes so far)"
"""Of the first chart, where the result of the task is a score."""
CURVE_STYLES = ("curve1", "curve2", "curve3", "curve4", "curve5", "curve6", "curve7", "curve8")
WINDOWS: tuple[tuple[str, float], ...] = (("all", 0.0), ("last 1M", 1e6), ("last 200k", 2e5), ("last 50k", 5e4))
MOST = 2_048
"""Points of a curve that are smoothed one by one."""
SMOOTHING = (0.0, 0.6, 0.9, 0.97)
MOST_SERIES = len(CURVE_STYLES)
"""Curves of a chart, the largest, where nobody picked others."""


@dataclass(frozen=True)
class Overlay:
    """What is drawn over the session's own curves: another session, or one of its own iterations moved to where the
    newest begins."""

    name: str
    moment: Moment
    iteration: tuple[int, int] | None = None
    """(sub-task, iteration) of the session itself."""


@dataclass(frozen=True)
class Options:
    """What the operator chose for the curves pane."""

    smoothing: float = 0.6
    log: bool = False
    window: float = 0.0
    """Env steps shown back from the cursor, 0 for all."""
    crosshair: float | None = None
    """Share (0..1) of the x range."""
    zoom: tuple[float, float] | None = None
    """First and last env step shown; None: as the window says."""
    picked: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Chart -> names of the curves to draw; the largest ones where it is missing."""
    overlay: Overlay | None = None


@dataclass(frozen=True)
class Chart:
    key: str
    title: str
    curves: Callable[[Moment, Axis], Sequence[Curve]]
    bounded: bool = False
    """A share: y from 0 to 1, no log."""
    empty: str = "no PPO update yet"


class Charts:
    """The plots of one moment; the axis is computed once for all of them."""

    def __init__(self, moment: Moment, options: Options, before: Charts | None = None) -> None:
        """`before`: charts of the same moment with other options, whose axis and marks are taken over."""
        self.moment, self.options = moment, options
        same = before if before is not None and before.moment is moment else None
        self.axis: Axis = same.axis if same else axis_of(moment.history, moment.metrics)
        self._marks: list[Marks] = same._marks if same else marks(moment, self.axis)
        self._other: Axis | None = same._other if same and same.options.overlay is options.overlay else self._overlaid()

    def _overlaid(self) -> Axis | None:
        """The x-axis of what is drawn over the session."""
        over = self.options.overlay
        if over is None:
            return None
        if over.iteration is None:
            return axis_of(over.moment.history, over.moment.metrics)
        return _moved(self.moment, self.axis, over.iteration)

    def series(self, chart: Chart) -> list[Curve]:
        """All curves of a chart, the largest first where there are many."""
        return [c for c in chart.curves(self.moment, self.axis) if len(c.x)]

    def picked(self, chart: Chart, every: Sequence[Curve]) -> list[Curve]:
        """Those that are drawn."""
        names = self.options.picked.get(chart.key)
        return [c for c in every if c.name in names] if names is not None else list(every[:MOST_SERIES])

    def span(self, curves: Sequence[Curve]) -> tuple[float, float]:
        """First and last env step shown."""
        if self.options.zoom:
            return self.options.zoom
        end = max([self.axis.end, *(float(c.x[-1]) for c in curves)], default=0.0)
        return (max(0.0, end - self.options.window) if self.options.window else 0.0), end

    def _over(self, chart: Chart) -> list[Curve]:
        over, axis = self.options.overlay, self._other
        if over is None or axis is None:
            return []
        moment = over.moment if over.iteration is None else self.moment
        drawn = self.picked(chart, [c for c in chart.curves(moment, axis) if len(c.x)])
        drawn = [c for c in drawn if over.iteration is None or not c.points]
        return [
            replace(c, name=f"{over.name} {c.name}".strip(), style=CURVE_STYLES[(CURVE_STYLES.index(c.style) + 4) % 8])
            for c in drawn
        ]

    def _empty(self, chart: Chart, hidden: bool) -> str:
        """What stands in a chart without curves. `hidden`: it has some, and none of them is picked."""
        text = "none of the picked series is here yet" if hidden else chart.empty
        return text.removesuffix(" yet") if self.moment.history.status == "ended" else text

    def plot(self, chart: Chart) -> Plot:
        every = self.series(chart)
        curves = self.picked(chart, every)
        note = f"{len(curves)} of {len(every)}" if len(curves) < len(every) else ""
        curves += self._over(chart)
        start, end = self.span(curves)
        if self.options.smoothing > 0:
            curves = [c for curve in curves for c in _smooth(curve, self.options.smoothing)]
        cross = self.options.crosshair
        return Plot(
            SCORE_TITLE if chart.key == "success" and self.moment.history.scored else chart.title,
            curves,
            self._marks,
            x_range=(start, end) if end > start else None,
            y_range=(0.0, 1.0) if chart.bounded else None,
            log=self.options.log and not chart.bounded,
            crosshair=None if cross is None else start + cross * (end - start),
            empty=self._empty(chart, bool(every) and not curves),
            note=note,
        )


def _moved(moment: Moment, axis: Axis, iteration: tuple[int, int]) -> Axis | None:
    """The rows of an iteration's PPO runs, with their env steps moved so that they begin where those of the newest
    iteration with a run do; None if it has none."""
    h = moment.history
    with_runs = [i for i in h.iterations if any(run in axis.run_starts for run in i.runs)]
    shown = next((i for i in with_runs if (i.sub_task, i.number) == iteration), None)
    if shown is None:
        return None
    runs = moment.metrics.column("run")[axis.rows]
    indices = np.flatnonzero(np.isin(runs, shown.runs))
    starts = [min(axis.run_starts[r] for r in i.runs if r in axis.run_starts) for i in (shown, with_runs[-1])]
    breaks = tuple((np.flatnonzero(np.diff(runs[indices])) + 1).tolist())
    return replace(axis, rows=axis.rows[indices], x=axis.x[indices] + starts[1] - starts[0], breaks=breaks)


def zoomed(options: Options, span: tuple[float, float], whole: float, by: float) -> Options:
    """The x-range `by` times as wide around the crosshair, or at the right end without one; all of it once it would
    be wider than `whole` env steps."""
    start, end = span
    cross = options.crosshair
    centre = end if cross is None else start + cross * (end - start)
    wide = (end - start) * by
    if wide >= whole or whole <= 0:
        share = None if cross is None or whole <= 0 else min(max(centre / whole, 0.0), 1.0)
        return replace(options, zoom=None, window=0.0, crosshair=share)
    wide = max(wide, 1.0)
    first = centre - wide if cross is None else centre - cross * wide
    return replace(options, zoom=shifted((first, first + wide), 0.0, whole))


def shifted(span: tuple[float, float], by: float, whole: float) -> tuple[float, float]:
    """A range moved by a share of its width, and kept inside what there is."""
    wide = span[1] - span[0]
    first = min(max(span[0] + by * wide, 0.0), max(whole - wide, 0.0))
    return first, first + wide


def _smooth(curve: Curve, weight: float) -> list[Curve]:
    """Smoothed run by run. Beyond `MOST` points neighbours are averaged first, with the weight of as many steps."""
    if curve.points or len(curve.x) < 8:
        return [curve]
    size = -(-len(curve.x) // MOST)
    cuts = [0, *curve.segments, len(curve.y)]
    xs: list[Floats] = []
    ys: list[Floats] = []
    segments: list[int] = []
    for start, stop in pairwise(cuts):
        if stop > start:
            x, y = _averaged(curve.x[start:stop], curve.y[start:stop], size)
            if xs:
                segments.append(sum(len(part) for part in xs))
            xs.append(x)
            ys.append(smoothed(y, weight**size))
    return [replace(curve, x=np.concatenate(xs), y=np.concatenate(ys), segments=tuple(segments))]


def _averaged(x: Floats, y: Floats, size: int) -> tuple[Floats, Floats]:
    """Means of `size` neighbours, NaN left out; x of the last of them."""
    if size == 1:
        return x, y
    starts = np.arange(0, len(y), size)
    good = np.isfinite(y)
    total, counted = np.add.reduceat(np.where(good, y, 0.0), starts), np.add.reduceat(good, starts)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(counted > 0, total / counted, np.nan)
    return x[np.minimum(starts + size - 1, len(x) - 1)], means


def marks(moment: Moment, axis: Axis) -> list[Marks]:
    """Iterations, code changes and overrides on the x-axis, later kinds last."""
    h = moment.history
    kinds = (
        ([a.seq for a in h.attempts], "▪", "mark_code"),
        ([c.seq for c in h.commands.values() if c.state == "applied"], "●", "mark_override"),
        ([i.seq for i in h.iterations], "┃", "mark_iteration"),
    )
    return [Marks(axis.at_all(np.array(seqs, dtype=np.float64)), glyph, style) for seqs, glyph, style in kinds]


# ---- the curves of each chart ---------------------------------------------------------------------
def _success(moment: Moment, axis: Axis) -> list[Curve]:
    table, rows = moment.metrics, axis.rows
    won, of = table.column("successes")[rows], table.column("episodes")[rows]
    if moment.history.scored:
        share, recent = table.column("score")[rows], f"n={int(np.nansum(of))}" if len(of) else ""
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(of > 0, won / of, np.nan)
        recent = f"n={int(np.nansum(of[-10:]))}" if len(of) else ""
    curves = [Curve("train", axis.x, share, "curve1", note=recent, segments=axis.breaks)]
    every = (trial for attempt in moment.history.attempts for _, trial in attempt.trials if trial.episodes)
    if trials := sorted(every, key=lambda trial: trial.seq):
        x, y = np.array([(axis.at(trial.seq), trial.successes / trial.episodes) for trial in trials]).T
        curves.append(Curve("trial", x, y, "curve4", points=True, note=f"n={trials[-1].episodes}"))
    for split, variant, name, style in (
        ("dev", "plan", "code alone", "curve3"),
        ("dev", "full", "dev", "curve2"),
        ("test", "full", "test", "curve5"),
    ):
        points = [(axis.at(parts[-1].seq), of_all.value, *of_all.interval, of_all.episodes)
                  for i in moment.history.iterations
                  for parts in _played_alike(i, split, variant) for of_all in (pool(parts),)]  # fmt: skip
        if points:
            x, y, low, high, n = np.array(points, dtype=float).T
            curves.append(Curve(name, x, y, style, points=True, low=low, high=high, note=f"n={int(n[-1])}"))
    return curves


def _played_alike(iteration: IterationState, split: str, variant: str) -> Iterable[list[EvaluationState]]:
    """The evaluations of each plan and policy together: more episodes of the same are no new point."""
    alike: dict[tuple[int, int | None], list[EvaluationState]] = {}
    for e in iteration.evaluations:
        if (e.split, e.variant) == (split, variant):
            alike.setdefault((e.revision, e.run), []).append(e)
    return alike.values()


def _scalar(name: str, style: str = "curve1") -> Callable[[Moment, Axis], Sequence[Curve]]:
    def curves(moment: Moment, axis: Axis) -> list[Curve]:
        return [Curve("", axis.x, moment.metrics.column(name)[axis.rows], style, segments=axis.breaks)]

    return curves


def _columns_with_values(table: MetricTable, prefix: str, axis: Axis) -> list[str]:
    """The columns that some row up to the cursor has: in a replay the table knows those of later rows too."""
    names = (name for name in table.names if name.startswith(prefix))
    return [name for name in names if np.isfinite(table.column(name)[axis.rows]).any()]


def _shares(prefix: str, words: Mapping[str, str] | None = None) -> Callable[[Moment, Axis], Sequence[Curve]]:
    """Each name's share of the row's sum, the largest first. `words`: what a name is called here."""

    def curves(moment: Moment, axis: Axis) -> list[Curve]:
        table = moment.metrics
        names = _columns_with_values(table, prefix, axis)
        if not names:
            return []
        block = np.nan_to_num(np.array([table.column(n)[axis.rows] for n in names]))
        total = block.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(total > 0, block / total, np.nan)
        order = np.argsort(-block.sum(axis=1), kind="stable")
        return [
            Curve(_called(names[i][len(prefix) :], words), axis.x, share[i], CURVE_STYLES[place % MOST_SERIES],
                  segments=axis.breaks)
            for place, i in enumerate(order.tolist())
        ]  # fmt: skip

    return curves


def _called(name: str, words: Mapping[str, str] | None) -> str:
    return words.get(name, name) if words else name


def _per_episode(prefix: str) -> Callable[[Moment, Axis], Sequence[Curve]]:
    def curves(moment: Moment, axis: Axis) -> list[Curve]:
        table = moment.metrics
        episodes = table.column("episodes")[axis.rows]
        names = sorted(_columns_with_values(table, prefix, axis))
        with np.errstate(divide="ignore", invalid="ignore"):
            return [
                Curve(n[len(prefix) :], axis.x, np.where(episodes > 0, table.column(n)[axis.rows] / episodes, np.nan),
                      CURVE_STYLES[place % MOST_SERIES], segments=axis.breaks)
                for place, n in enumerate(names)
            ]  # fmt: skip

    return curves


def _dead_loops(moment: Moment, axis: Axis) -> list[Curve]:
    of = moment.metrics.column("episodes")[axis.rows]
    loops = moment.metrics.column("dead_loops")[axis.rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        return [Curve("", axis.x, np.where(of > 0, loops / of, np.nan), "curve6", segments=axis.breaks)]


_CHARTS: tuple[Chart, ...] = (
    Chart("success", "success rate", _success, True, "no trial, update or evaluation yet"),
    Chart("return", "episode return", _scalar("return_mean")),
    Chart("usage", "option usage (share of decisions)", _shares("usage:"), True),
    Chart("ends", "option ends (share by reason)", _shares("end:", CALL_ENDS), True, "no coded action was called yet"),
    Chart("length", "episode length (env steps)", _scalar("length_mean", "curve2")),
    Chart("entropy", "entropy (normalised)", _scalar("entropy", "curve3")),
    Chart("kl", "approximate KL", _scalar("kl", "curve4")),
    Chart("clip", "clip fraction", _scalar("clip_fraction", "curve5")),
    Chart("explained", "explained variance", _scalar("explained_variance", "curve6")),
    Chart("value_loss", "value loss", _scalar("value_loss", "curve7")),
    Chart("policy_loss", "policy loss", _scalar("policy_loss", "curve8")),
    Chart("rewards", "reward by term (per episode)", _per_episode("reward:")),
    Chart("milestones", "milestones (share of episodes)", _per_episode("milestone:"), True),
    Chart("dead_loops", "dead-loop share", _dead_loops, True),
    Chart("rate", "env steps per second", _scalar("rate", "curve2")),
    Chart("learning_rate", "learning rate", _scalar("learning_rate", "curve3")),
)
_DRAWN = {
    "return_mean", "length_mean", "entropy", "kl", "clip_fraction", "explained_variance", "value_loss", "policy_loss",
    "rate", "learning_rate", "dead_loops",
    "score", "successes", "episodes", "seq", "run", "update", "env_steps", "decisions",
}  # fmt: skip
"""Columns that the charts above show, and those that only count."""
CHARTS = _CHARTS + tuple(Chart(n, n.replace("_", " "), _scalar(n)) for n in SCALARS if n not in _DRAWN)
"""A new column of numbers has a chart at once; one above gives it a better title."""


def grid(width: int, height: int, charts: int) -> tuple[int, int]:
    """(columns, rows) of charts that fit legibly; at least one."""
    columns = max(1, min(width // 30, 4))
    rows = max(1, min(height // 7, 4))
    while columns * rows > charts and rows > 1:
        rows -= 1
    return min(columns, charts), rows

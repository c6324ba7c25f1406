"""Success, or the score so far, in training: one curve an arm, IQM over its sessions with a 95% bootstrap interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from rlgpt.console import statistics
from rlgpt.store.export.svg import HEIGHT, LEFT, WIDTH, Line, chart
from rlgpt.store.reader import Reader
from rlgpt.store.row_types import MetricRow

Floats = NDArray[np.float64]
GRID = 40
WINDOW = 50
"""Finished episodes behind a point, at least."""
TITLE = 22
"""Above each chart, for its title."""
STYLE = (
    "svg text{font:11px sans-serif;fill:#57606a}svg .title{font-weight:bold}"
    ".grid{stroke:#d0d7de}.line{fill:none;stroke-width:1.5}circle{fill:#fff}"
    ".c0{stroke:#0969da}.c1{stroke:#bc4c00}.c2{stroke:#1a7f37}.c3{stroke:#8250df}.c4{stroke:#bf3989}.c5{stroke:#6e7781}"
)


def svg(
    drawn: Mapping[str, Sequence[Line]], unit: str = "env steps", what: str = "success of training episodes"
) -> str:  # fmt: skip
    """A stand-alone SVG file: a chart a task, one below the other."""
    parts = []
    for number, (task, lines) in enumerate(drawn.items()):
        figure = chart(task, lines, unit, share=True)
        inside = figure[figure.find("<svg") : figure.find("</svg>")].split(">", 1)[1]
        title = f'<text x="{LEFT}" y="14" class="title">{escape(task)}: {what}</text>'
        place = f'transform="translate(0 {number * (HEIGHT + TITLE)})"'
        shifted = f'<g transform="translate(0 {TITLE})">{_legend(lines)}{inside}</g>'
        parts.append(f"<g {place}>{title}{shifted}</g>")
    high = max(len(drawn), 1) * (HEIGHT + TITLE)
    head = f'<svg viewBox="0 0 {WIDTH} {high}" xmlns="http://www.w3.org/2000/svg"><style>{STYLE}</style>'
    return f"{head}{''.join(parts)}</svg>\n"


def curves(readers: Sequence[Reader], arms: Sequence[str]) -> dict[str, list[Line]]:
    """What is drawn: the curves of each task, arm by arm. Sessions without PPO have none.

    Success in different tasks is not comparable, so no curve mixes them. An arm of one session is called by the
    session's name: the settings that it differs in may be many.
    """
    found: dict[str, list[Line]] = {}
    sessions = [reader.history_at().session for reader in readers]
    for task, arm in dict.fromkeys((str(s["task"]), arm) for s, arm in zip(sessions, arms, strict=True)):
        mine = [i for i, s in enumerate(sessions) if (str(s["task"]), arms[i]) == (task, arm)]
        name = str(sessions[mine[0]]["name"]) if len(mine) == 1 else arm
        known = [curve for i in mine if len((curve := success(readers[i]))[0]) > 1]
        if known:
            found.setdefault(task, []).extend(_lines(name, known))
    return found


def success(reader: Reader) -> tuple[Floats, Floats]:
    """(env steps of the session, success over the last WINDOW episodes, or the score of all episodes so far);
    superseded updates are left out."""
    history = reader.history_at()
    runs = history.runs
    scores: list[float] = []
    xs: list[float] = []
    won: list[int] = []
    of: list[int] = []
    before = 0
    for number, run in sorted(runs.items()):
        for row in reader.rows(
            MetricRow, {"run": number}, columns=["seq", "env_steps", "episodes", "successes", "score"]
        ):
            if not any(first < row["seq"] < last for first, last in run.hidden):
                xs.append(before + row["env_steps"])
                of.append(row["episodes"])
                won.append(row["successes"])
                scores.append(row["score"] or 0.0)
        before += run.env_steps
    values = np.array(scores) if history.scored else _windowed(np.cumsum(won), np.cumsum(of))
    return np.array(xs, dtype=float), values


def _windowed(won: NDArray[np.int64], of: NDArray[np.int64]) -> Floats:
    rates = np.zeros(len(of))
    for index, total in enumerate(of):
        first = int(np.searchsorted(of, total - WINDOW, side="right")) - 1
        earlier = (won[first], of[first]) if first >= 0 else (0, 0)
        rates[index] = (won[index] - earlier[0]) / max(1, total - earlier[1])
    return rates


def _lines(arm: str, curves: Sequence[tuple[Floats, Floats]]) -> list[Line]:
    start, end = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    if end <= start:
        return [Line(arm, list(zip(x.tolist(), y.tolist(), strict=True))) for x, y in curves]
    grid = np.linspace(start, end, GRID)
    scores = np.array([np.interp(grid, x, y) for x, y in curves])
    if len(curves) == 1:
        return [Line(arm, list(zip(grid.tolist(), scores[0].tolist(), strict=True)))]
    points = [statistics.bootstrap(scores[:, [i]], statistics.iqm, resamples=500) for i in range(GRID)]
    names = {"value": f"{arm}, IQM of {len(curves)}", "low": f"{arm}, 95% low", "high": f"{arm}, 95% high"}
    return [
        Line(name, list(zip(grid.tolist(), (getattr(p, field) for p in points), strict=True)))
        for field, name in names.items()
    ]


def _legend(lines: Sequence[Line]) -> str:
    rows = (
        f'<text x="80" y="{26 + 14 * i}"><tspan class="c{i % 6}">&#9644;</tspan> {escape(line.name)}</text>'
        for i, line in enumerate(lines)
    )
    return "".join(rows)

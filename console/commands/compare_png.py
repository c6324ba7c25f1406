"""Curves as a PNG file, where matplotlib is installed (extra `plots`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from rlgpt.store.export.svg import Line


def draw(path: Path, drawn: Mapping[str, Sequence[Line]]) -> None:
    """A chart a task, one below the other."""
    figure = Figure(figsize=(8, 4.5 * max(len(drawn), 1)), layout="constrained")
    for number, (task, lines) in enumerate(drawn.items(), 1):
        axes = figure.add_subplot(len(drawn), 1, number)
        for line in lines:
            x, y = zip(*line.points, strict=True)
            (curve,) = axes.plot(x, y, label=line.name, linewidth=1.2)
            if line.band:
                x, low, high = zip(*line.band, strict=True)
                axes.fill_between(x, low, high, color=curve.get_color(), alpha=0.15, linewidth=0)
        axes.set(title=task, xlabel="env steps", ylabel="success of training episodes", ylim=(0, 1))
        axes.legend(fontsize=8, frameon=False)
    figure.savefig(path, format="png")

"""Curves as a PNG file, where matplotlib is installed (extra `plots`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from rlgpt.store.export.svg import Line


def draw(path: Path, lines: Sequence[Line]) -> None:
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for line in lines:
        axes.plot([x for x, _ in line.points], [y for _, y in line.points], label=line.name, linewidth=1.2)
    axes.set(xlabel="env steps", ylabel="success of training episodes", ylim=(0, 1))
    if lines:
        axes.legend(fontsize=8, frameon=False)
    figure.savefig(path, format="png")

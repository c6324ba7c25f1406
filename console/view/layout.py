"""Where each pane of the session screen stands, for a size of the terminal. Pure geometry, in cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

PANES = (
    "plan", "code", "curves", "verdicts", "world", "log", "calls", "system", "funnel",
    "episodes", "why", "options",
)  # fmt: skip
LEAST_WIDTH, LEAST_HEIGHT = 24, 4

Region = tuple[int, int, int, int]
"""x, y, width, height."""


@dataclass(frozen=True)
class Variant:
    """Columns of slots; a slot shows one of its panes at a time, the others as tabs."""

    name: str
    columns: tuple[tuple[tuple[str, ...], ...], ...]
    widths: tuple[float, ...]
    heights: tuple[tuple[float, ...], ...]


NARROW = Variant(
    "narrow",
    (
        (("plan",), ("verdicts", "episodes")),
        (("curves", "code", "world", "log", "calls", "system", "funnel", "why", "options"),),
    ),
    (0.45, 0.55),
    ((0.6, 0.4), (1.0,)),
)
MEDIUM = Variant(
    "medium",
    (
        (("plan",), ("verdicts", "log", "episodes")),
        (("code", "world", "calls"), ("curves", "funnel", "why", "options", "system")),
    ),
    (0.42, 0.58),
    ((0.52, 0.48), (0.5, 0.5)),
)
WIDE = Variant(
    "wide",
    (
        (("plan",), ("verdicts", "episodes")),
        (("code", "calls"), ("curves", "why", "options")),
        (("world",), ("log", "system", "funnel")),
    ),
    (0.31, 0.42, 0.27),
    ((0.5, 0.5), (0.5, 0.5), (0.56, 0.44)),
)


def variant(width: int, height: int) -> Variant:
    if width >= 170 and height >= 30:
        return WIDE
    return MEDIUM if width >= 100 and height >= 28 else NARROW


@dataclass(frozen=True)
class Choices:
    """What the operator changed: sizes by variant, the pane shown in each slot, the zoomed pane."""

    widths: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    heights: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    shown: Mapping[str, str] = field(default_factory=dict)
    """`variant:column:slot` -> pane."""
    zoomed: str = ""


def shown_panes(layout: Variant, choices: Choices) -> dict[str, tuple[str, ...]]:
    """Visible pane -> all panes of its slot, in the order of the panes' numbers."""
    columns: dict[str, tuple[str, ...]] = {}
    for c, column in enumerate(layout.columns):
        for s, slot in enumerate(column):
            name = choices.shown.get(f"{layout.name}:{c}:{s}", slot[0])
            columns[name if name in slot else slot[0]] = slot
    if choices.zoomed:
        return {choices.zoomed: next((v for v in columns.values() if choices.zoomed in v), (choices.zoomed,))}
    return dict(sorted(columns.items(), key=lambda item: PANES.index(item[0])))


def slot_of(layout: Variant, pane: str) -> str:
    """Key of the slot that holds the pane."""
    for c, column in enumerate(layout.columns):
        for s, slot in enumerate(column):
            if pane in slot:
                return f"{layout.name}:{c}:{s}"
    raise KeyError(pane)


def place_of(layout: Variant, pane: str) -> tuple[int, int]:
    """(column, slot) of the pane."""
    _, column, slot = slot_of(layout, pane).split(":")
    return int(column), int(slot)


def arrange(layout: Variant, choices: Choices, width: int, height: int) -> dict[str, Region]:
    """Region of each visible pane; together they tile width x height."""
    visible = shown_panes(layout, choices)
    if choices.zoomed:
        return {choices.zoomed: (0, 0, width, height)}
    regions: dict[str, Region] = {}
    x = 0
    widths, every = sizes(layout, choices)
    for c, size in enumerate(split(width, widths, LEAST_WIDTH)):
        y = 0
        heights = every[c]
        for s, tall in enumerate(split(height, heights, LEAST_HEIGHT)):
            slot = layout.columns[c][s]
            pane = next(p for p in visible if visible[p] == slot)
            regions[pane] = (x, y, size, tall)
            y += tall
        x += size
    return regions


def sizes(layout: Variant, choices: Choices) -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
    """Shares of the columns and of the slots in each: the operator's where they fit the variant."""
    widths = choices.widths.get(layout.name, layout.widths)
    heights = choices.heights.get(layout.name, layout.heights)
    fits = _fits(widths, layout.widths)
    fit_heights = len(heights) == len(layout.heights) and all(map(_fits, heights, layout.heights))
    return widths if fits else layout.widths, heights if fit_heights else layout.heights


def _fits(shares: Sequence[float], own: Sequence[float]) -> bool:
    """Whether stored sizes fit the variant; they come from a file, which may hold anything."""
    return len(shares) == len(own) and all(0 < share <= 1e6 for share in shares)


def split(total: int, shares: Sequence[float], least: int) -> list[int]:
    """Whole sizes that sum to `total`, each at least `least` where there is room."""
    least = min(least, total // len(shares))
    edges = [0]
    for index in range(len(shares)):
        edge = round(total * sum(shares[: index + 1]) / sum(shares))
        low = edges[-1] + least
        high = total - least * (len(shares) - index - 1)
        edges.append(min(max(edge, low), high))
    edges[-1] = total
    return [b - a for a, b in pairwise(edges)]


def grown(shares: Sequence[float], index: int, by: float) -> tuple[float, ...]:
    """Shares with one of them grown by a share of the whole, which the next one gives, and to the last the one
    before."""
    last = len(shares) - 1
    return moved(shares, index, by) if index < last else moved(shares, last - 1, -by)


def moved(shares: Sequence[float], index: int, by: float, least: float = 0.12) -> tuple[float, ...]:
    """Shares with the border behind `index` moved by a share of the whole."""
    out = list(shares)
    if not 0 <= index < len(out) - 1:
        return tuple(out)
    by = min(max(by, least - out[index]), out[index + 1] - least)
    out[index] += by
    out[index + 1] -= by
    return tuple(out)

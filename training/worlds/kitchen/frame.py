"""Frames of the format `kitchen-lines-1`: what a console needs to draw one moment, and the drawing. Standard library
only; the console loads this file by its path.

Places are int16 millimetres, little-endian, in the order x, y, z (see `names`): the base, the seven links and the hand
of the arm, then for each object the true and the reported place of its handle.
"""

from __future__ import annotations

import struct
from itertools import pairwise

FORMAT = "kitchen-lines-1"
OBJECTS = ("microwave", "kettle", "light_switch", "slide_cabinet", "hinge_cabinet", "top_burner", "bottom_burner")
_LINKS, _COUNT = 9, len(OBJECTS)
_LAYOUT = struct.Struct(f"<HHBIb?B{3 * _LINKS}h{3 * _COUNT}h{3 * _COUNT}h{_COUNT}B")


def pack(
    steps: int, steps_left: int, goals: list[int], reached: int, fingers: int, holding: bool, gap: int,
    links: list[int], hand: list[int], handles: list[int], reported: list[int], percent: list[int],
) -> bytes:  # fmt: skip
    bits = sum(1 << goal for goal in goals)
    places = (*links, *hand, *handles, *reported)
    return _LAYOUT.pack(steps, steps_left, bits, reached, fingers, holding, gap, *places, *percent)


# ---- drawing ----------------------------------------------------------------------------------------
Row = list[tuple[str, str]]
"""Texts and their styles (words of the console's palette)."""
_X, _Y, _Z = (-1150, 550), (-150, 950), (1500, 2950)
"""Range in mm along each axis that the drawings show."""
_LETTERS = "MKLSHTB"
HINGES = {0: (-1128, 455), 4: (-224, 710)}
"""Upright hinges in the top view: of the microwave and of the right door of the hinge cabinet."""
_MIN_ERROR = 10
"""mm between the true and the reported place of a handle, from which both are drawn."""
_WIDE_COLUMNS = 64
"""Columns from which the two drawings stand side by side."""
_NARROWEST = 34
"""Columns from which both headings fit side by side."""
_STACKED_ROWS = 12
"""A narrow pane with more rows than these has one drawing below the other; with fewer, heights could not be told."""


class _Canvas:
    """A grid of characters over a rectangle in mm, its first row on top."""

    def __init__(self, columns: int, rows: int, across: tuple[int, int], up: tuple[int, int]) -> None:
        self.columns, self.rows = columns, rows
        self._across, self._up = across, up
        self._cells = [[(" ", "")] * columns for _ in range(rows)]

    def put(self, x: float, y: float, text: str, style: str, at_edge: bool = False) -> None:
        """`at_edge`: what lies outside of the rectangle is drawn at its edge, on that side."""
        column = round((x - self._across[0]) / (self._across[1] - self._across[0]) * (self.columns - 1))
        row = round((self._up[1] - y) / (self._up[1] - self._up[0]) * (self.rows - 1))
        if at_edge:
            column, row = max(0, min(self.columns - 1, column)), max(0, min(self.rows - 1, row))
        if 0 <= column < self.columns and 0 <= row < self.rows:
            self._cells[row][column] = (text, style)

    def line(self, start: tuple[float, float], end: tuple[float, float], text: str, style: str) -> None:
        steps = 2 * max(self.columns, self.rows)
        for step in range(steps + 1):
            share = step / steps
            self.put(start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]), text, style)

    def lines(self) -> list[Row]:
        out: list[Row] = []
        for cells in self._cells:
            row: Row = []
            for text, style in cells:
                if row and row[-1][1] == style:
                    row[-1] = (row[-1][0] + text, style)
                else:
                    row.append((text, style))
            out.append(row)
        return out


class _Scene:
    """The parts of a frame."""

    def __init__(self, body: bytes) -> None:
        self.steps, self.steps_left, goals, self.reached, self.fingers, self.holding, self.gap, *rest = _LAYOUT.unpack(
            body
        )
        places = [(rest[at], rest[at + 1], rest[at + 2]) for at in range(0, 3 * (_LINKS + 2 * _COUNT), 3)]
        self.links, self.handles = places[:_LINKS], places[_LINKS : _LINKS + _COUNT]
        self.reported = places[_LINKS + _COUNT :]
        self.percent = rest[-_COUNT:]
        self.goals = [index for index in range(_COUNT) if goals >> index & 1]

    def draw_on(self, canvas: _Canvas, axes: tuple[int, int], top: bool) -> list[Row]:
        """The scene along two of the three axes."""
        first, second = axes
        flat = [[(place[first], place[second]) for place in part] for part in (self.links, self.handles, self.reported)]
        links, handles, reported = flat
        if top:
            for index, hinge in HINGES.items():
                canvas.line(hinge, handles[index], "─", "dim")
        for start, end in pairwise(links):
            canvas.line(start, end, "•", "curve3")
        canvas.put(*links[0], "▣", "curve3 bold")
        for index in sorted(range(_COUNT), key=lambda index: index in self.goals):
            style = "dim" if index not in self.goals else "ok bold" if self.percent[index] >= 100 else "accent bold"
            if index in self.goals and max(map(_difference, self.handles[index], self.reported[index])) >= _MIN_ERROR:
                canvas.put(*reported[index], "×", "warn bold")
            canvas.put(*handles[index], _LETTERS[index], style, at_edge=index in self.goals)
        canvas.put(*links[-1], "●" if self.holding else "○" if self.fingers > 0 else "◍", "bold", at_edge=True)
        return canvas.lines()


def _difference(one: int, other: int) -> int:
    return abs(one - other)


def draw(body: bytes, width: int, height: int, decision: str = "") -> list[Row] | None:
    """The top view, beside it or below it the view from the side, and the state in words; None where the bytes are no
    such frame."""
    if len(body) != _LAYOUT.size:
        return None
    scene = _Scene(body)
    words = _words(scene, decision)
    rows = max(3, height - len(words) - 1)
    if width < _NARROWEST or (width < _WIDE_COLUMNS and rows > _STACKED_ROWS):
        half = rows // 2
        return [
            [("from above", "dim")], *scene.draw_on(_Canvas(width, half, _X, _Y), (0, 1), True),
            [("from the side", "dim")], *scene.draw_on(_Canvas(width, rows - half - 1, _Y, _Z), (1, 2), False), *words,
        ]  # fmt: skip
    left = (width - 3) * 3 // 5
    right = width - 3 - left
    top = scene.draw_on(_Canvas(left, rows, _X, _Y), (0, 1), True)
    side = scene.draw_on(_Canvas(right, rows, _Y, _Z), (1, 2), False)
    head = [("from above".ljust(left), "dim"), (" │ ", "dim"), ("from the side".ljust(right), "dim")]
    return [head, *([*a, (" │ ", "dim"), *b] for a, b in zip(top, side, strict=True)), *words]


def state(body: bytes) -> dict[str, int]:
    """How far each goal is, in percent, and whether the hand holds something."""
    if len(body) != _LAYOUT.size:
        return {}
    scene = _Scene(body)
    return {OBJECTS[index]: scene.percent[index] for index in scene.goals} | {"held": int(bool(scene.holding))}


def _words(scene: _Scene, decision: str) -> list[Row]:
    fingers = "holds something" if scene.holding else "open" if scene.fingers > 0 else "closed"
    state = f"env step {scene.steps}, {scene.steps_left} left, fingers {scene.gap} mm apart, {fingers}"
    lines: list[Row] = [[(state, "dim")]]
    for index in scene.goals:
        stages = scene.reached >> 4 * index
        stages_reached = [name for bit, name in enumerate(("reached", "grasped", "ajar", "done")) if stages >> bit & 1]
        share = scene.percent[index]
        bar = "█" * (share // 10) + "░" * (10 - share // 10)
        lines.append([
            (f"{_LETTERS[index]} ", "accent bold"), (f"{OBJECTS[index].replace('_', ' '):14}", ""),
            (bar, "ok" if share >= 100 else "accent"),
            (f" {share:3}%  {', '.join(stages_reached) or 'not reached'}", "dim"),
        ])  # fmt: skip
    if decision:
        lines.append([("decision ", "dim"), (decision, "accent bold")])
    return lines

"""The curves pane: a grid of charts, or one alone, with smoothing, log scale, window and crosshair."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Region
from textual.strip import Strip

from rlgpt.console.charts.plot import draw
from rlgpt.console.keymap import bindings
from rlgpt.console.panes.painted import Painted
from rlgpt.console.panes.pane import Pane
from rlgpt.console.view.curves import CHARTS, SMOOTHING, WINDOWS, Charts, Options, grid
from rlgpt.console.view.text import Line, Span


class CurvesPane(Pane, Painted, can_focus=True):
    BINDINGS: ClassVar[list[BindingType]] = bindings("curves")

    def __init__(self, name: str) -> None:
        super().__init__(id=name, classes="pane")
        self.options = Options()
        self.selected = 0
        self.alone = False
        self._first = 0
        self._lines: list[Line] = []
        self._charts: Charts | None = None

    @property
    def _marked(self) -> bool:
        return "NO_COLOR" in os.environ  # Textual keeps it from its console

    def redraw(self) -> None:
        width, height = self.size
        if self.moment is None or width < 8 or height < 2:
            return
        before = self._lines
        charts = self._charts = Charts(self.moment, self.options, self._charts)
        if self.alone:
            self._lines = draw(charts.plot(CHARTS[self.selected]), width, height, self._marked)
            self.note(self._words(f"{self.selected + 1} of {len(CHARTS)}"))
        else:
            self._lines = self._grid(charts, width, height)
        if len(before) != len(self._lines):
            self.refresh()
            return
        changed = [y for y, (old, new) in enumerate(zip(before, self._lines, strict=True)) if old != new]
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def _grid(self, charts: Charts, width: int, height: int) -> list[Line]:
        if not len(charts.axis.rows):
            self.note("the other charts come with the first PPO update")
            return draw(charts.plot(CHARTS[0]), width, height, self._marked)
        columns, rows = grid(width, height, len(CHARTS))
        page = columns * rows
        if not self._first <= self.selected < self._first + page:
            self._first = self.selected // page * page
        last = min(self._first + page, len(CHARTS))
        self.note(self._words(f"{self._first + 1}–{last} of {len(CHARTS)}"))
        wide = (width - columns + 1) // columns
        tall = height // rows
        out: list[Line] = []
        for row in range(rows):
            high = tall if row < rows - 1 else height - tall * (rows - 1)
            cells: list[list[Line]] = []
            for column in range(columns):
                index = self._first + row * columns + column
                if index >= len(CHARTS):
                    break
                lines = draw(charts.plot(CHARTS[index]), wide, high, self._marked)
                if index == self.selected and self.has_focus:
                    lines[0] = tuple(Span(s.text, "selected" if s.style == "title" else s.style) for s in lines[0])
                cells.append(lines)
            for y in range(high):
                spans: list[Span] = []
                for column, lines in enumerate(cells):
                    if column:
                        spans.append(Span(" "))
                    spans += lines[y]
                out.append(tuple(spans))
        return out

    def _words(self, which: str) -> str:
        o = self.options
        window = next(name for name, size in WINDOWS if size == o.window)
        parts = [f"charts {which}", f"smoothing {o.smoothing:g}" if o.smoothing else "raw"]
        parts += [window] if o.window else []
        parts += ["log"] if o.log else []
        parts += ["crosshair ←→"] if o.crosshair is not None else []
        return " · ".join(parts)

    def render_line(self, y: int) -> Strip:
        return self.painted(self._lines[y] if y < len(self._lines) else (), self.size.width)

    def on_resize(self, event: events.Resize) -> None:
        self.redraw()

    def watch_has_focus(self, value: bool) -> None:
        super().watch_has_focus(value)
        self.redraw()

    # ---- keys -----------------------------------------------------------------------------------
    def _set(self, options: Options) -> None:
        self.options = options
        self.redraw()

    def action_chart(self, by: int) -> None:
        if self.options.crosshair is not None:
            step = by / max(self.size.width * (2 if self.alone else 1), 1)
            self._set(replace(self.options, crosshair=min(max(self.options.crosshair + step, 0.0), 1.0)))
            return
        self.selected = (self.selected + by) % len(CHARTS)
        self.redraw()

    def action_charts(self, by: int) -> None:
        columns, _ = grid(*self.size, len(CHARTS))
        self.selected = min(max(self.selected + by * (1 if self.alone else columns), 0), len(CHARTS) - 1)
        self.redraw()

    def action_expand(self) -> None:
        self.alone = not self.alone
        self.redraw()

    def action_smooth(self) -> None:
        place = SMOOTHING.index(self.options.smoothing)
        self._set(replace(self.options, smoothing=SMOOTHING[(place + 1) % len(SMOOTHING)]))

    def action_log(self) -> None:
        self._set(replace(self.options, log=not self.options.log))

    def action_window(self) -> None:
        sizes = [size for _, size in WINDOWS]
        self._set(replace(self.options, window=sizes[(sizes.index(self.options.window) + 1) % len(sizes)]))

    def action_crosshair(self) -> None:
        self._set(replace(self.options, crosshair=None if self.options.crosshair is not None else 0.5))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.action_charts(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.action_charts(-1)

    def yank(self) -> str:
        """The selected chart's points as tab-separated text."""
        if self.moment is None:
            return ""
        plot = Charts(self.moment, replace(self.options, smoothing=0.0)).plot(CHARTS[self.selected])
        rows = [f"{plot.title}\tenv_steps\tvalue"]
        rows += [f"{c.name}\t{x:.0f}\t{y:.6g}" for c in plot.curves for x, y in zip(c.x, c.y, strict=True)]
        return "\n".join(rows)

"""The curves pane: a grid of charts, or one alone, with smoothing, log scale, zoom, crosshair, picked series and an
overlay."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Region
from textual.strip import Strip

from rlgpt.console.charts.plot import draw, values
from rlgpt.console.feed import Feed
from rlgpt.console.keymap import bindings
from rlgpt.console.panes.painted import Painted
from rlgpt.console.panes.pane import Pane
from rlgpt.console.screens.picker import OverlayPicker, SeriesPicker
from rlgpt.console.shell import shell_of
from rlgpt.console.view import overlay
from rlgpt.console.view.curves import (
    CHARTS,
    SMOOTHING,
    WINDOWS,
    Charts,
    Options,
    Overlay,
    grid,
    shifted,
    zoomed,
)
from rlgpt.console.view.numbers import count
from rlgpt.console.view.text import Line, Span, pad, plain
from rlgpt.store.catalog import summaries
from rlgpt.store.errors import StoreError
from rlgpt.store.folder import root


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
            self._lines = self._single(charts, width, height)
            self.note(self._words(f"{self.selected + 1} of {len(CHARTS)}"))
        else:
            self._lines = self._grid(charts, width, height)
        if len(before) != len(self._lines):
            self.refresh()
            return
        changed = [y for y, (old, new) in enumerate(zip(before, self._lines, strict=True)) if old != new]
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def _single(self, charts: Charts, width: int, height: int) -> list[Line]:
        """One chart; with the crosshair the values of all its series stand below it."""
        plot = charts.plot(CHARTS[self.selected])
        if self.options.crosshair is None or height < 12:
            return draw(plot, width, height, self._marked)
        table = [pad(row, width) for row in values(plot, width, height // 2, self._marked)]
        return draw(plot, width, height - len(table), self._marked) + table

    def _grid(self, charts: Charts, width: int, height: int) -> list[Line]:
        if not len(charts.axis.rows):
            ended = charts.moment.history.status == "ended"
            self.note("" if ended else "the other charts come with the first PPO update")
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
        parts += [window] if o.window and not o.zoom else []
        parts += [f"{count(o.zoom[0])}–{count(o.zoom[1])}"] if o.zoom else []
        parts += [f"with {o.overlay.name}"] if o.overlay else []
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
            self._move_crosshair(by / max(self.size.width * (2 if self.alone else 1), 1))
            return
        self.selected = (self.selected + by) % len(CHARTS)
        self.redraw()

    def _move_crosshair(self, by: float) -> None:
        """By a share of the x-range; at its edge the range of a zoom moves on."""
        assert self.options.crosshair is not None
        target = self.options.crosshair + by
        if self.options.zoom and self._charts and not 0.0 <= target <= 1.0:
            moved = shifted(self.options.zoom, 0.1 if by > 0 else -0.1, self._charts.axis.end)
            self._set(replace(self.options, zoom=moved))
        else:
            self._set(replace(self.options, crosshair=min(max(target, 0.0), 1.0)))

    def action_zoom(self, by: float) -> None:
        if self._charts:
            charts = self._charts
            span = charts.span(charts.series(CHARTS[self.selected]))
            whole = replace(self.options, zoom=None, window=0.0)
            everything = Charts(charts.moment, whole, charts).span(charts.series(CHARTS[self.selected]))[1]
            self._set(zoomed(self.options, span, everything, by))

    def action_series(self) -> None:
        if self._charts is None:
            return
        chart = CHARTS[self.selected]
        every = self._charts.series(chart)
        if len(every) < 2:
            shell_of(self).tell("this chart has no series to choose from", "warning")
            return

        def chosen(names: frozenset[str] | None) -> None:
            if names is not None:
                others = {key: picked for key, picked in self.options.picked.items() if key != chart.key}
                self._set(replace(self.options, picked=others | ({chart.key: names} if names else {})))

        drawn = frozenset(c.name for c in self._charts.picked(chart, every))
        self.app.push_screen(SeriesPicker(chart.title, [(c.name, c.style) for c in every], drawn), chosen)

    def action_overlay(self) -> None:
        if self.moment is not None:
            self.run_worker(self._offer_overlays, thread=True, exit_on_error=False)

    def _offer_overlays(self) -> None:
        moment = self.moment
        assert moment is not None
        try:
            all_sessions = summaries()
        except (StoreError, OSError) as error:
            self.app.call_from_thread(shell_of(self).tell, str(error), "error")
            return
        offers = overlay.offers(moment, all_sessions)
        self.app.call_from_thread(self.app.push_screen, OverlayPicker(offers), self._take_overlay)

    def _take_overlay(self, key: str | None) -> None:
        if key is None or self.moment is None:
            return
        if key == overlay.NONE or (own := overlay.of_iteration(self.moment, key)):
            self._set(replace(self.options, overlay=None if key == overlay.NONE else own))
            return
        self.run_worker(lambda: self._read_overlay(key), thread=True, exit_on_error=False)

    def _read_overlay(self, ident: str) -> None:
        """Another session, as it is now."""
        feed = Feed(root() / ident)
        try:
            feed.open()
            while feed.read_mappings():
                pass
            moment = feed.moment()
        except (StoreError, OSError) as error:
            self.app.call_from_thread(shell_of(self).tell, str(error), "error")
            return
        finally:
            feed.close()
        name = str(moment.history.session.get("name", ident))
        self.app.call_from_thread(lambda: self._set(replace(self.options, overlay=Overlay(name, moment))))

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

    def seen(self) -> str:
        """The visible text."""
        return "\n".join(plain(shown) for shown in self._lines)

    def yank(self) -> str:
        """The selected chart's points as tab-separated text."""
        if self.moment is None:
            return ""
        plot = Charts(self.moment, replace(self.options, smoothing=0.0)).plot(CHARTS[self.selected])
        rows = [f"{plot.title}\tenv_steps\tvalue"]
        rows += [f"{c.name}\t{x:.0f}\t{y:.6g}" for c in plot.curves for x, y in zip(c.x, c.y, strict=True)]
        return "\n".join(rows)

"""Sessions side by side: a chart above, facts and plans below."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from rlgpt.console import keymap
from rlgpt.console.charts.plot import draw
from rlgpt.console.feed import Feed
from rlgpt.console.panes.bars import Bar, Footer
from rlgpt.console.panes.lines import Lines
from rlgpt.console.screens.leaving import Leavable
from rlgpt.console.shell import shell_of
from rlgpt.console.view import compare as view
from rlgpt.console.view.compare_curves import CHARTS
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.numbers import many
from rlgpt.console.view.text import line
from rlgpt.store.catalog import UNREADABLE, require_shown, summarised, why_unreadable

POLL = 2.0


class CompareScreen(Leavable, Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("compare")

    def __init__(self, folders: Sequence[Path]) -> None:
        super().__init__()
        self._folders = list(folders)
        self._feeds: list[Feed] = []
        self._moments: list[Moment] = []
        self._shown: list[Path] = []
        """The folder of each moment."""
        self._faults: list[str] = []
        self._base = 0
        self._chart = 0
        self._reading = False

    def compose(self) -> ComposeResult:
        yield Bar(id="compare-title")
        yield Bar(id="compare-chart")
        yield Lines(id="compare-facts", classes="pane")
        yield Footer()

    def on_mount(self) -> None:
        facts = self.query_one(Lines)
        facts.border_title = "Facts and plans"
        facts.cursor_shown = False
        facts.focus()
        self._read()
        self.set_interval(POLL, self._read)

    def _read(self) -> None:
        if not self._reading:
            self._reading = True
            self.run_worker(self._read_in_thread, thread=True, exit_on_error=False)

    def _read_in_thread(self) -> None:
        if not self._feeds and not self._faults:
            for folder in self._folders:
                feed = Feed(folder, shell_of(self).clock)
                try:
                    feed.open()
                    require_shown(summarised(folder.name, feed.head()))  # one without any row has no column
                    self._feeds.append(feed)
                except (*UNREADABLE, OSError) as error:
                    self._faults.append(why_unreadable(folder, error))
            changed = True
        else:
            changed = sum([self._poll(feed) for feed in list(self._feeds)]) > 0
        moments = [feed.moment() for feed in self._feeds] if changed else self._moments
        shown = [feed.folder for feed in self._feeds]
        self._reading = False
        self.app.call_from_thread(self._take, moments, shown)

    def _poll(self, feed: Feed) -> bool:
        """A session that is gone is told of and left out; the others are followed."""
        try:
            return feed.poll()
        except (*UNREADABLE, OSError) as error:
            self._faults.append(why_unreadable(feed.folder, error))
            self._feeds.remove(feed)
            feed.close()
            return True

    def _take(self, moments: list[Moment], shown: list[Path]) -> None:
        """The base is a session, not a place: it stays the base when another one is gone."""
        base = self._shown[self._base] if self._shown else None
        self._base = shown.index(base) if base in shown else 0
        self._moments, self._shown = moments, shown
        self._draw()

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        title, chart, facts = (
            self.query_one("#compare-title", Bar),
            self.query_one("#compare-chart", Bar),
            self.query_one(Lines),
        )
        names = many(len(self._moments), "session") if self._moments or self._faults else "reading …"
        title.set_lines(
            [
                line(
                    ("rlgpt", "brand"),
                    ("  Compare", "bold"),
                    (f"  {names}, chart {self._chart + 1} of {len(CHARTS)}", "dim"),
                )
            ]
        )
        if not self._moments:
            chart.set_lines([])
            facts.set_entries(view.unreadable(self._faults, facts.width))
            return
        width, height = chart.content_size
        chart.set_lines(
            draw(
                view.plot(CHARTS[self._chart], self._moments),
                max(width, 20),
                max(height, 4),
                "NO_COLOR" in os.environ,
            )
        )
        facts.set_entries(
            [*view.unreadable(self._faults, facts.width), *view.table(self._moments, self._base, facts.width)]
        )
        shell_of(self).hints()

    def action_chart(self, by: int) -> None:
        self._chart = (self._chart + by) % len(CHARTS)
        self._draw()

    def action_base(self) -> None:
        self._base = (self._base + 1) % max(len(self._moments), 1)
        self._draw()

    def on_unmount(self) -> None:
        for feed in self._feeds:
            feed.close()

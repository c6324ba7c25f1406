"""The sessions of one task, best first, seeds grouped; Enter opens the best session of a row."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from rlgpt.console import keymap
from rlgpt.console.panes.bars import Bar, Footer
from rlgpt.console.panes.lines import Lines
from rlgpt.console.screens.leaving import Leavable
from rlgpt.console.shell import shell_of
from rlgpt.console.view import leaderboard as view
from rlgpt.console.view.text import line
from rlgpt.store.catalog import Summary


class LeaderboardScreen(Leavable, Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("leaderboard")

    def __init__(self, summaries: list[Summary], task: str) -> None:
        super().__init__()
        self._found, self._ranked = summaries, task

    def compose(self) -> ComposeResult:
        yield Bar(id="leaderboard-title")
        yield Lines(id="ranks", classes="pane")
        yield Footer()

    def on_mount(self) -> None:
        self.query_one(Lines).focus()
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        ranks = self.query_one(Lines)
        ranks.border_title = "Held-out test episodes, best mean first"
        title = line(("rlgpt", "brand"), ("  Leaderboard", "bold"), (f"  {self._ranked}", "accent"))
        self.query_one("#leaderboard-title", Bar).set_lines([title])
        entries = view.entries(self._found, self._ranked, ranks.width)
        ranks.set_entries(entries, [view.header(ranks.width)] if entries[0].selectable else [])
        shell_of(self).hints()

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        shell_of(self).open_session(str(message.entry.fields["session"]))

    def action_other_task(self, by: int) -> None:
        tasks = sorted({s.task for s in self._found if s.task})
        self._ranked = tasks[(tasks.index(self._ranked) + by) % len(tasks)]
        self._draw()

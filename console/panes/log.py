"""The log pane: what happened, from a chosen level on."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from rlgpt.console.keymap import bindings
from rlgpt.console.panes.list_pane import ListPane
from rlgpt.console.view import logs
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry


class LogPane(ListPane):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("log"), *bindings("plan")]
    follow = True
    level = logs.LEVEL

    def entries_of(self, moment: Moment) -> list[Entry]:
        return logs.log_entries(moment, self.width, self.level, self.expanded, self.filter)

    def found(self, moment: Moment) -> str:
        """Of all rows, also those that the pane has no room for."""
        every = logs.log_rows(moment, self.level)
        return f"{len(logs.log_rows(moment, self.level, self.filter))} of {len(every)}"

    def summary(self) -> str:
        return "" if self.level == "debug" else f"{self.level} and above"

    def action_level(self) -> None:
        index = logs.LEVELS.index(self.level)
        self.level = logs.LEVELS[(index + 1) % len(logs.LEVELS)]
        self.redraw()

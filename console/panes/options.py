"""The options pane: what each coded action was used for, how its calls ended and what they led to."""

from __future__ import annotations

from rlgpt.console.panes.lines import Lines
from rlgpt.console.panes.list_pane import ListPane
from rlgpt.console.view import options
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry


class OptionsPane(ListPane):
    def entries_of(self, moment: Moment) -> list[Entry]:
        return options.entries(options.tables(moment), self.width, moment.history.status == "ended")

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        """Entries of this pane cannot be folded."""

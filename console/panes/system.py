"""The system pane: processes, disk, rates."""

from __future__ import annotations

from rlgpt.console.panes.list_pane import ListPane
from rlgpt.console.view import system
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry


class SystemPane(ListPane):
    cursor_shown = False
    filters = False

    def entries_of(self, moment: Moment) -> list[Entry]:
        return system.entries(moment, self.width)

"""The funnel pane: how many episodes reach each sub-action; Enter lists those that are lost there."""

from __future__ import annotations

from rlgpt.console.panes.lines import Lines
from rlgpt.console.panes.list_pane import ListPane
from rlgpt.console.view import funnel
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry


class FunnelPane(ListPane):
    def entries_of(self, moment: Moment) -> list[Entry]:
        return funnel.entries(funnel.funnel(moment), self.width, moment.history.status == "ended")

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        self.post_message(self.Goto("episodes", str(message.entry.fields["item"])))

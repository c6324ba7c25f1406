"""The why pane: tests of the newest PPO run, with the key that may help."""

from __future__ import annotations

from rlgpt.console.keymap import short
from rlgpt.console.panes.lines import Lines
from rlgpt.console.panes.list_pane import ListPane
from rlgpt.console.shell import shell_of
from rlgpt.console.view import why
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry


class WhyPane(ListPane):
    def entries_of(self, moment: Moment) -> list[Entry]:
        own = shell_of(self).user_keys
        keys = {action: short(action, own) for action in why.COMMANDS}
        return why.entries(why.findings(moment), keys, self.width, moment.history.status == "ended")

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        """Entries of this pane cannot be folded."""

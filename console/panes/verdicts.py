"""The verdicts pane: who judged what, and what measuring says."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from rlgpt.console.keymap import bindings
from rlgpt.console.panes.list_pane import ListPane
from rlgpt.console.shell import shell_of
from rlgpt.console.view import verdicts
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry


class VerdictsPane(ListPane):
    BINDINGS: ClassVar[list[BindingType]] = bindings("plan")
    follow = True

    def entries_of(self, moment: Moment) -> list[Entry]:
        return verdicts.entries(moment, self.width, self.expanded, shell_of(self).user_keys)

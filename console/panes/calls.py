"""The calls pane: every call of a language model, its prompt and answer."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from rlgpt.console.keymap import bindings
from rlgpt.console.panes.list_pane import ListPane
from rlgpt.console.view import logs
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry


class CallsPane(ListPane):
    BINDINGS: ClassVar[list[BindingType]] = bindings("plan")
    follow = True

    def entries_of(self, moment: Moment) -> list[Entry]:
        return logs.call_entries(moment, self.width, self.expanded)

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
        return logs.call_entries(moment, self.width, self.expanded, self.filter)

    def found(self, moment: Moment) -> str:
        """Of all calls, also those that the pane has no room for."""
        return f"{len(logs.call_rows(moment, self.filter))} of {len(logs.call_rows(moment))}"

    def yank(self) -> str:
        """The reply, else the prompt. Read when it is asked for: of thousands of calls that took half of a redraw."""
        texts = self.current.fields.get("texts") if self.current else None
        if self.moment is None or not isinstance(texts, list) or not texts:
            return super().yank()
        return self.moment.text(texts[-1]) or ""

"""What every pane of the session screen has: a number, tabs in its title, a moment to show."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from textual.content import Content
from textual.widget import Widget

from rlgpt.console.view.layout import PANES
from rlgpt.console.view.moment import Moment

TITLES = {
    "plan": "Plan",
    "code": "Code",
    "curves": "Curves",
    "verdicts": "Verdicts",
    "world": "World",
    "log": "Log",
    "calls": "Calls",
    "system": "System",
}


class Pane(Widget):
    """A mixin: `show` is called with each moment while the pane is visible, `redraw` when only its look changed."""

    moment: Moment | None = None
    _noted = ""

    def show(self, moment: Moment) -> None:
        self.moment = moment
        self.redraw()

    @abstractmethod
    def redraw(self) -> None:
        """Draw `moment` again, as the pane's own choices are now."""

    def set_tabs(self, slot: tuple[str, ...]) -> None:
        """Write the title: the pane's number and name, then the other panes that share its place."""
        numbers = {name: PANES.index(name) + 1 for name in slot}
        short = sum(len(TITLES[name]) + 5 for name in slot) > max(self.outer_size.width - 6, 10)
        parts: list[Any] = []
        for name in sorted(slot, key=PANES.index):
            text = f"{numbers[name]} {TITLES[name]}"
            parts.append((text, "bold") if name == self.id else (str(numbers[name]) if short else text, "dim"))
            parts.append(" · ")
        self.border_title = Content.assemble(*parts[:-1])

    def note(self, text: str) -> None:
        """A word at the lower border: filter, level, count."""
        if text != self._noted:  # setting it repaints the whole pane
            self._noted = text
            self.border_subtitle = Content(text)

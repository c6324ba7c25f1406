"""The base of every pane of the session screen: a number, tabs in its title, a moment to show."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from rlgpt.console.keymap import pane_key
from rlgpt.console.shell import shell_of
from rlgpt.console.view.layout import PANES
from rlgpt.console.view.moment import Moment

LEAD = 3
"""Cells of the border before the title."""
SEPARATOR = " · "


def title(name: str) -> str:
    return name.capitalize()


class Pane(Widget):
    """A mixin: `show` is called with each moment while the pane is visible, `redraw` when only its look changed."""

    moment: Moment | None = None
    _noted = ""
    _tabs: tuple[tuple[int, int, str], ...] = ()
    """(first cell, cell behind the last, pane) of each tab in the title."""

    class Goto(Message):
        """Another pane should be shown, with what belongs to a sub-action."""

        def __init__(self, name: str, item: str) -> None:
            super().__init__()
            self.name, self.item = name, item

    class Wanted(Message):
        """A tab was clicked: its pane should be shown."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def show(self, moment: Moment) -> None:
        self.moment = moment
        self.redraw()

    @abstractmethod
    def redraw(self) -> None:
        """Draw `moment` again, as the pane's own choices are now."""

    def look_at(self, item: str) -> None:
        """Show what belongs to a sub-action that was selected in another pane; "" for none any more."""

    def set_tabs(self, slot: tuple[str, ...]) -> None:
        """Write the title: the pane's key and name, then the other panes that share its place."""
        if not self.outer_size.width:  # it was hidden until now: its size comes with the next layout
            self.call_after_refresh(self.set_tabs, slot)
            return
        keys = {name: pane_key(name, shell_of(self).user_keys) for name in slot}
        room = max(self.outer_size.width - 6, 10)
        short = sum(len(title(name)) + 5 for name in slot) > room
        between = "·" if short and 4 * len(slot) + len(title(str(self.id))) > room else SEPARATOR
        parts: list[Any] = []
        tabs: list[tuple[int, int, str]] = []
        cell = LEAD
        for name in sorted(slot, key=PANES.index):
            shown = name == self.id
            text = keys[name] if short and not shown else f"{keys[name]} {title(name)}"
            parts += [(text, "bold" if shown else "dim"), between]
            tabs.append((cell, cell + len(text), name))
            cell += len(text) + len(between)
        self._tabs = tuple(tabs)
        self.border_title = Content.assemble(*parts[:-1])

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            for start, stop, name in self._tabs:
                if start <= event.x < stop:
                    self.post_message(self.Wanted(name))

    def note(self, text: str) -> None:
        """A word at the lower border: filter, level, count."""
        if text != self._noted:  # setting it repaints the whole pane
            self._noted = text
            self.border_subtitle = Content(text)

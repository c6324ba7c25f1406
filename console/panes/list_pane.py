"""What the panes that list entries share: folding, the filter, jumping to the time of an entry."""

from __future__ import annotations

from abc import abstractmethod

from textual import events
from textual.message import Message

from rlgpt.console.panes.lines import Lines
from rlgpt.console.panes.pane import Pane
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry


class ListPane(Lines, Pane):
    """A pane whose content is a list of entries made by a pure view."""

    filters = True
    """Whether its entries can be narrowed to some words."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name, classes="pane")
        self.expanded: frozenset[str] = frozenset()

    class Jump(Message):
        """The timeline should move to `seq`."""

        def __init__(self, seq: int) -> None:
            super().__init__()
            self.seq = seq

    @abstractmethod
    def entries_of(self, moment: Moment) -> list[Entry]:
        """What the pane lists, by its view."""

    def redraw(self) -> None:
        if self.moment is None:
            return
        self.set_entries(self.entries_of(self.moment))
        self.note(f"/{self.filter} {self.found(self.moment)}" if self.filter else self.summary())

    def found(self, moment: Moment) -> str:
        """How many entries the filter leaves, of how many."""
        return f"{self.matching} of {self.total}"

    def summary(self) -> str:
        return ""

    def set_filter(self, text: str) -> None:
        super().set_filter(text)
        self.redraw()

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        self.expanded ^= {message.entry.key}
        self.redraw()
        self.reveal()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.redraw()

    def look_at(self, item: str) -> None:
        """The cursor goes to the first entry of the sub-action; where the newest stand at the end, to the last."""
        of_item = [index for index, entry in enumerate(self.entries) if item and entry.fields.get("item") == item]
        if of_item:
            self.move_to(of_item[-1 if self.follow else 0], quietly=True)

    def action_jump_here(self) -> None:
        if self.current and self.current.seq:
            self.post_message(self.Jump(self.current.seq))

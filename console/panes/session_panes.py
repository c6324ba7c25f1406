"""The list panes of the session screen: plan, verdicts, log, calls, system. Each is a view and a few keys."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from rlgpt.console.keymap import bindings
from rlgpt.console.panes.lines import Lines
from rlgpt.console.panes.pane import Pane
from rlgpt.console.view import logs, plan, system, verdicts
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry


class ListPane(Lines, Pane):
    """A pane whose content is a list of entries made by a pure view."""

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
        words = f"/{self.filter} {self.matching} of {self.total}" if self.filter else self.summary()
        self.note(words)

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

    def action_jump_here(self) -> None:
        if self.current and self.current.seq:
            self.post_message(self.Jump(self.current.seq))


class PlanPane(ListPane):
    BINDINGS: ClassVar[list[BindingType]] = bindings("plan")

    def entries_of(self, moment: Moment) -> list[Entry]:
        return plan.entries(moment, self.width, self.expanded)

    def summary(self) -> str:
        waiting = self.moment.history.pending_plan if self.moment else None
        return f"r{waiting.revision} waits: A approve, X reject" if waiting and waiting.status == "waiting" else ""

    @property
    def item(self) -> str:
        """Name of the sub-action under the cursor, or ""."""
        return str(self.current.fields.get("item", "")) if self.current else ""


class VerdictsPane(ListPane):
    BINDINGS: ClassVar[list[BindingType]] = bindings("plan")
    follow = True

    def entries_of(self, moment: Moment) -> list[Entry]:
        return verdicts.entries(moment, self.width, self.expanded)


class LogPane(ListPane):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("log"), *bindings("plan")]
    follow = True
    level = logs.LEVEL

    def entries_of(self, moment: Moment) -> list[Entry]:
        return logs.log_entries(moment, self.width, self.level, self.expanded)

    def summary(self) -> str:
        return "" if self.level == "debug" else f"{self.level} and above"

    def action_level(self) -> None:
        index = logs.LEVELS.index(self.level)
        self.level = logs.LEVELS[(index + 1) % len(logs.LEVELS)]
        self.redraw()


class CallsPane(ListPane):
    BINDINGS: ClassVar[list[BindingType]] = bindings("plan")
    follow = True

    def entries_of(self, moment: Moment) -> list[Entry]:
        return logs.call_entries(moment, self.width, self.expanded)


class SystemPane(ListPane):
    cursor_shown = False

    def entries_of(self, moment: Moment) -> list[Entry]:
        return system.entries(moment, self.width)

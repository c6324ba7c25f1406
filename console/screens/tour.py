"""Shown once, over the first screen: what is where, and the few keys to begin with."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from rlgpt.console import keymap
from rlgpt.console.panes.bars import Bar
from rlgpt.console.screens.leaving import Leavable
from rlgpt.console.shell import LIVE_BELOW, shell_of
from rlgpt.console.view import tour


class TourScreen(Leavable, ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("tour")

    def __init__(self) -> None:
        super().__init__(classes=LIVE_BELOW)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="tour") as box:
            box.border_title = "Welcome to rlgpt"
            box.border_subtitle = "any key closes this; it is not shown again"
            yield Bar(id="tour-text")

    def on_mount(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        bar = self.query_one(Bar)
        width = max(min(78, int(self.app.size.width * 0.94)) - 6, 20)
        lines = tour.lines(width, shell_of(self).user_keys)
        bar.styles.height = len(lines)
        bar.set_lines(lines)

    def on_key(self, event: events.Key) -> None:
        """Any other key closes the tour and does what it does without it."""
        if event.key not in {key for binding in keymap.of("tour") for key in binding.keys.split(",")}:
            event.stop()
            self.dismiss(None)
            self.app.call_later(self.app.simulate_key, event.key)

    def on_click(self) -> None:
        self.dismiss(None)

    def action_close(self) -> None:
        self.dismiss(None)

"""Dialogs of the curves pane: which series of a chart are drawn, and what is drawn over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from rlgpt.console import keymap
from rlgpt.console.content import safe_content
from rlgpt.console.panes.lines import Lines
from rlgpt.console.screens.leaving import Leavable
from rlgpt.console.shell import shell_of
from rlgpt.console.view.text import Entry, line


class SeriesPicker(Leavable, ModalScreen[frozenset[str]]):
    """Returns the names of the series to draw; none for the usual ones."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("series")

    def __init__(self, title: str, names: Sequence[tuple[str, str]], chosen: frozenset[str]) -> None:
        """`names`: (name, style) of each series."""
        super().__init__()
        self._title, self._names, self._chosen = title, names, chosen

    def compose(self) -> ComposeResult:
        keys = shell_of(self).user_keys
        words = (("toggle", "shows or hides"), ("usual", "the largest"), ("done", "draws them"))
        hints = [f"{keymap.spelt(f'series.{name}', keys)} {what}" for name, what in words]
        with Vertical(classes="dialog", id="picker") as box:
            box.border_title = safe_content(f"Series of {self._title}")
            box.border_subtitle = ", ".join(["enter this one alone", *hints])
            yield Lines(id="series")

    def on_mount(self) -> None:
        self.query_one(Lines).focus()
        self._draw()

    def _draw(self) -> None:
        entries = [
            Entry(
                name,
                (
                    line(
                        ("■ " if name in self._chosen else "□ ", style),
                        (name, "bold" if name in self._chosen else "dim"),
                    ),
                ),
                search=name,
                yank=name,
            )
            for name, style in self._names
        ]
        self.query_one(Lines).set_entries(entries)

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        self.dismiss(frozenset({message.entry.key}))

    def action_mark(self) -> None:
        current = self.query_one(Lines).current
        if current:
            self._chosen ^= {current.key}
            self._draw()
            self.query_one(Lines).action_cursor_down()

    def action_usual(self) -> None:
        self.dismiss(frozenset())

    def action_done(self) -> None:
        self.dismiss(self._chosen)


class OverlayPicker(Leavable, ModalScreen[str]):
    """Returns the key of what to draw over the curves: `none`, `iteration:SUB_TASK:NUMBER`, or a session's id."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("overlay")

    def __init__(self, offers: Sequence[tuple[str, str, str]]) -> None:
        """`offers`: (key, name, what it is)."""
        super().__init__()
        self._offers = offers

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="picker") as box:
            box.border_title = "Draw over these curves"
            leave = keymap.spelt("overlay.close", shell_of(self).user_keys)
            box.border_subtitle = f"enter chooses, {leave} leaves it as it is"
            yield Lines(id="offers")

    def on_mount(self) -> None:
        rows = self.query_one(Lines)
        rows.focus()
        entries = [
            Entry(
                key, (line((name, "bold"), (f"  {what}" if what else "", "dim")),), search=f"{name} {what}", yank=name
            )
            for key, name, what in self._offers
        ]
        rows.set_entries(entries)

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        self.dismiss(message.entry.key)

    def action_close(self) -> None:
        self.dismiss(None)

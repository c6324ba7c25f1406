"""The inbox, over any screen: the sessions that wait for the operator; Enter opens one."""

from __future__ import annotations

import contextlib
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from rlgpt.console import keymap
from rlgpt.console.all_sessions import AllSessions
from rlgpt.console.panes.lines import Lines
from rlgpt.console.screens.leaving import Leavable
from rlgpt.console.shell import shell_of
from rlgpt.console.view import waiting
from rlgpt.console.view.text import Entry, line
from rlgpt.store.catalog import Summary
from rlgpt.store.errors import StoreError

READ = 2.0
"""Seconds between two readings."""
STORE_PATIENCE = 3.0
"""Seconds to wait for the team's store."""


class InboxScreen(Leavable, ModalScreen[str]):
    """Returns the id of the session to open."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("inbox")

    def __init__(self) -> None:
        super().__init__()
        self._reading, self._fault = False, ""
        self._all_sessions = AllSessions(STORE_PATIENCE)

    def compose(self) -> ComposeResult:
        keys = shell_of(self).user_keys
        with Vertical(classes="dialog", id="inbox") as box:
            box.border_title = "Waiting for you"
            box.border_subtitle = f"enter opens, {keymap.spelt('inbox.close', keys)} closes"
            yield Lines(id="needs")

    def on_mount(self) -> None:
        rows = self.query_one(Lines)
        rows.set_entries([Entry("note", (line(("reading …", "dim")),), selectable=False)])
        rows.focus()
        self._read_again()
        self.set_interval(READ, self._read_again)

    def _read_again(self) -> None:
        if not self._reading:
            self._reading = True
            self.run_worker(self._read, thread=True, exit_on_error=False)

    def on_unmount(self) -> None:
        if not self._reading:
            self._all_sessions.close()

    def _read(self) -> None:
        summaries: list[Summary] | None = None
        try:
            summaries, fault = self._all_sessions.read(), self._all_sessions.fault
        except (StoreError, OSError) as error:
            fault = str(error)
        with contextlib.suppress(RuntimeError):  # the console was left meanwhile
            self.app.call_from_thread(self._take, summaries, fault)

    def _take(self, summaries: list[Summary] | None, fault: str) -> None:
        self._reading = False
        if self.is_left:
            self._all_sessions.close()
            return
        if fault and fault != self._fault:  # once, not at every reading
            shell_of(self).tell(fault, "error")
        self._fault = fault
        if summaries is None:
            return
        rows = self.query_one(Lines)
        rows.set_entries(waiting.entries(summaries, shell_of(self).clock(), rows.width))

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        self.dismiss(message.entry.key)

    def action_close(self) -> None:
        self.dismiss(None)

"""A new session from a point of an old one."""

from __future__ import annotations

from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Label, Static

from rlgpt.console import launch
from rlgpt.console.content import safe_content
from rlgpt.console.panes.check import Check
from rlgpt.console.screens.dialogs import Form
from rlgpt.console.shell import shell_of


class ForkDialog(Form[None]):
    """Copies the history up to the last complete phase before `seq` (None: the end) and opens the new session."""

    AUTO_FOCUS = "#name"

    def __init__(self, ident: str, seq: int | None) -> None:
        super().__init__()
        self._ident, self._seq = ident, seq
        self._forking = False

    def compose(self) -> ComposeResult:
        where = f"before row {self._seq:,}" if self._seq else "at its end"
        with Vertical(classes="dialog") as box:
            box.border_title = "Fork"
            box.border_subtitle = self.keys(verb="forks")
            text = (
                f"A new session starts from the last complete phase {where}: history, checkpoint and skills are copied."
            )
            yield Static(text, classes="hint")
            yield Label("Name (empty: the parent's, with -fork)", classes="label")
            yield Input(id="name", compact=True)
            yield Label("Settings to change, such as loop.iterations=5 budget.cost=2", classes="label")
            yield Input(id="settings", compact=True)
            yield Check("start its worker at once", value=True, id="start", compact=True)
            yield Static("Without a worker it waits: send it an override first, then resume it.", classes="hint")
            yield Static("", classes="fault", id="fault")

    def on_input_submitted(self) -> None:
        self.action_send()

    def action_send(self) -> None:
        if self._forking:
            return
        self._forking = True
        words = ["fork", self._ident]
        if self._seq:
            words += ["--at", str(self._seq)]
        if name := self.query_one("#name", Input).value.strip():
            words += ["--name", name]
        for setting in self.query_one("#settings", Input).value.split():
            words += ["--set", setting]
        words.append("--detach" if self.query_one("#start", Check).value else "--no-start")
        self.query_one("#fault", Static).update("forking …")
        launch.run(shell_of(self), *words, then=self._take_fork, failed=self._failed)

    def action_leave(self) -> None:
        """Without a question once what was typed is on its way."""
        if self._forking:
            self.dismiss(None)
        else:
            super().action_leave()

    def _failed(self, sentence: str) -> None:
        self._forking = False
        if self.is_left:
            shell_of(self).tell(f"no fork of {self._ident} was made: {sentence}", "error")
            return
        self.query_one("#fault", Static).update(safe_content(sentence))

    def _take_fork(self, answer: dict[str, Any]) -> None:
        app, was_left = shell_of(self), self.is_left
        self.dismiss(None)
        app.tell(f"{answer['id']} forked after row {answer['seq']}")
        if not was_left:
            app.open_session(str(answer["id"]))

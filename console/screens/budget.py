"""Changing one budget of a running session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Label, Select, Static

from rlgpt.console.screens.dialogs import Form
from rlgpt.console.view.numbers import count, typed
from rlgpt.store.commands import MOST_BUDGET

NAMES = {
    "env_steps": "env steps (trials and training)",
    "cost": "cost in USD",
    "tokens": "tokens",
    "hours": "hours of active time",
}
WHOLE = ("env_steps", "tokens")


def already_spent(name: str, spent: float, limit: float) -> str:
    """The question before a limit is sent that is no more than what is spent."""
    shown, most = (count(value) if name in WHOLE else f"{value:,.2f}" for value in (spent, limit))
    return f"{shown} {NAMES[name]} are spent: with a budget of {most} the session ends."


class BudgetDialog(Form[tuple[str, float | None]]):
    """Returns (name, value); None for the value lifts the limit."""

    AUTO_FOCUS = "#value"

    def __init__(self, limits: Mapping[str, Any], obstacle: Callable[[], str] | None = None) -> None:
        super().__init__(obstacle)
        self._limits = limits

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = "Budget"
            box.border_subtitle = self.keys("enter")
            yield Select(
                [(words, name) for name, words in NAMES.items()],
                value="env_steps",
                allow_blank=False,
                id="name",
                compact=True,
            )
            yield Label("New limit over the whole session; “none” lifts it", classes="label")
            yield Input(id="value", compact=True)
            yield Static("", classes="fault", id="fault")

    def on_select_changed(self, event: Select.Changed) -> None:
        """Shows the limit that stands; only what differs from it counts as typed."""
        value = self._limits.get(str(event.value))
        field = self.query_one("#value", Input)
        field.value = "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        field.select_all()  # so that a number that is typed takes its place
        self._untouched = self.typed()

    def on_input_submitted(self) -> None:
        self.action_send()

    def action_send(self) -> None:
        name = str(self.query_one("#name", Select).value)
        text = self.query_one("#value", Input).value.strip().lower()
        try:
            value = None if text == "none" else typed(text)
        except ValueError:
            self.query_one("#fault", Static).update("A number, or the word none for no limit.")
            return
        if value is not None and not 0 <= value < MOST_BUDGET:
            self.query_one("#fault", Static).update(f"A budget is a number from 0 to less than {MOST_BUDGET:,}.")
            return
        if value is not None and name in WHOLE:
            if not value.is_integer():
                self.query_one("#fault", Static).update("A whole number, or the word none for no limit.")
                return
            value = int(value)
        if value == self._limits.get(name):
            self.query_one("#fault", Static).update("That is its limit already.")
            return
        self.answer((name, value))

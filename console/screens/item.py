"""One sub-action's fields, for editing or for a new one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Input, Label, Select, Static

from rlgpt.console.content import safe_content
from rlgpt.console.sanitise import clean
from rlgpt.console.screens.dialogs import Form
from rlgpt.store.history import Item
from rlgpt.store.plan_edits import MOST_STEPS, NAME

FIELDS = (
    ("name", "Name", "lower-case letters, digits and _"),
    ("goal", "Goal", "what it shall reach; if it changes, code is written anew"),
    ("done_when", "Done when", "a Python expression over start and view"),
    ("trigger", "Runs when (guard), tried when (option)", "an expression over start and view; empty for a step"),
    ("reason", "Reason", "why code, or why RL"),
    ("max_steps", "Env steps", "at most, in one trial; 1 to 2000"),
)
MODES = [
    ("code: a coded action", "code"),
    ("rl: learnt with PPO", "rl"),
    ("option: code that only the policy calls", "option"),
]


class ItemDialog(Form[dict[str, Any]]):
    """Returns the changed fields (`rename` for the name), None when it was left."""

    AUTO_FOCUS = ""

    def __init__(self, item: Item | None, refusal: Callable[[dict[str, Any]], str]) -> None:
        """`refusal` tells why the plan cannot take an answer; empty if it can."""
        super().__init__()
        self._item, self._refusal = item, refusal

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#goal" if self._item else "#name").focus()

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog") as box:
            box.border_title = safe_content(f"Sub-action {self._item.name}") if self._item else "New sub-action"
            box.border_subtitle = f"tab next field, {self.keys(verb='keeps')}"
            yield Label("Mode", classes="label")
            mode = self._item.mode if self._item else "code"
            yield Select(
                MODES,
                value=mode,
                allow_blank=False,
                id="mode",
                compact=True,
            )
            for name, label, hint in FIELDS:
                yield Label(label, classes="label")
                value = str(self._shown(name)) if self._item else {"max_steps": "100"}.get(name, "")
                yield Input(value, placeholder=hint, id=name, compact=True)
            yield Static("", classes="fault", id="fault")

    def _shown(self, name: str) -> Any:
        """A field as it is shown and edited: Textual's input hands what a model wrote to the terminal as it is."""
        value = getattr(self._item, name)
        return clean(value) if isinstance(value, str) else value

    def typed(self) -> Sequence[str]:
        return [*super().typed(), str(self.query_one("#mode", Select).value)]

    def on_input_submitted(self) -> None:
        self.action_send()

    def action_send(self) -> None:
        values: dict[str, Any] = {name: self.query_one(f"#{name}", Input).value.strip() for name, _, _ in FIELDS}
        values["mode"] = str(self.query_one("#mode", Select).value)
        fault = _fault(values)
        if fault:
            self.query_one("#fault", Static).update(safe_content(fault))
            return
        values["max_steps"] = int(values["max_steps"])
        values["rename"] = values.pop("name")
        if self._item is not None:
            old = {k: self._shown("name" if k == "rename" else k) for k in values}
            values = {k: v for k, v in values.items() if v != old[k]}
        if values and (fault := self._refusal(values)):
            self.query_one("#fault", Static).update(safe_content(fault))
            return
        self.dismiss(values or None)


def _fault(values: dict[str, Any]) -> str:
    if not NAME.match(values["name"]):
        return "The name has lower-case letters, digits and _, at most 40, a letter first."
    if not values["goal"] or not values["done_when"]:
        return "A sub-action needs a goal and a predicate that tells when it is done."
    if values["trigger"] and values["mode"] == "rl":
        return "What runs when a predicate holds is a guard, and a guard is code."
    if values["mode"] == "option" and not values["trigger"]:
        return "An option is tried from where a predicate holds: say which."
    digits = values["max_steps"]  # of any script: int() refuses a superscript, and thousands of digits
    if not (digits.isdecimal() and len(digits) < 10 and 1 <= int(digits) <= MOST_STEPS):
        return f"The env steps of a trial are a whole number from 1 to {MOST_STEPS}."
    return ""

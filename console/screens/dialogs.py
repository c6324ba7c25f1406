"""Small questions: yes or no, one line of text, several lines of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Input, Select, Static, TextArea

from rlgpt.console.content import safe_content
from rlgpt.console.keymap import bindings, spelt
from rlgpt.console.screens.leaving import Leavable
from rlgpt.console.shell import shell_of

LOOK = 0.5
"""Seconds between two looks at whether what a dialog would send is still wanted."""


class Confirm(Leavable, ModalScreen[bool]):
    """A yes-or-no question about an action that cannot be undone."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("confirm")

    def __init__(self, title: str, question: str, yes: str) -> None:
        super().__init__()
        self._heading, self._question, self._yes = title, question, yes

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = safe_content(self._heading)
            yield Static(safe_content(self._question))
            with Horizontal(classes="buttons"):
                keys = shell_of(self).user_keys
                yield Button(f"No ({spelt('confirm.no', keys)})", id="no")
                yield Button(f"{self._yes} ({spelt('confirm.yes', keys)})", variant="error", id="yes")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


Answer = TypeVar("Answer")


class Form(Leavable, ModalScreen[Answer | None]):
    """Fields to fill in; returns None when it was left, after a question if something was typed."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("form", "fields")
    _untouched: Sequence[str] = ()

    def __init__(
        self, obstacle: Callable[[], str] | None = None, sends: Callable[[Answer], bool] | None = None
    ) -> None:
        """`obstacle` says why what the dialog would send has come too late; "" while it has not.
        `sends` sends the answer: while it cannot, the dialog stays with what was typed."""
        super().__init__()
        self._obstacle, self._sends = obstacle, sends

    def on_mount(self) -> None:
        self._untouched = self.typed()
        if self._obstacle is not None:
            self._dialog_title = str(self.query_one(".dialog").border_title or "")
            self.set_interval(LOOK, self._tell_obstacle)

    def _tell_obstacle(self) -> None:
        """The answer may come from elsewhere, or the session may end, while somebody types."""
        why = self._obstacle() if self._obstacle is not None else ""
        box = self.query_one(".dialog")
        box.border_title = safe_content(f"{self._dialog_title}: {why}" if why else self._dialog_title)
        box.set_class(bool(why), "late")

    def answer(self, answer: Answer) -> None:
        """Return it; where it has come too late, say so and keep what was typed."""
        if self._obstacle is not None and (why := self._obstacle()):
            shell_of(self).tell(f"not sent: {why}", "warning")
        elif self._sends is None or self._sends(answer):
            self.dismiss(answer)

    def typed(self) -> Sequence[str]:
        """The text of all fields."""
        lines = [field.value for field in self.query(Input)]
        return lines + [field.text for field in self.query(TextArea)]

    def keys(self, send: str = "", verb: str = "sends") -> str:
        """What the dialog's lower border says."""
        own = shell_of(self).user_keys
        return f"{send or spelt('form.send', own)} {verb}, {spelt('form.leave', own)} leaves"

    def action_leave(self) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self.dismiss(None)

        if self.typed() == self._untouched:
            self.dismiss(None)
        else:
            self.app.push_screen(Confirm("Leave", "What you typed was not sent.", "Drop it"), answered)


class Ask(Form[str]):
    """One line, or several with `long`."""

    def __init__(
        self,
        title: str,
        hint: str = "",
        value: str = "",
        *,
        long: bool = False,
        obstacle: Callable[[], str] | None = None,
        sends: Callable[[str], bool] | None = None,
    ) -> None:
        super().__init__(obstacle, sends)
        self._heading, self._hint, self._value, self._long = title, hint, value, long

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = safe_content(self._heading)
            box.border_subtitle = self.keys() if self._long else self.keys("enter")
            if self._hint:
                yield Static(safe_content(self._hint), classes="hint")
            if self._long:
                area = TextArea(self._value, id="text")
                area.styles.height = 8
                yield area
            else:
                yield Input(self._value, id="text", compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.answer(event.value)

    def action_send(self) -> None:
        widget = self.query_one("#text")
        self.answer(widget.text if isinstance(widget, TextArea) else self.query_one(Input).value)

    def typed(self) -> Sequence[str]:
        return super().typed() if self._long else ()


class Advise(Form[tuple[str, str]]):
    """Advice to one agent: (agent, text)."""

    AUTO_FOCUS = "#text"
    AGENTS = ("slow", "fast", "critic", "planner")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = "Advice"
            box.border_subtitle = self.keys()
            yield Static("It stands word for word in the agent's next prompt.", classes="hint")
            yield Select(
                [(f"{a} agent" if a in ("slow", "fast") else a, a) for a in self.AGENTS],
                value="slow",
                allow_blank=False,
                id="agent",
                compact=True,
            )
            area = TextArea(id="text")
            area.styles.height = 7
            yield area

    def action_send(self) -> None:
        text = self.query_one("#text", TextArea).text.strip()
        if text:
            self.answer((str(self.query_one("#agent", Select).value), text))
        else:
            self.query_one(".hint", Static).update("Say what the agent is to know.")


class FilterInput(Input):
    """The line that `/` opens below a list: Enter keeps the filter, Escape clears it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("filter")

    def __init__(self) -> None:
        super().__init__(id="filter")

    def on_mount(self) -> None:
        clear = spelt("filter.clear", shell_of(self).user_keys)
        self.placeholder = f"words to look for; enter keeps, {clear} clears"
        self.watch(self.screen, "focused", self._close_behind, init=False)

    def _close_behind(self, focused: Widget | None) -> None:
        """Left with the mouse or Tab: what was typed stays in force, as after Enter. Without any focus it is the
        terminal's window that was left."""
        if focused not in (self, None):
            self.remove_class("-open")

    def action_clear_filter(self) -> None:
        self.value = ""
        self.post_message(self.Submitted(self, ""))

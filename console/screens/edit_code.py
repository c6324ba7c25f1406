"""Editing a coded action, or writing a reward, with the action host's admission before anything is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Select, Static, TextArea

from rlgpt.console import launch
from rlgpt.console.app import ConsoleApp, safe_content
from rlgpt.console.panes.code import CodePane
from rlgpt.console.sanitise import clean_lines

if TYPE_CHECKING:
    from rlgpt.console.screens.session import SessionScreen

REWARD = 'def reward(before, view):\n    """Added at every env step, clipped to [-1, 1]."""\n    return 0.0\n'


class EditCodeScreen(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave"),
        Binding("f7", "check", "check"),
        Binding("ctrl+s", "send('now')", "send now"),
        Binding("ctrl+t", "send('next')", "send for the next iteration"),
    ]

    def __init__(self, session: SessionScreen) -> None:
        super().__init__()
        self._session = session
        pane = session.query_one(CodePane)
        shown = pane.shown
        self._sub_action = shown.sub_action if shown else ""
        moment = session.moment
        source = moment.text(shown.source_hash) if moment and shown else ""
        self._source = "\n".join(clean_lines(source or "", most=2_000))

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="editor") as box:
            box.border_title = safe_content(f"Edit {self._sub_action}")
            box.border_subtitle = "f7 checks, ctrl+s sends now, ctrl+t for the next iteration, esc leaves"
            yield Select(
                [(safe_content(f"coded action {self._sub_action}"), "code"), ("reward function", "reward")],
                value="code",
                allow_blank=False,
                id="what",
                compact=True,
            )
            yield TextArea(self._source, language="python", show_line_numbers=True, tab_behavior="indent", id="text")
            yield Static("f7 asks the action host whether this may run.", id="admission", classes="hint")
            with Horizontal(classes="buttons"):
                yield Button("Check (f7)", id="check")
                yield Button("Send now (ctrl+s)", variant="primary", id="now")

    @property
    def console_app(self) -> ConsoleApp:
        assert isinstance(self.app, ConsoleApp)
        return self.app

    @property
    def _what(self) -> str:
        return str(self.query_one("#what", Select).value)

    def on_mount(self) -> None:
        self.query_one("#text").focus()

    def on_select_changed(self, event: Select.Changed) -> None:
        area = self.query_one("#text", TextArea)
        if event.value == "reward" and area.text == self._source:
            area.text = REWARD
        elif event.value == "code" and area.text == REWARD:
            area.text = self._source

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "check":
            self.action_check()
        else:
            self.action_send("now")

    def action_check(self) -> None:
        self._ask(then=self._shown)

    def _ask(self, then: Any) -> None:
        moment = self._session.moment
        if moment is None:
            return
        session = moment.history.session
        self.query_one("#admission", Static).update("asking the action host …")
        given = {
            "kind": "action" if self._what == "code" else "reward",
            "source": self.query_one("#text", TextArea).text,
            "task": session["task"],
            "seed": session["settings"].get("seed", 0),
        }
        launch.run(
            self.console_app,
            "training.questions",
            "admit",
            "--world",
            str(session["world"]),
            given=given,
            then=then,
            failed=self._failed,
        )

    def _failed(self, sentence: str) -> None:
        self.query_one("#admission", Static).update(safe_content(f"the check itself failed: {sentence}"))

    def _shown(self, answer: dict[str, Any]) -> None:
        box = self.query_one("#admission", Static)
        box.set_class(not answer["ok"], "fault")
        if answer["ok"]:
            box.update("admitted: this may run")
            return
        line = int(answer.get("line") or 0)
        box.update(safe_content(f"not admitted ({answer.get('rule')}), line {line}: {answer.get('message')}"))
        if line > 0:
            area = self.query_one("#text", TextArea)
            area.move_cursor((min(line, area.document.line_count) - 1, 0), center=True)

    def action_send(self, when: str) -> None:
        def then(answer: dict[str, Any]) -> None:
            self._shown(answer)
            if answer["ok"]:
                self._send(when)

        self._ask(then)

    def _send(self, when: str) -> None:
        source = self.query_one("#text", TextArea).text
        if self._what == "code":
            done = self._session.send("edit_code", {"sub_action": self._sub_action, "source": source, "apply": when})
        else:
            done = self._session.send("edit_reward", {"source": source, "apply": when})
        if done:
            self.dismiss(None)

    def action_leave(self) -> None:
        self.dismiss(None)

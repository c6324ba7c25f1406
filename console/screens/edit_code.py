"""Editing a coded action, or writing a reward, with the action host's admission before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, ClassVar

from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Select, Static, TextArea

from rlgpt.console import editor, keymap
from rlgpt.console.checker import Checker
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.content import safe_content
from rlgpt.console.panes.code_area import CodeArea
from rlgpt.console.sanitise import clean_text
from rlgpt.console.screens.leaving import Leavable
from rlgpt.console.screens.sender import Sender
from rlgpt.console.shell import shell_of
from rlgpt.store.history import Attempt
from rlgpt.store.row_types import SessionRow, tell_refusal

REWARD = 'def reward(before, view):\n    """Added at every env step, clipped to [-1, 1]."""\n    return 0.0\n'


class EditCodeScreen(Leavable, ModalScreen[None]):
    AUTO_FOCUS = "#text"
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("editor")

    def __init__(self, session: Sender, shown: Attempt | None) -> None:
        super().__init__()
        self._session = session
        self._sub_action = shown.sub_action if shown else ""
        moment = session.moment
        source = moment.text(shown.source_hash) if moment and shown else ""
        self._checker: Future[Checker] = Future()
        self._checked_text = ("", "")
        """(what, text) of the last check."""
        self._source = clean_text(source or "")  # whole: a mark where it was cut would be sent as code

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="editor") as box:
            box.border_title = safe_content(f"Edit {self._sub_action}")
            box.border_subtitle = (
                f"{self._key('check')} checks, {self._key('own_editor')} your editor, {self._key('send')} sends, "
                f"{self._key('send_next')} next iteration, {self._key('leave')} leaves"
            )
            yield Select(
                [(safe_content(f"coded action {self._sub_action}"), "code"), ("reward function", "reward")],
                value="code",
                allow_blank=False,
                id="what",
                compact=True,
            )
            yield CodeArea(self._source, show_line_numbers=True, tab_behavior="indent", id="text")
            yield Static(self._unchecked, id="admission", classes="hint")
            with Horizontal(classes="buttons"):
                yield Button(f"Check ({self._key('check')})", id="check")
                send = keymap.spelt("editor.send", shell_of(self).user_keys)
                yield Button(f"Send now ({send})", variant="primary", id="now")

    def _key(self, verb: str) -> str:
        return keymap.short(f"editor.{verb}", shell_of(self).user_keys)

    @property
    def _unchecked(self) -> str:
        return f"{self._key('check')} asks the action host whether this may run."

    @property
    def _what(self) -> str:
        return str(self.query_one("#what", Select).value)

    def on_mount(self) -> None:
        self._in_thread(self._make_ready)

    def _make_ready(self) -> None:
        """Start the checker now, so that its imports are done while the person reads and edits the text."""
        try:
            self._checker.set_result(Checker(str(self._session.session["world"])))
        except OSError as error:
            self._checker.set_exception(Failure(str(error), Exit.ERROR))
        else:
            self._checker.result().ask(*self._question("action", self._source))

    def on_unmount(self) -> None:
        self._checker.add_done_callback(lambda made: None if made.exception() else made.result().close())

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

    @property
    def _text(self) -> str:
        return self.query_one("#text", TextArea).text

    def on_text_area_changed(self) -> None:
        """Remove the result of the last check, which was about another text."""
        if (self._what, self._text) != self._checked_text:
            box = self.query_one("#admission", Static)
            box.remove_class("fault")
            box.update(self._unchecked)

    def action_check(self) -> None:
        self._ask(lambda _: None)

    def action_send(self, when: str) -> None:
        self._ask(lambda source: self._send(source, when))

    def _ask(self, admitted: Callable[[str], None]) -> None:
        """Ask the action host; `admitted` gets the text, if it may run and is still the text in the editor."""
        checked = self._checked_text = (self._what, self._text)
        self._say("asking the action host …")
        question = self._question("action" if checked[0] == "code" else "reward", checked[1])

        def then(answer: dict[str, Any]) -> None:
            if self.is_left or (self._what, self._text) != checked:
                return
            self._show(answer)
            if answer["ok"]:
                admitted(checked[1])

        def ask() -> None:
            try:
                answer = self._checker.result().ask(*question)
            except Failure as error:
                self.app.call_from_thread(self._say, f"the check itself failed: {error}", fault=True)
            else:
                self.app.call_from_thread(then, answer)

        self._in_thread(ask)

    def _question(self, kind: str, source: str) -> tuple[str, str, SessionRow]:
        return kind, source, self._session.session

    def _in_thread(self, work: Callable[[], object]) -> None:
        self.run_worker(work, thread=True, exit_on_error=False)

    def _say(self, sentence: str, *, fault: bool = False) -> None:
        if not self.is_left:
            box = self.query_one("#admission", Static)
            box.set_class(fault, "fault")
            box.update(safe_content(sentence))

    def _show(self, answer: dict[str, Any]) -> None:
        if answer["ok"]:
            self._say("admitted: this may run")
            return
        line = int(answer.get("line") or 0)
        sentence = tell_refusal(str(answer.get("rule")), line, str(answer.get("message")))
        self._say(f"not admitted, {sentence}", fault=True)
        if line > 0:
            area = self.query_one("#text", TextArea)
            area.move_cursor((min(line, area.document.line_count) - 1, 0), center=True)

    def _send(self, source: str, when: str) -> None:
        kind, about = ("edit_code", {"sub_action": self._sub_action}) if self._what == "code" else ("edit_reward", {})
        moment = self._session.moment
        seen = moment.history.revision if moment else 0  # a worker tells by it which iteration is the next
        if self._session.send(kind, {**about, "source": source, "apply": when}, seen or None):
            self.dismiss(None)

    def action_own_editor(self) -> None:
        """The text in $VISUAL or $EDITOR, with the terminal handed over to it; what it saves is taken back."""
        area = self.query_one("#text", TextArea)
        try:
            with self.app.suspend():
                edited = editor.edit(area.text, ".py")
        except SuspendNotSupported:
            shell_of(self).tell("there is no terminal here to hand to your editor", "warning")
        except OSError as error:
            shell_of(self).tell(f"your editor could not be started: {error}", "error")
        else:
            area.text = clean_text(edited)

    def action_leave(self) -> None:
        """Leave, after a question if the text was changed."""
        from rlgpt.console.screens.dialogs import Confirm

        what = self.query_one("#what", Select)
        if what.expanded:
            what.expanded = False
            return
        if self.query_one("#text", TextArea).text in (self._source, REWARD):
            self.dismiss(None)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.dismiss(None)

        self.app.push_screen(Confirm("Leave the editor", "What you changed was not sent.", "Drop it"), answered)

"""The operator as the critic: success or not, why, and advice for the agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Input, Label, Select, Static

from rlgpt.console.content import safe_content
from rlgpt.console.screens.dialogs import Form
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.words import judged


class VerdictDialog(Form[dict[str, Any]]):
    """Returns the payload of a `verdict` command."""

    AUTO_FOCUS = "#success"

    def __init__(
        self,
        moment: Moment,
        obstacle: Callable[[], str] | None = None,
        sends: Callable[[dict[str, Any]], bool] | None = None,
    ) -> None:
        super().__init__(obstacle, sends)
        h = moment.history
        plan = h.pending_plan or h.plan
        items = plan.items if plan else ()
        self._versions = {item.name: tried[-1].version for item in items if (tried := h.attempts_of(item.name))}
        names = list(self._versions)
        self._choices = [("the iteration", ""), *((name, name) for name in names)]
        about = judged(h.waiting_for)
        self._first = about if about in names else ""

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog") as box:
            box.border_title = "Your verdict"
            box.border_subtitle = self.keys()
            yield Label("About", classes="label")
            yield Select(
                [(safe_content(a), b) for a, b in self._choices],
                value=self._first,
                allow_blank=False,
                id="about",
                compact=True,
            )
            yield Label("It", classes="label")
            yield Select([("failed", "no"), ("succeeded", "yes")], prompt="choose", id="success", compact=True)
            for name, label in (
                ("cause", "Why"),
                ("advice_slow", "Advice to the slow agent"),
                ("advice_fast", "Advice to the fast agent"),
            ):
                yield Label(label, classes="label")
                yield Input(id=name, compact=True)
            yield Static("", classes="fault", id="fault")

    def action_send(self) -> None:
        success = self.query_one("#success", Select).value
        if success not in ("yes", "no"):
            self.query_one("#fault", Static).update("Say whether it failed or succeeded.")
            self.query_one("#success").focus()
            return
        cause = self.query_one("#cause", Input).value.strip()
        if not cause:
            self.query_one("#fault", Static).update("Say why: the agents read it.")
            self.query_one("#cause").focus()
            return
        about = str(self.query_one("#about", Select).value)
        payload: dict[str, Any] = {"success": success == "yes", "cause": cause}
        for name in ("advice_slow", "advice_fast"):
            payload[name] = self.query_one(f"#{name}", Input).value.strip()
        if about:
            payload |= {"sub_action": about, "version": self._versions[about]}
        self.answer(payload)

    def on_input_submitted(self) -> None:
        """Enter goes on to the next field: a verdict cannot be taken back."""
        self.focus_next()

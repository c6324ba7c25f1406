"""What the operator tells a session: every command as an action of the session screen, sent through the inbox."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import events
from textual.screen import Screen
from textual.widgets import Input

from rlgpt.console import keymap, launch
from rlgpt.console.shell import shell_of
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.words import wanted
from rlgpt.store.errors import StoreError

if TYPE_CHECKING:
    from rlgpt.console.screens.session import SessionScreen

    _Base = Screen[None]
else:
    _Base = object

COMMANDS = (
    "approve",
    "reject",
    "verdict",
    "override",
    "edit_code",
    "advise",
    "pause",
    "stop_training",
    "stop",
    "budget",
    "resume_worker",
)


AT_ONCE = ("pause", "stop_training", "stop")
"""Commands to the worker that runs now; the others may wait in the inbox for the next one."""


class Commands(_Base):
    """A mixin of the session screen."""

    moment: Moment | None
    folder: Path
    read_only: bool
    sent: dict[str, str]
    """Id -> words of the commands sent from this console."""
    starting = False
    """A worker was asked for and none is there yet."""

    @property
    def _session(self) -> SessionScreen:
        return self  # type: ignore[return-value]

    def allowed(self, action: str) -> bool | None:
        """Whether a command makes sense at this moment; None for what is no command."""
        return None if action not in COMMANDS else not self._why_not(action)

    def _why_not(self, action: str) -> str:
        """Why a command makes no sense at this moment; "" when it does."""
        m = self.moment
        if self.read_only:
            return "this console is read-only"
        if m is None:
            return "the session is still being read"
        h = m.history
        if not m.live:
            return "the cursor is in the past; l brings it back to the end"
        if action == "resume_worker":
            over = h.result in ("succeeded", "finished")
            if self.starting:
                return "a worker is being started"
            return "a worker runs this session" if m.worker.alive else f"the session has {h.result}" if over else ""
        if h.status == "ended":
            return "the session has ended"
        if action in AT_ONCE and not m.worker.alive:
            return "no worker runs this session; R starts one"
        pending = h.pending_plan
        tried = any(attempt.trial for attempt in h.attempts)
        waits = pending is not None and pending.status == "waiting"
        lacking = {
            "approve": "" if waits else "no plan waits for approval",
            "reject": "" if waits else "no plan waits for approval",
            "verdict": "" if wanted(h.waiting_for) == "verdict" or tried else "there is nothing to judge yet",
            "override": "" if h.plans else "there is no plan yet",
            "edit_code": "" if h.attempts else "there is no code yet",
            "stop_training": "" if any(r.state == "running" for r in h.runs.values()) else "no PPO run is under way",
        }
        return lacking.get(action, "")

    def on_key(self, event: events.Key) -> None:
        """The key of a command that is not possible now says why, instead of nothing."""
        if isinstance(self.focused, Input):
            return
        own = shell_of(self).user_keys
        for key in keymap.of("session"):
            pressed = event.key in (word.strip() for word in own.get(key.id, key.keys).split(","))
            if pressed and key.action in COMMANDS and (why := self._why_not(key.action)):
                shell_of(self).tell(f"{key.label}: {why}", "warning")

    def send(self, kind: str, payload: dict[str, Any] | None = None, revision: int | None = None) -> bool:
        """Queue a command; says what happened."""
        if self.read_only:
            shell_of(self).tell("this console is read-only", "warning")
            return False
        from rlgpt.store import inbox  # pydantic comes with it, which the first frame should not wait for
        from rlgpt.store.commands import parse_command

        try:
            ident = inbox.send(self.folder, parse_command(kind, payload), revision)
        except (StoreError, OSError) as error:
            shell_of(self).tell(str(error), "error")
            return False
        alive = self.moment is not None and self.moment.worker.alive
        words = self.sent[ident] = kind.replace("_", " ")
        shell_of(self).tell(
            f"{words}: sent" if alive else f"{words}: waits in the inbox until a worker runs (R starts one)"
        )
        return True

    def _if_yes(self, kind: str) -> Callable[[bool | None], None]:
        def answered(yes: bool | None) -> None:
            if yes:
                self.send(kind)

        return answered

    # ---- one action a command -------------------------------------------------------------------
    def action_approve(self) -> None:
        pending = self.moment.history.pending_plan if self.moment else None
        if pending:
            self.send("approve", {}, pending.revision)

    def action_reject(self) -> None:
        from rlgpt.console.screens.dialogs import Ask

        pending = self.moment.history.pending_plan if self.moment else None
        if pending is None:
            return
        revision = pending.revision

        def answered(text: str | None) -> None:
            if text is not None:
                self.send("reject", {"text": text}, revision)

        self.app.push_screen(
            Ask(f"Reject plan r{revision}", "Why? The slow agent reads this word for word.", long=True), answered
        )

    def action_advise(self) -> None:
        from rlgpt.console.screens.dialogs import Advise

        def answered(found: tuple[str, str] | None) -> None:
            if found:
                self.send("advise", {"agent": found[0], "text": found[1]})

        self.app.push_screen(Advise(), answered)

    def action_pause(self) -> None:
        paused = self.moment is not None and (
            self.moment.history.pause_requested or self.moment.history.status == "paused"
        )
        self.send("resume" if paused else "pause")

    def action_stop_training(self) -> None:
        from rlgpt.console.screens.dialogs import Confirm

        question = "The PPO run ends at the next decision; what it learnt is kept and evaluated."
        self.app.push_screen(Confirm("End this PPO run", question, "End it"), self._if_yes("stop_training"))

    def action_stop(self) -> None:
        from rlgpt.console.screens.dialogs import Confirm

        question = "The session ends cleanly within 10 seconds. It can be resumed later; the console stays open."
        self.app.push_screen(Confirm("Stop the session", question, "Stop it"), self._if_yes("stop"))

    def action_budget(self) -> None:
        from rlgpt.console.screens.budget import BudgetDialog
        from rlgpt.console.view.status import limits_of

        if self.moment is None:
            return

        def answered(found: tuple[str, float | None] | None) -> None:
            if found:
                self.send("budget", {"name": found[0], "value": found[1]})

        self.app.push_screen(BudgetDialog(limits_of(self.moment)), answered)

    def action_verdict(self) -> None:
        from rlgpt.console.screens.verdict import VerdictDialog

        if self.moment is None:
            return

        def answered(found: dict[str, Any] | None) -> None:
            if found:
                self.send("verdict", found)

        self.app.push_screen(VerdictDialog(self.moment), answered)

    def action_override(self) -> None:
        from rlgpt.console.screens.override import OverrideScreen

        if self.moment is not None:
            self.app.push_screen(OverrideScreen(self._session))

    def action_edit_code(self) -> None:
        from rlgpt.console.screens.edit_code import EditCodeScreen

        if self.moment is not None:
            self.app.push_screen(EditCodeScreen(self._session))

    def action_resume_worker(self) -> None:
        self._start(True)
        launch.resume(shell_of(self), self.folder.name, lambda: self._start(False))

    def _start(self, starting: bool) -> None:
        self.starting = starting
        self._session.show_status()
        shell_of(self).hints()

    def action_fork(self) -> None:
        from rlgpt.console.screens.fork import ForkDialog

        if self.moment is not None:
            seq = self.moment.history.seq
            self.app.push_screen(ForkDialog(self.folder.name, seq))

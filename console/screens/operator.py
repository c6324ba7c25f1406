"""The operator's commands to a session, sent through its inbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from rlgpt.console import keymap, launch
from rlgpt.console.screens.controller import Controller
from rlgpt.console.shell import Shell
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.words import needed_from_person
from rlgpt.store.errors import StoreError
from rlgpt.store.history import Attempt
from rlgpt.store.home import here, named_path
from rlgpt.store.row_types import SessionRow
from rlgpt.store.states import MODEL, NO_SESSION

if TYPE_CHECKING:
    from rlgpt.store.plan_edits import PlanEdit  # pydantic comes with it, which the first frame should not wait for

AT_ONCE = ("pause", "stop_training", "cancel_call", "stop")
"""Commands to the worker that runs now; the others may wait in the inbox for the next one."""

PATIENCE = 1.0
"""Seconds for which a locked database may hold up the console, which answers no key meanwhile."""


class Stage(Protocol):
    """What the operator's commands need of the session screen."""

    def show_status(self) -> None: ...

    @property
    def shown_attempt(self) -> Attempt | None:
        """The code version that is looked at."""


class Operator:
    """Knows which command makes sense now, asks for what it lacks, and sends it."""

    def __init__(self, controller: Controller, shell: Shell, stage: Stage, read_only: bool) -> None:
        self.read_only = read_only
        self.starting = False
        """A worker was asked for and none is there yet."""
        self._taken_up: set[str] = set()
        """Refused overrides whose edits were shown again."""
        self._controller, self._shell, self._stage = controller, shell, stage
        self._commands: dict[str, Callable[[], None]] = {
            "approve": self.approve,
            "reject": self.reject,
            "verdict": self.verdict,
            "override": self.override,
            "edit_code": self.edit_code,
            "advise": self.advise,
            "pause": self.pause,
            "stop_training": self.stop_training,
            "cancel_call": self.cancel_call,
            "stop": self.stop,
            "budget": self.budget,
            "resume": self.resume,
            "fork": self.fork,
        }

    @property
    def moment(self) -> Moment | None:
        return self._controller.moment

    @property
    def session(self) -> SessionRow:
        """The row of the session; empty before it was read."""
        return self.moment.history.session if self.moment else NO_SESSION

    def give(self, command: str) -> None:
        self._commands[command]()

    def why_not(self, command: str) -> str:
        """Why a command makes no sense at this moment; "" when it does."""
        m = self.moment
        if self.read_only:
            return "this console is read-only"
        if m is None:
            return "the session is still being read"
        if command == "fork":  # from the past too, and of what has ended
            return ""
        h = m.history
        if not m.live:
            return f"the cursor is in the past; {self._key('time.live')} brings it back to the end"
        if command == "resume":
            over = h.result in ("succeeded", "finished")
            if self.starting:
                return "a worker is being started"
            if m.worker.alive:
                return "" if h.waiting_for == MODEL else "a worker runs this session"
            return f"the session has {h.result}" if over else ""
        if h.status == "ended":
            return "the session has ended"
        if command in AT_ONCE and not m.worker.alive:
            return f"no worker runs this session; {self._key('session.resume')} starts one"
        pending = h.pending_plan
        judgeable = needed_from_person(h.waiting_for) == "verdict" or any(attempt.trial for attempt in h.attempts)
        waits = pending is not None and pending.status == "waiting"
        lacking = {
            "approve": "" if waits else "no plan waits for approval",
            "reject": "" if waits else "no plan waits for approval",
            "verdict": "" if judgeable else "there is nothing to judge yet",
            "override": "" if pending or h.plan else "no plan is active or waits for approval yet",
            "edit_code": "" if h.attempts else "there is no code yet",
            "cancel_call": "" if m.worker.calls else "no call to a model is under way",
            "stop_training": "" if any(r.state == "running" for r in h.runs.values()) else "no PPO run is under way",
        }
        return lacking.get(command, "")

    def _key(self, name: str) -> str:
        return keymap.short(name, self._shell.user_keys)

    def explain(self, pressed: str) -> None:
        """Show why a command is not possible now when its key is pressed."""
        for key in keymap.of("session"):
            command = keymap.argument(key, "command")
            is_its_key = keymap.has_key(key.id, pressed, self._shell.user_keys)
            if command and is_its_key and (why := self.why_not(command)):
                self._shell.tell(f"{key.label}: {why}", "warning")

    def send(self, kind: str, payload: dict[str, Any] | None = None, revision: int | None = None) -> bool:
        """Queue a command; says what happened."""
        if self.read_only:
            self._shell.tell("this console is read-only", "warning")
            return False
        words = kind.replace("_", " ")
        moment = self.moment
        if moment is not None and moment.live and moment.history.status == "ended":  # while it was written
            self._shell.tell(f"{words}: not sent, the session has ended", "warning")
            return False
        from rlgpt.store import inbox  # pydantic comes with it, which the first frame should not wait for
        from rlgpt.store.commands import parse_command

        try:
            command = parse_command(kind, payload)
            ident = inbox.send(self._controller.folder, command, revision, patience=PATIENCE)
        except (StoreError, OSError) as error:
            self._shell.tell(str(error), "error")
            return False
        alive = moment is not None and moment.worker.alive
        self._controller.sent[ident] = words
        waits = f"waits in the inbox until a worker runs ({self._key('session.resume')} starts one)"
        self._shell.tell(f"{words}: sent" if alive else f"{words}: {waits}")
        return True

    # ---- one method a command -------------------------------------------------------------------
    def approve(self) -> None:
        pending = self.moment.history.pending_plan if self.moment else None
        if pending:
            self.send("approve", {}, pending.revision)

    def reject(self) -> None:
        from rlgpt.console.screens.dialogs import Ask

        pending = self.moment.history.pending_plan if self.moment else None
        if pending is None:
            return
        revision = pending.revision

        def sends(text: str) -> bool:
            if not text.strip():
                self._shell.tell("the slow agent has to know why: the plan was not rejected", "warning")
                return True
            return self.send("reject", {"text": text}, revision)

        self._shell.push_screen(
            Ask(
                f"Reject plan {revision}",
                "Why? The slow agent reads this word for word.",
                long=True,
                obstacle=lambda: self._why_not_plan(revision),
                sends=sends,
            )
        )

    def _why_not_plan(self, revision: int) -> str:
        """Why a decision on this plan comes too late; "" while it is waited for."""
        pending = self.moment.history.pending_plan if self.moment else None
        if pending is not None and pending.revision != revision:
            return f"plan {pending.revision} has taken its place"
        return self.why_not("reject")

    def advise(self) -> None:
        from rlgpt.console.screens.dialogs import Advise

        def sends(answer: tuple[str, str]) -> bool:
            return self.send("advise", {"agent": answer[0], "text": answer[1]})

        self._shell.push_screen(Advise(lambda: self.why_not("advise"), sends))

    @property
    def paused(self) -> bool:
        """Whether the session is paused, or is about to be."""
        h = self.moment.history if self.moment else None
        return h is not None and (h.pause_requested or h.status == "paused")

    def pause(self) -> None:
        self.send("resume" if self.paused else "pause")

    def stop_training(self) -> None:
        from rlgpt.console.screens.dialogs import Confirm

        runs = self.moment.history.runs if self.moment else {}
        seen = [number for number, run in runs.items() if run.state == "running"]
        question = "The PPO run ends at the next decision; what it learnt is kept and evaluated."

        def answered(yes: bool | None) -> None:
            if yes:
                self.send("stop_training", {"run": seen[-1]} if seen else {})

        self._shell.push_screen(Confirm("End this PPO run", question, "End it"), answered)

    def cancel_call(self) -> None:
        self.send("cancel_call")

    def stop(self) -> None:
        from rlgpt.console.screens.dialogs import Confirm

        question = "The session ends cleanly within 10 seconds. It can be resumed later; the console stays open."

        def answered(yes: bool | None) -> None:
            if yes:
                self.send("stop")

        self._shell.push_screen(Confirm("Stop the session", question, "Stop it"), answered)

    def budget(self) -> None:
        from rlgpt.console.screens.budget import BudgetDialog, already_spent
        from rlgpt.console.screens.dialogs import Confirm
        from rlgpt.console.view.status import limits_of

        if self.moment is None:
            return

        h = self.moment.history
        spent = {
            "env_steps": h.spent.env_steps, "tokens": h.spent.tokens, "cost": h.spent.cost, "hours": h.active / 3600,
        }  # fmt: skip

        def answered(answer: tuple[str, float | None] | None) -> None:
            if answer is None:
                return
            name, limit = answer

            def sure(yes: bool | None) -> None:
                if yes:
                    self.send("budget", {"name": name, "value": limit})

            if limit is None or spent[name] < limit:
                sure(True)
            else:
                self._shell.push_screen(Confirm("Budget", already_spent(name, spent[name], limit), "Send it"), sure)

        self._shell.push_screen(BudgetDialog(limits_of(self.moment), lambda: self.why_not("budget")), answered)

    def verdict(self) -> None:
        from rlgpt.console.screens.verdict import VerdictDialog

        if self.moment is None:
            return

        waiting_for = self.moment.history.waiting_for
        waited = needed_from_person(waiting_for) == "verdict"

        def obstacle() -> str:
            if waited and self.moment is not None and self.moment.history.waiting_for != waiting_for:
                return "it is not waited for any more"
            return self.why_not("verdict")

        self._shell.push_screen(VerdictDialog(self.moment, obstacle, lambda answer: self.send("verdict", answer)))

    def override(self) -> None:
        from rlgpt.console.screens.override import OverrideScreen

        if self.moment is not None:
            self._shell.push_screen(OverrideScreen(self, self._refused_edits()))

    def _refused_edits(self) -> list[PlanEdit]:
        """The edits of the last override if it was sent from here and refused; once, so that they can be dropped."""
        from rlgpt.store.plan_edits import parse_edit

        commands = self.moment.history.commands if self.moment else {}
        last = next((c for c in reversed(commands.values()) if c.kind == "override"), None)
        if last is None or last.state != "refused" or last.id in self._taken_up or last.id not in self._controller.sent:
            return []
        self._taken_up.add(last.id)
        return [parse_edit(edit) for edit in last.payload["edits"]]

    def edit_code(self) -> None:
        from rlgpt.console.screens.edit_code import EditCodeScreen

        if self.moment is not None:
            self._shell.push_screen(EditCodeScreen(self, self._stage.shown_attempt))

    def resume(self) -> None:
        if self.moment is not None and self.moment.worker.alive:  # it waits for the model: try now
            self.send("resume")
            return
        self._start(True)
        launch.resume(self._shell, self._controller.folder.name, lambda: self._start(False))

    def expect_no_worker(self) -> None:
        """Stop waiting for the worker that was started; if it does not run, its absence is shown."""
        self._start(False)

    def _start(self, starting: bool) -> None:
        self.starting = starting
        self._stage.show_status()
        self._shell.hints()

    def fork(self) -> None:
        from rlgpt.console.screens.fork import ForkDialog

        if self.moment is not None:
            seq = self.moment.history.seq
            self._shell.push_screen(ForkDialog(self._controller.folder.name, seq))

    def report(self) -> None:
        """One HTML page of the session, as it is at the cursor."""
        from rlgpt.console.commands.failure import Failure
        from rlgpt.console.report.file import file_name, write_page
        from rlgpt.console.screens.dialogs import Ask

        moment, shell = self.moment, self._shell
        if moment is None:
            return

        def answered(path: str | None) -> None:
            if path:
                shell.tell("writing the page …")
                shell.run_worker(lambda: work(path), thread=True, exit_on_error=False)

        def work(path: str) -> None:
            try:
                write_page(moment, named_path(path))
            except Failure as error:
                shell.call_from_thread(shell.tell, str(error), "error")
            else:
                shell.call_from_thread(shell.tell, f"written to {path}")

        target = here() / file_name(self._controller.folder.name)
        shell.push_screen(Ask("Report as one HTML page", "File to write:", str(target)), answered)

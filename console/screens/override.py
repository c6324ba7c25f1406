"""The override editor: change the plan as rows, see the difference, send it with `apply: now` or `next`."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from rlgpt.console import keymap
from rlgpt.console.checker import Checker
from rlgpt.console.commands.failure import Failure
from rlgpt.console.panes.bars import Bar, Footer
from rlgpt.console.panes.lines import Lines
from rlgpt.console.screens.leaving import Leavable
from rlgpt.console.screens.sender import Sender
from rlgpt.console.shell import shell_of
from rlgpt.console.view import override as view
from rlgpt.console.view.draft import Draft
from rlgpt.console.view.text import line
from rlgpt.store.plan_edits import BadEdit, PlanEdit, parse_edit
from rlgpt.store.row_types import tell_refusal


class OverrideScreen(Leavable, Screen[None]):
    """Edits a draft of the newest plan; the session below goes on and is watched for conflicts."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("override")

    def __init__(self, session: Sender, edits: Sequence[PlanEdit] = ()) -> None:
        """`edits` are made at once, as far as they fit the newest plan: those of an override that was refused."""
        super().__init__()
        self._session = session
        moment = session.moment
        assert moment is not None
        newest = moment.history.pending_plan or moment.history.plan
        assert newest is not None
        self.draft, self._lost = Draft(newest).with_edits(edits)
        self._checker: Checker | None = None
        self._is_checking = False

    def compose(self) -> ComposeResult:
        yield Bar(id="override-head")
        yield Lines(id="rows", classes="pane")
        yield Footer()

    def on_mount(self) -> None:
        rows = self.query_one(Lines)
        rows.border_title = "Override: the plan as it will be"
        rows.focus()
        self.call_after_refresh(self._draw)
        self.set_interval(0.5, self._draw)
        self._tell_lost(self._lost)

    def on_unmount(self) -> None:
        if self._checker is not None:
            self._checker.close()

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        moment = self._session.moment
        if moment is None:
            return
        h = moment.history
        rows, head = self.query_one(Lines), self.query_one("#override-head", Bar)
        width = max(head.content_size.width, 20)
        name = str(h.session.get("name", ""))
        title = line((name, "brand"), ("  override the plan", "bold"))
        lines = [title, *view.summary(h, self.draft, width, shell_of(self).user_keys)]
        head.styles.height = min(len(lines), 9)
        head.set_lines(lines[:9])
        rows.set_entries(view.entries(self.draft, view.model_plan(h, self.draft), rows.width))
        shell_of(self).hints()

    @property
    def unsent(self) -> str:
        """A sentence on what leaving would lose; empty if nothing."""
        return "Your edits of the plan were not sent." if self.draft.changed else ""

    # ---- edits ----------------------------------------------------------------------------------
    @property
    def _selected(self) -> str:
        current = self.query_one(Lines).current
        return str(current.fields.get("item", "")) if current else ""

    def _edit(self, edit: Mapping[str, Any], follow: str = "") -> None:
        try:
            self.draft = self.draft.edited(parse_edit(edit))
        except BadEdit as error:
            shell_of(self).tell(str(error), "warning")
            return
        self._draw()
        if follow:
            self.query_one(Lines).select(follow)

    def _refusal(self, edit: Mapping[str, Any]) -> str:
        """Why the draft cannot take an edit; empty if it can."""
        try:
            self.draft.edited(parse_edit(edit))
        except BadEdit as error:
            return str(error)
        return ""

    def action_mode(self) -> None:
        item = self.draft.item(self._selected)
        if item:
            other = "option" if item.trigger else "rl"
            self._edit({"op": "set", "name": item.name, "mode": other if item.mode == "code" else "code"})

    def action_pin(self) -> None:
        item = self.draft.item(self._selected)
        if item:
            self._edit({"op": "unpin" if item.pinned else "pin", "name": item.name})

    def action_remove(self) -> None:
        if self._selected:
            self._edit({"op": "remove", "name": self._selected})

    def action_move(self, by: int) -> None:
        name = self._selected
        if name:
            place = self.draft.index(name) + by
            if 0 <= place < len(self.draft.items):
                self._edit({"op": "move", "name": name, "position": place}, follow=name)

    def action_executor(self) -> None:
        self._edit({"op": "executor", "value": "sequence" if self.draft.executor == "policy" else "policy"})

    def action_edit(self) -> None:
        from rlgpt.console.screens.item import ItemDialog

        item = self.draft.item(self._selected)
        if item is None:
            return
        name = item.name

        def edit(answer: dict[str, Any]) -> dict[str, Any]:
            return {"op": "set", "name": name, **answer}

        def answered(answer: dict[str, Any] | None) -> None:
            if answer:
                self._edit(edit(answer), follow=str(answer.get("rename", name)))

        self.app.push_screen(ItemDialog(item, lambda answer: self._refusal(edit(answer))), answered)

    def action_add(self) -> None:
        from rlgpt.console.screens.item import ItemDialog

        position = self.draft.index(self._selected) + 1 if self._selected else len(self.draft.items)

        def edit(answer: dict[str, Any]) -> dict[str, Any]:
            fields = {key: value for key, value in answer.items() if key != "rename"}
            return {"op": "add", "name": answer.get("rename", ""), "position": position, **fields}

        def answered(answer: dict[str, Any] | None) -> None:
            if answer:
                self._edit(edit(answer), follow=str(answer.get("rename", "")))

        self.app.push_screen(ItemDialog(None, lambda answer: self._refusal(edit(answer))), answered)

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        self.action_edit()

    def action_undo(self) -> None:
        self.draft = self.draft.undo()
        self._draw()

    def action_redo(self) -> None:
        self.draft = self.draft.redo()
        self._draw()

    def action_rebase(self) -> None:
        moment = self._session.moment
        newer = view.stale(moment.history, self.draft) if moment else None
        if newer is None:
            return
        self.draft, lost = self.draft.rebased(newer)
        self._draw()
        self._tell_lost(lost)

    def _tell_lost(self, sentences: Sequence[str]) -> None:
        for sentence in sentences:
            shell_of(self).tell(f"lost: {sentence}", "warning")

    def action_apply(self, when: str) -> None:
        moment = self._session.moment
        if moment is None or not self.draft.changed:
            shell_of(self).tell("there is nothing to send", "warning")
            return
        if view.stale(moment.history, self.draft) is not None:
            rebase = keymap.short("override.rebase", shell_of(self).user_keys)
            shell_of(self).tell(
                f"the plan has moved on; {rebase} takes your edits over to the newest revision", "warning"
            )
            return
        if why := view.rejected(moment.history, self.draft):
            shell_of(self).tell(f"not sent: {why}", "warning")
            return
        if not self.draft.new_predicates:
            self._send(when)
        elif not self._is_checking:
            self._is_checking = True
            shell_of(self).tell("asking the action host whether the predicates may run …")
            draft = self.draft
            self.run_worker(lambda: self._check(draft, when), thread=True, exit_on_error=False)

    def _check(self, draft: Draft, when: str) -> None:
        """Ask the action host about the draft's new predicates and send it if all may run. In a thread."""
        session = self._session.session
        refusal = doubt = ""
        try:
            if self._checker is None:
                self._checker = Checker(str(session["world"]))
            for name, source in draft.new_predicates:
                answer = self._checker.ask("done_when", source, session)
                if not answer["ok"]:
                    why = tell_refusal(str(answer.get("rule")), 0, str(answer.get("message")))
                    refusal = f"{name}: {source!r} may not run: {why}"
                    break
        except (Failure, OSError) as error:  # the world may be installed only where the worker runs
            doubt = f"not checked here, the worker will: {error}"
        with contextlib.suppress(RuntimeError):  # the console was left meanwhile
            self.app.call_from_thread(self._checked, draft, when, refusal, doubt)

    def _checked(self, draft: Draft, when: str, refusal: str, doubt: str) -> None:
        self._is_checking = False
        if self.is_left:
            self.on_unmount()  # it was left before the checker was there
        elif self.draft is not draft or self.app.screen is not self:  # edited, or another dialog is open above
            shell_of(self).tell("not sent: you went on while the predicates were checked; send it again", "warning")
        elif refusal:
            shell_of(self).tell(refusal, "error")
        else:
            if doubt:
                shell_of(self).tell(doubt, "warning")
            self._send(when)

    def _send(self, when: str) -> None:
        if self._session.send("override", {"edits": list(self.draft.edits), "apply": when}, self.draft.base.revision):
            self.dismiss(None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        draft = self.draft
        if action == "undo":
            return bool(draft.edits)
        if action == "redo":
            return bool(draft.undone)
        if action == "apply":
            return draft.changed
        if action == "rebase":
            moment = self._session.moment
            return moment is not None and view.stale(moment.history, draft) is not None
        return super().check_action(action, parameters)

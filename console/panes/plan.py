"""The plan pane: sub-actions with their state, unfolding one; or the list of the plan's revisions."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from rlgpt.console.keymap import bindings, short
from rlgpt.console.panes.list_pane import ListPane
from rlgpt.console.shell import shell_of
from rlgpt.console.view import plan, revisions
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry


class PlanPane(ListPane):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("revisions"), *bindings("plan")]
    listing = False
    """Whether the revisions are listed, instead of the plan."""
    _moved_in = -1
    """The revision in which the operator moved the cursor; until then it follows what is being worked on."""

    def entries_of(self, moment: Moment) -> list[Entry]:
        if self.listing:
            return revisions.entries(moment.history, self.width)
        return plan.entries(moment, self.width, self.expanded)

    def redraw(self) -> None:
        super().redraw()
        h = self.moment.history if self.moment else None
        if (
            h is not None
            and not self.listing
            and h.status == "running"
            and h.phase.item
            and self._moved_in != h.revision
        ):
            self.look_at(h.phase.item)

    def on_lines_moved(self) -> None:
        self._moved_in = self.moment.history.revision if self.moment else -1

    def summary(self) -> str:
        if self.listing:
            return f"revisions, {short('revisions.show', shell_of(self).user_keys)}: the plan"
        waiting = self.moment.history.pending_plan if self.moment else None
        if waiting is None or waiting.status != "waiting":
            return ""
        approve, reject = (short(f"session.{verb}", shell_of(self).user_keys) for verb in ("approve", "reject"))
        return f"plan {waiting.revision} waits: {approve} approve, {reject} reject"

    def action_revisions(self) -> None:
        self.listing = not self.listing
        self.redraw()
        self.action_edge(False)

    @property
    def item(self) -> str:
        """Name of the sub-action under the cursor, or ""."""
        return str(self.current.fields.get("item", "")) if self.current else ""

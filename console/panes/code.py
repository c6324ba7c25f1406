"""The code pane: versions of coded actions with their diff; lexed and compared off the UI loop, then cached."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from rlgpt.console.keymap import bindings, short
from rlgpt.console.panes.lines import Lines
from rlgpt.console.panes.list_pane import ListPane
from rlgpt.console.shell import shell_of
from rlgpt.console.view import code
from rlgpt.console.view.code import Choice
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry, Line, line
from rlgpt.store.history import Attempt


class CodePane(ListPane):
    BINDINGS: ClassVar[list[BindingType]] = bindings("code")
    cursor_shown = False
    filters = False

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.choice = Choice()
        self._bodies: dict[tuple[object, ...], list[Line]] = {}
        self._making: set[tuple[object, ...]] = set()

    def redraw(self) -> None:
        m = self.moment
        if m is None:
            return
        shown, before = code.chosen(m.history, self.choice)
        head: list[Line] = []
        if shown is not None:
            head = code.tabs(m.history, shown, self.width) + code.facts(m.history, shown, before, self.width)
            head = head[: max(self.scrollable_content_region.height - 3, 1)]
        self.set_entries(self.entries_of(m), head)
        newest = self.choice.version is None and self.choice.sub_action is None
        key = short("code.newest", shell_of(self).user_keys)
        self.note("" if shown is None else "follows the newest" if newest else f"{key}: newest")

    def entries_of(self, moment: Moment) -> list[Entry]:
        shown, before = code.chosen(moment.history, self.choice)
        if shown is None:
            return code.empty(moment, self.width)
        return [Entry("body", tuple(self._body(moment, shown, before)), selectable=False)]

    def _body(self, m: Moment, shown: Attempt, before: Attempt | None) -> list[Line]:
        key = (
            shown.sub_action,
            shown.version,
            before and before.version,
            self.width,
            bool(shown.trial),
            bool(shown.verdict),
        )
        if key in self._bodies:
            return self._bodies[key]
        if key not in self._making:
            self._making.add(key)
            self.run_worker(lambda: self._make(key, m, shown, before, self.width), thread=True, exit_on_error=False)
        return [line(("reading…", "dim"))]

    def _make(self, key: tuple[object, ...], m: Moment, shown: Attempt, before: Attempt | None, width: int) -> None:
        source = m.text(shown.source_hash) or ""
        old = m.text(before.source_hash) if before else None
        lines = code.source_lines(source, old, shown, width)
        self.app.call_from_thread(self._take_body, key, lines)

    def _take_body(self, key: tuple[object, ...], lines: list[Line]) -> None:
        self._making.discard(key)
        if len(self._bodies) > 64:
            self._bodies.clear()
        self._bodies[key] = lines
        self.redraw()

    # ---- keys -----------------------------------------------------------------------------------
    @property
    def shown(self) -> Attempt | None:
        return self.shown_at(self.moment) if self.moment else None

    def shown_at(self, moment: Moment) -> Attempt | None:
        """What it shows, or would show: a pane behind another tab may not have been drawn yet."""
        return code.chosen(moment.history, self.choice)[0]

    def action_version(self, by: int) -> None:
        shown = self.shown
        if shown is None or self.moment is None:
            return
        versions = [a.version for a in self.moment.history.attempts if a.sub_action == shown.sub_action]
        place = min(max(versions.index(shown.version) + by, 0), len(versions) - 1)
        self._choose(Choice(shown.sub_action, versions[place], self.choice.against))

    def action_sub_action(self, by: int) -> None:
        shown = self.shown
        if shown is None or self.moment is None:
            return
        names = list(dict.fromkeys(a.sub_action for a in self.moment.history.attempts))
        name = names[(names.index(shown.sub_action) + by) % len(names)]
        self._choose(Choice(name, against=self.choice.against))

    def action_against(self) -> None:
        """The version before, then the first one, then none."""
        now = self.choice.against
        self._choose(Choice(self.choice.sub_action, self.choice.version, 1 if now is None else 0 if now == 1 else None))

    def action_newest(self) -> None:
        self._choose(Choice())

    def _choose(self, choice: Choice) -> None:
        self.choice = choice
        self.scroll_home(animate=False)
        self.redraw()

    def look_at(self, item: str) -> None:
        if self.moment is None:
            return
        if not item:
            self._choose(Choice())
        elif self.moment.history.attempts_of(item) and self.choice.sub_action != item:
            self._choose(Choice(item))

    def yank(self) -> str:
        shown = self.shown
        return (self.moment.text(shown.source_hash) or "") if shown and self.moment else ""

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        """Entries of this pane cannot be folded."""

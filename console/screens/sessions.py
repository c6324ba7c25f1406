"""All sessions of this store: find one, start one, open, replay, fork, compare, tag, export, delete."""

from __future__ import annotations

import time
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Input

from rlgpt.console import keymap, launch
from rlgpt.console.all_sessions import AllSessions
from rlgpt.console.machine import training_slots
from rlgpt.console.panes.bars import Bar, Footer
from rlgpt.console.panes.lines import Lines
from rlgpt.console.screens.dialogs import FilterInput
from rlgpt.console.screens.leaving import Leavable
from rlgpt.console.shell import shell_of
from rlgpt.console.view import preview, waiting
from rlgpt.console.view import sessions as view
from rlgpt.console.view.numbers import many
from rlgpt.console.view.text import Line, Span, line, spread, width_of
from rlgpt.console.view.words import bound
from rlgpt.console.watch import Watch
from rlgpt.store import catalog, folder, progress
from rlgpt.store.catalog import Summary
from rlgpt.store.errors import StoreError
from rlgpt.store.home import here, named_path

POLL = 1.0
TOLD = 12.0
"""Seconds that an error stays on the screen: before, the next look would tell it a second time."""


class SessionList(Lines):
    """The list itself."""


FORESEE = 2.0
"""Seconds after which nobody waits for the list any more."""


CHANGES = ("new", "fork", "resume", "tag", "delete")
"""Actions that a read-only console does not have: who only looks starts, changes and deletes nothing."""


STORE_PATIENCE = 0.2
"""Seconds that the list waits for the team's store: then its sessions come with the next one."""


class SessionsScreen(Leavable, Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("sessions")

    def __init__(self) -> None:
        super().__init__()
        self._summaries: list[Summary] | None = None
        self._all_sessions = AllSessions(STORE_PATIENCE)
        self._marked: frozenset[str] = frozenset()
        self._next_read = 0.0
        self._slots = 0
        self._hung: frozenset[str] = frozenset()
        self._watches: dict[str, Watch] = {}
        self._reading = False

    def compose(self) -> ComposeResult:
        yield Bar(id="sessions-title")
        yield SessionList(id="sessions")
        yield Bar(id="preview")
        yield FilterInput()
        yield Footer()

    @property
    def rows(self) -> SessionList:
        return self.query_one(SessionList)

    @property
    def selected(self) -> Summary | None:
        entry = self.rows.current
        summary = entry.fields.get("summary") if entry else None
        return summary if isinstance(summary, Summary) else None

    def on_mount(self) -> None:
        self.rows.focus()
        self._draw()
        self._read()
        self.set_interval(POLL, self._read)

    def _read(self, soon: bool = False) -> None:
        """Summaries in a thread; never more than a tenth of the time, however long a running session is."""
        now = time.monotonic()
        if self._reading or (not soon and now < self._next_read) or self.app.screen is not self:
            return
        self._reading = True
        self.run_worker(self._read_in_thread, thread=True, exit_on_error=False)

    def _read_in_thread(self) -> None:
        start, pause = time.monotonic(), POLL
        try:
            summaries, slots = self._all_sessions.read(), training_slots()
            hung = self._silent(summaries)
        except (StoreError, OSError) as error:
            pause = TOLD
            self.app.call_from_thread(shell_of(self).tell, str(error), "error")
            return
        finally:
            took = time.monotonic() - start
            self._next_read = time.monotonic() + max(pause, 10 * took)
            self._reading = False
        self.app.call_from_thread(self._take, summaries, slots, hung)

    def _silent(self, summaries: list[Summary]) -> frozenset[str]:
        """Sessions whose worker lives and makes no progress for longer than their phase may take."""
        late = set()
        for s in summaries:
            if s.alive and s.status == "running":
                watch = self._watches.setdefault(s.id, Watch())
                silent = watch.silent(progress.read(folder.root() / s.id), shell_of(self).clock())
                if silent is not None and silent > bound(s.phase, s.settings):
                    late.add(s.id)
        return frozenset(late)

    def _take(self, summaries: list[Summary], slots: int, hung: frozenset[str]) -> None:
        if self._summaries is None:
            self.run_worker(_import_session_screen, thread=True, exit_on_error=False)
            self.set_timer(FORESEE, lambda: launch.foresee(shell_of(self)))
        self._summaries, self._slots, self._hung = summaries, slots, hung
        self._marked &= {s.id for s in summaries}  # one may be deleted meanwhile
        self._draw()

    def _draw(self) -> None:
        preferences = shell_of(self).preferences
        width = self.rows.width
        bar = self.query_one("#sessions-title", Bar)
        bar.set_lines(
            [
                self._title(bar.content_size.width),
                view.header(
                    bar.content_size.width,
                    preferences.sort,
                    preferences.reverse,
                    any(s.node for s in self._summaries or ()),
                ),
            ]
        )
        if self._summaries is None:
            return
        self.rows.set_entries(
            view.entries(
                self._summaries,
                width,
                shell_of(self).clock(),
                sort=preferences.sort,
                reverse=preferences.reverse,
                marked=self._marked,
                hung=self._hung,
                keys=shell_of(self).user_keys,
            )
        )
        self._preview()
        shell_of(self).hints()

    def _preview(self) -> None:
        box = self.query_one("#preview", Bar)
        box.display = self.app.size.height >= 24
        box.set_lines(preview.lines(self.selected, shell_of(self).clock(), box.content_size.width, self._hung))

    def _title(self, width: int) -> Line:
        summaries = self._summaries
        if summaries is None:
            return spread(line(("rlgpt", "brand"), ("  sessions", "bold")), line(("reading …", "dim")), width)
        running = sum(s.alive and s.status != "ended" for s in summaries)
        shown = self.rows.matching
        filtered = self.rows.filter
        words = (f"/{filtered}  {shown} of " if filtered else "") + many(len(summaries), "session")
        queued = sum(s.alive and view.QUEUED in s.waiting_for for s in summaries)
        waits = f", {queued} queued" if queued else ""
        needed = waiting.sentence(len(waiting.needs(summaries)))
        parts: list[tuple[str, str]] = [
            (needed, "warn"),
            (words if filtered else "", "accent"),
            (f"{len(self._marked)} marked" if self._marked else "", "accent"),
            (f"{running} running", "accent" if running else "dim"),
            ("" if filtered else words, "dim"),
            (f"training slots taken: {self._slots}{waits}", "dim"),
        ]
        head = line(("rlgpt", "brand"), ("  Sessions", "bold"))
        right: list[Span] = []
        for text, style in parts:  # what matters most first; what has no room is left out whole
            part = line(("   " if right and text else "", ""), (text, style))
            if width_of(right) + width_of(part) < width - width_of(head) - 2:
                right += part
        badge = line((" READ-ONLY " if shell_of(self).read_only else "", "badge_warn"))
        return spread((*head, *line((f"  {shell_of(self).home}", "dim"))), (*right, *badge), width)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._draw)

    def on_descendant_focus(self) -> None:
        self.call_after_refresh(shell_of(self).hints)

    def on_screen_resume(self) -> None:
        shell_of(self).set_terminal_title("rlgpt")
        self._read(soon=True)

    def on_lines_moved(self, message: Lines.Moved) -> None:
        self._preview()
        shell_of(self).hints()

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        self.action_attach()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if isinstance(self.focused, Input) and action not in ("help", "command_palette"):
            return False
        if action in CHANGES and shell_of(self).read_only:
            return False
        s = self.selected
        if action == "leaderboard":
            return s is not None and bool(s.task)
        if action in ("attach", "replay", "fork", "mark", "tag", "export", "delete"):
            return s is not None
        if action == "resume":
            return s is not None and not s.fault and not self._why_no_resume
        if action == "compare":
            return len(self._marked) >= 2
        return super().check_action(action, parameters)

    @property
    def _why_no_resume(self) -> str:
        """Why no worker is started for the selected session; "" where one can be."""
        s = self.selected
        if s is not None and s.alive:
            return "a worker runs this session"
        return f"the session has {s.result}" if s is not None and s.result in ("succeeded", "finished") else ""

    def on_key(self, event: events.Key) -> None:
        """Say why a key does nothing now."""
        shell = shell_of(self)
        if isinstance(self.focused, Input):
            return
        for key in keymap.of("sessions"):
            if key.action in CHANGES and keymap.has_key(key.id, event.key, shell.user_keys):
                no_resume = self._why_no_resume if key.action == "resume" else ""
                if why := "this console is read-only" if shell.read_only else no_resume:
                    shell.tell(f"{key.label}: {why}", "warning")

    # ---- actions --------------------------------------------------------------------------------
    def action_attach(self) -> None:
        if self.selected:
            shell_of(self).open_session(self.selected.id)

    def action_replay(self) -> None:
        if self.selected:
            shell_of(self).open_session(self.selected.id, replay=True)

    def action_mark(self) -> None:
        if self.selected:
            self._marked ^= {self.selected.id}
            self._draw()
            self.rows.action_cursor_down()

    def action_sort(self) -> None:
        names = view.sorts(self.rows.width, any(s.node for s in self._summaries or ()))
        preferences = shell_of(self).preferences
        place = names.index(preferences.sort) if preferences.sort in names else 0
        preferences.sort = names[(place + 1) % len(names)]
        preferences.save(shell_of(self).home)
        self._draw()

    def action_tree(self) -> None:
        preferences = shell_of(self).preferences
        preferences.sort = "started" if preferences.sort == view.FORKS else view.FORKS
        preferences.save(shell_of(self).home)
        self._draw()

    def action_leaderboard(self) -> None:
        from rlgpt.console.screens.leaderboard import LeaderboardScreen

        if self.selected and self._summaries:
            self.app.push_screen(LeaderboardScreen(self._summaries, self.selected.task))

    def action_reverse(self) -> None:
        preferences = shell_of(self).preferences
        preferences.reverse = not preferences.reverse
        preferences.save(shell_of(self).home)
        self._draw()

    def action_filter(self) -> None:
        box = self.query_one(FilterInput)
        box.value = self.rows.filter
        box.add_class("-open")
        box.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "filter" and event.input.has_class("-open"):
            self.rows.set_filter(event.value)
            self._draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "filter":
            self.rows.set_filter(event.value)
            event.input.remove_class("-open")
            self.rows.focus()
            self._draw()

    def step_back(self) -> bool:
        """Show all again; False when all is shown."""
        if not self.rows.filter:
            return False
        self.rows.set_filter("")
        self._draw()
        return True

    def action_resume(self) -> None:
        if self.selected:
            shell_of(self).tell("starting a worker …")
            launch.resume(shell_of(self), self.selected.id)

    def action_new(self) -> None:
        from rlgpt.console.screens.new import NewScreen

        self.app.push_screen(NewScreen())

    def action_fork(self) -> None:
        from rlgpt.console.screens.fork import ForkDialog

        if self.selected:
            self.app.push_screen(ForkDialog(self.selected.id, None))

    def action_compare(self) -> None:
        from rlgpt.console.screens.compare import CompareScreen

        chosen = [s for s in self._summaries or [] if s.id in self._marked]
        if len(chosen) >= 2:
            self.app.push_screen(CompareScreen([folder.root() / s.id for s in chosen]))

    def action_skills(self) -> None:
        from rlgpt.console.screens.skills import SkillsScreen

        self.app.push_screen(SkillsScreen())

    def action_doctor(self) -> None:
        from rlgpt.console.screens.doctor import DoctorScreen

        self.app.push_screen(DoctorScreen())

    def action_tag(self) -> None:
        from rlgpt.console.screens.dialogs import Ask

        if self.selected is None:
            return
        ident = self.selected.id

        def answered(text: str | None) -> None:
            if text is None:
                return
            try:
                catalog.set_tags(catalog.find(ident), text.split())
            except (StoreError, OSError) as error:
                shell_of(self).tell(str(error), "error")
            self._read(soon=True)

        self.app.push_screen(Ask("Tags", "Words separated by spaces.", " ".join(self.selected.tags)), answered)

    def action_export(self) -> None:
        from rlgpt.console.screens.dialogs import Ask

        if self.selected is None:
            return
        ident = self.selected.id

        def answered(path: str | None) -> None:
            if path:
                shell_of(self).tell("writing the bundle …")
                launch.run(
                    shell_of(self),
                    "export",
                    ident,
                    "--format",
                    "bundle",
                    "--output",
                    str(here() / named_path(path)),
                    then=lambda _: shell_of(self).tell(f"written to {path}"),
                )

        self.app.push_screen(Ask("Export as one bundle", "File to write:", str(here() / f"{ident}.rlgpt")), answered)

    def action_delete(self) -> None:
        from rlgpt.console.screens.dialogs import Confirm

        s = self.selected
        if s is None:
            return
        if s.alive:
            shell_of(self).tell("its worker still runs; stop it first", "warning")
            return
        ident = s.id

        def answered(yes: bool | None) -> None:
            if yes:
                launch.run(
                    shell_of(self),
                    "store",
                    "delete",
                    ident,
                    "--yes",
                    then=lambda _: self._read(soon=True),
                )

        called = f"{s.name} ({ident})" if s.name else ident
        self.app.push_screen(
            Confirm("Delete a session", f"{called} and all it stored are deleted permanently.", "Delete"),
            answered,
        )


def _import_session_screen() -> None:
    """So that a session opens at once: numpy and the charts are the slow part."""
    import rlgpt.console.panes.curves
    import rlgpt.console.screens.session  # noqa: F401

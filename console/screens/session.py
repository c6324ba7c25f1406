"""One session, live and in replay: the same panes drawn from a moment; only the cursor differs."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.reactive import Reactive
from textual.screen import ModalScreen, Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from rlgpt.console import keymap
from rlgpt.console.commands.children import START_PATIENCE
from rlgpt.console.panes.bars import Bar, Footer, TimelineBar
from rlgpt.console.panes.board import Board
from rlgpt.console.panes.code import CodePane
from rlgpt.console.panes.episodes import EpisodesPane
from rlgpt.console.panes.lines import Lines
from rlgpt.console.panes.list_pane import ListPane
from rlgpt.console.panes.pane import Pane
from rlgpt.console.panes.world import WorldPane
from rlgpt.console.screens.controller import FRAME, MEASURE, POLL, Controller
from rlgpt.console.screens.dialogs import FilterInput
from rlgpt.console.screens.leaving import Leavable
from rlgpt.console.screens.operator import Operator
from rlgpt.console.shell import LIVE_BELOW, Shell
from rlgpt.console.view import banner, status, timeline
from rlgpt.console.view.layout import PANES, Choices
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Line, wrap
from rlgpt.store.history import Attempt

BELOW = 2.0
"""Seconds from one drawing below a dialog to the next."""
LINK = 0.12
"""Seconds that the cursor must rest on a sub-action before the other panes follow."""


class SessionScreen(Leavable, Screen[None]):
    """The `controller` follows the session, the `operator` commands it; panes only draw what they are handed."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("session", "time")
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """Another pane has the focus: the two panes paint themselves, the rest of the screen stays as it is."""

    def __init__(
        self,
        shell: Shell,
        folder: Path,
        *,
        replay: bool = False,
        cursor: int | None = None,
        read_only: bool = False,
        begun: bool = False,
    ) -> None:
        super().__init__()
        self._shell = shell
        from_start = replay and cursor is None
        self.controller = Controller(folder, shell, self, 1 if from_start else cursor, from_start)
        self.operator = Operator(self.controller, shell, self, read_only)
        self.operator.starting = begun
        self._just_started = begun
        """Its first worker was started a moment ago."""
        self._has_moment = False
        self._fault = ""
        """Why the session cannot be read; "" where it can."""
        self._below_another = False
        """Whether it is drawn although another screen is on top."""
        self._drawn_at = 0.0
        self._hinted: tuple[object, ...] = ()
        self._item = ""
        """The sub-action that the operator selected in some pane: the others show what belongs to it."""
        self._linked: dict[str, str] = {}
        """Pane -> the sub-action that it was last told of."""
        self._linking: Timer | None = None
        self._track: timeline.Track | None = None
        self._tracked: tuple[int, int] = (0, 0)

    def compose(self) -> ComposeResult:
        yield Bar(id="status")
        yield Bar(id="banner")
        yield Board(*map(_make_pane, PANES), choices=self._shell.preferences.choices)
        yield FilterInput()
        yield TimelineBar(id="timeline")
        yield Footer()

    @property
    def board(self) -> Board:
        return self.query_one(Board)

    def on_mount(self) -> None:
        self.board.arrange_panes()
        self._title_panes()
        self.query_one("#plan").focus()
        self.controller.follow()
        self.set_interval(POLL, self.controller.poll)
        self.set_interval(MEASURE, self.controller.measure)
        self.set_interval(FRAME, self.controller.tick)
        if self._just_started:
            self.set_timer(START_PATIENCE, self.operator.expect_no_worker)

    def on_unmount(self) -> None:
        self.controller.close()

    # ---- drawing --------------------------------------------------------------------------------
    def show(self, moment: Moment) -> None:
        over = self._just_started and moment.history.status == "ended"
        self.operator.starting = self.operator.starting and not moment.worker.alive and not over
        if not self._has_moment:
            self._has_moment = True
            self._shell.set_terminal_title(f"rlgpt {moment.history.session.get('name', '')}")
            self._shell.show_tour()
        if self._draws:
            self._draw(moment)
        else:
            self._draw_below(moment)

    def _draw_below(self, moment: Moment) -> None:
        """Below a dialog, every `BELOW` seconds."""
        if isinstance(self.app.screen, ModalScreen) and time.monotonic() - self._drawn_at >= BELOW:
            self._below_another = True
            self._draw(moment)
            self._below_another = False

    def _draw(self, moment: Moment) -> None:
        self._drawn_at = time.monotonic()
        for name in self.board.visible_panes:
            self._pane(name).show(moment)
        self.show_status()
        self.show_timeline()
        h = moment.history
        training = any(run.state == "running" for run in h.runs.values())
        state: tuple[object, ...] = (
            h.status,
            h.waiting_for,
            h.pause_requested,
            len(h.plans),
            len(h.attempts),
            training,
        )
        state += (moment.live, moment.worker.alive)
        if state != self._hinted:
            self._hinted = state
            self.query_one(Footer).labels = {"session.pause": "go on"} if self.operator.paused else {}
            self._shell.hints()

    def on_screen_resume(self) -> None:
        self._hinted = ()  # what changed under a dialog has reached only the dialog's footer
        self.controller.redraw()

    @property
    def _moment(self) -> Moment | None:
        return self.controller.moment

    @property
    def shown_attempt(self) -> Attempt | None:
        return self.query_one(CodePane).shown_at(self._moment) if self._moment else None

    def measures(self) -> bool:
        return "system" in self.board.visible_panes

    def show_status(self) -> None:
        m = self._moment
        if m is None:
            return
        if not self._draws:
            self._draw_below(m)
            return
        bar = self.query_one("#status", Bar)
        width = bar.content_size.width
        bar.set_lines(
            [status.title(m, width, self.operator.read_only), status.goal(m, width), status.budgets(m, width)]
        )
        keys, operator = self._shell.user_keys, self.operator
        told = self._told_fault(width) or banner.lines(m, width, operator.starting, keys, operator.read_only)
        self._show_banner(told)

    def show_fault(self, sentence: str) -> None:
        """That the session cannot be read, above panes that stay empty or as they are; "" once it can be."""
        self._fault = sentence
        if self._draws:
            width = self.query_one("#status", Bar).content_size.width
            self._show_banner(self._told_fault(width))

    def _told_fault(self, width: int) -> list[Line]:
        return wrap(f"This session cannot be read: {self._fault}", width, "bad", most=4) if self._fault else []

    def _show_banner(self, lines: list[Line]) -> None:
        notice = self.query_one("#banner", Bar)
        if notice.display != bool(lines) or (
            lines and notice.styles.height is not None and notice.styles.height.value != len(lines)
        ):
            notice.display = bool(lines)
            notice.styles.height = max(len(lines), 1)
        notice.set_lines(lines)

    def show_timeline(self) -> None:
        if not self._draws:
            return
        bar = self.query_one(TimelineBar)
        running = self._moment is not None and self._moment.worker.alive
        marks, playback = self.controller.marks, self.controller.playback
        times, width = self.controller.feed.times, max(bar.content_size.width, 10)
        if self._track is None or self._track.width != width or self._tracked != (id(marks), times.end_seq):
            self._track, self._tracked = timeline.Track(marks, times, width), (id(marks), times.end_seq)
        bar.set_lines([self._track.line(times, playback), timeline.legend(marks, times, playback, running, width)])

    def _pane(self, name: str) -> Pane:
        pane = self.query_one(f"#{name}")
        assert isinstance(pane, Pane)
        return pane

    def _title_panes(self) -> None:
        for name, slot in self.board.visible_panes.items():
            self._pane(name).set_tabs(slot)

    def on_board_changed(self, message: Board.Changed) -> None:
        self._title_panes()
        visible = self.board.visible_panes
        if self._moment is not None:
            for name in visible:
                self._pane(name).show(self._moment)
            self._link()
        focused = self.focused
        if focused is not None and focused.parent is self.board and focused.id not in visible:
            self._pane(next(iter(visible))).focus()
        self._remember()

    @property
    def _draws(self) -> bool:
        """Drawing below a dialog repaints that one too: every `BELOW` seconds is enough, but for a new size, and below
        the tour, which a new user reads for long while the first session begins."""
        top = self.app.screen
        return self._below_another or top is self or top.has_class(LIVE_BELOW)

    def _fit(self) -> None:
        self._below_another = True
        self.controller.redraw()
        self._below_another = False

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._fit)

    def on_descendant_focus(self) -> None:
        self.call_after_refresh(self._shell.hints)

    # ---- the selected sub-action ----------------------------------------------------------------
    def on_lines_moved(self, message: Lines.Moved) -> None:
        item = str(message.entry.fields.get("item", "")) if message.entry else ""
        if item and item != self._item and isinstance(message.pane, Pane):
            self._item = item
            self._linked[str(message.pane.id)] = item
            if self._linking:
                self._linking.stop()
            self._linking = self.set_timer(LINK, self._link)

    def _link(self) -> None:
        """Visible panes show what belongs to the selected sub-action; those that know it already are left alone."""
        for name in self.board.visible_panes:
            if self._linked.get(name, "") != self._item:
                self._linked[name] = self._item
                self._pane(name).look_at(self._item)

    def on_pane_goto(self, message: Pane.Goto) -> None:
        self._item = message.item
        self.action_pane(message.name)
        self._link()

    def on_episodes_pane_watch(self, message: EpisodesPane.Watch) -> None:
        if message.film is None:
            self._shell.tell("no frames of this episode are kept; ▸ marks those that can be watched", "warning")
            return
        self._linked["world"] = self._item  # the chosen episode is shown, not the one of the selected sub-action
        self.action_pane("world")
        world = self.query_one(WorldPane)
        world.moment = self._moment  # it may never have been shown
        world.show_film(message.film)

    # ---- panes ----------------------------------------------------------------------------------
    def action_pane(self, name: str) -> None:
        if name not in self.board.visible_panes:
            self.board.show(name)
        self._pane(name).focus()

    def on_pane_wanted(self, message: Pane.Wanted) -> None:
        self.action_pane(message.name)

    def action_detach(self) -> None:
        self._shell.action_leave()

    def action_zoom(self) -> None:
        focused = self.focused
        if focused is not None and focused.parent is self.board:
            self.board.zoom(str(focused.id))

    def action_next_pane(self) -> None:
        self._cycle(1)

    def action_previous_pane(self) -> None:
        self._cycle(-1)

    def _cycle(self, by: int) -> None:
        names = list(self.board.visible_panes)
        here = names.index(str(self.focused.id)) if self.focused is not None and self.focused.id in names else 0
        self._pane(names[(here + by) % len(names)]).focus()

    def action_resize(self, columns: int, rows: int) -> None:
        focused = self.focused
        if focused is not None and focused.parent is self.board:
            self.board.resize(str(focused.id), columns * 0.03, rows * 0.05)
            self._save()

    def action_reset_layout(self) -> None:
        self.board.choose(Choices())
        self._save()

    def on_board_dragged(self, message: Board.Dragged) -> None:
        self._save()

    def _save(self) -> None:
        self._remember()
        self._shell.preferences.save(self._shell.home)

    def _remember(self) -> None:
        """Store the layout for the next session that is opened; the zoom is not stored."""
        self._shell.preferences.choices = replace(self.board.choices, zoomed="")

    def step_back(self) -> bool:
        """Undo the zoom, else the filter, else the narrowing of the episodes; False when there is none."""
        if self.board.choices.zoomed:
            self.board.zoom("")
            return True
        panes = [self._pane(name) for name in self.board.visible_panes]
        filtered = [pane for pane in panes if isinstance(pane, ListPane) and pane.filter]
        if not filtered:
            narrowed = any(isinstance(pane, EpisodesPane) and pane.item for pane in panes)
            if narrowed:
                self._item = ""
                self._link()
            return narrowed
        next((pane for pane in filtered if pane.has_focus), filtered[0]).set_filter("")
        return True

    # ---- filter ---------------------------------------------------------------------------------
    def action_filter(self) -> None:
        if isinstance(self.focused, ListPane) and self.focused.filters:
            self._filtered = self.focused
            line = self.query_one(FilterInput)
            line.value = self._filtered.filter
            line.add_class("-open")
            line.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "filter" and event.input.has_class("-open"):
            self._filtered.set_filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "filter":
            self._filtered.set_filter(event.value)
            event.input.remove_class("-open")
            self._filtered.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only actions that do something now; while a filter is typed it gets every key."""
        if isinstance(self.focused, Input) and action not in ("help", "command_palette"):
            return False
        if action == "filter":
            return isinstance(self.focused, ListPane) and self.focused.filters
        if action == "command":
            return not self.operator.why_not(str(parameters[0]))
        return super().check_action(action, parameters)

    # ---- the operator's commands and the timeline's cursor --------------------------------------
    def on_key(self, event: events.Key) -> None:
        answering = self.active_bindings.get(event.key)  # a pane may have the key for something else
        if not isinstance(self.focused, Input) and (answering is None or answering.node is self):
            self.operator.explain(event.key)

    def action_command(self, name: str) -> None:
        self.operator.give(name)

    def action_report(self) -> None:
        self.operator.report()

    def action_play(self) -> None:
        self.controller.play()

    def action_live(self) -> None:
        self.controller.go_to(None)

    def action_start(self) -> None:
        self.controller.go_to(1)

    def action_seek(self, by: int) -> None:
        self.controller.seek(by)

    def action_leap(self, by: int) -> None:
        self.controller.leap(by)

    def action_speed(self, by: int) -> None:
        self.controller.speed(by)

    def action_jump(self, kind: str, forward: bool) -> None:
        self.controller.jump(kind, forward)

    def on_timeline_bar_sought(self, message: TimelineBar.Sought) -> None:
        self.controller.go_to_share(message.share)

    def on_list_pane_jump(self, message: ListPane.Jump) -> None:
        self.controller.go_to(message.seq)

    def action_yank(self) -> None:
        self._shell.action_yank()


def _make_pane(name: str) -> Pane:
    """The pane of a name: the class `NamePane` of the module `name` in `console/panes/`."""
    module = import_module(f"rlgpt.console.panes.{name}")
    pane: Pane = getattr(module, f"{name.capitalize()}Pane")(name)
    return pane

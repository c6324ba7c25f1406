"""One session, live and in replay: the same panes drawn from a moment; only the cursor differs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from rlgpt.console import keymap
from rlgpt.console.app import ConsoleApp
from rlgpt.console.feed import Feed
from rlgpt.console.panes.bars import Bar, Footer, TimelineBar
from rlgpt.console.panes.board import Board
from rlgpt.console.panes.code import CodePane
from rlgpt.console.panes.pane import Pane
from rlgpt.console.panes.session_panes import CallsPane, ListPane, LogPane, PlanPane, SystemPane, VerdictsPane
from rlgpt.console.panes.world import WorldPane
from rlgpt.console.screens.commands import Commands
from rlgpt.console.screens.dialogs import FilterInput
from rlgpt.console.view import banner, news, status, timeline
from rlgpt.console.view.layout import Choices
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.timeline import Playback
from rlgpt.store.errors import StoreError

POLL = 0.5
"""Seconds between two looks at the store: redraws are at most this frequent."""
MEASURE = 2.0
"""Seconds between two looks at processes and disk, while the system pane is shown."""
FRAME = 0.1
"""Seconds between two frames of a replay."""


class SessionScreen(Commands, Screen[None]):
    """Owns the feed and the cursor; panes only draw what they are handed."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("session", "time")
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """Another pane has the focus: the two panes paint themselves, the rest of the screen stays as it is."""

    def __init__(
        self, folder: Path, *, replay: bool = False, cursor: int | None = None, read_only: bool = False
    ) -> None:
        super().__init__()
        self.folder = folder
        self.read_only = read_only
        self.sent: dict[str, str] = {}
        self.moment: Moment | None = None
        self.playback = Playback()
        self.marks: list[timeline.Mark] = []
        self._start_at = 1 if replay and cursor is None else cursor
        self._plays_at_once = replay and cursor is None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="feed")
        self._wanted: int | None = None
        self._busy = False
        self._opened_whole = False
        self._known = news.Known("", "", {})
        self._fault = ""
        self._resized = False
        self._hinted: tuple[object, ...] = ()
        self._track: timeline.Track | None = None
        self._tracked: tuple[int, int] = (0, 0)

    def compose(self) -> ComposeResult:
        from rlgpt.console.panes.curves import CurvesPane

        yield Bar(id="status")
        yield Bar(id="banner")
        yield Board(
            PlanPane("plan"), CodePane("code"), CurvesPane("curves"), VerdictsPane("verdicts"), WorldPane("world"),
            LogPane("log"), CallsPane("calls"), SystemPane("system"), choices=self.console_app.preferences.choices,
        )  # fmt: skip
        yield FilterInput()
        yield TimelineBar(id="timeline")
        yield Footer()

    @property
    def console_app(self) -> ConsoleApp:
        assert isinstance(self.app, ConsoleApp)
        return self.app

    @property
    def board(self) -> Board:
        return self.query_one(Board)

    # ---- following the session ------------------------------------------------------------------
    def on_mount(self) -> None:
        self.feed = Feed(self.folder, self.console_app.clock)
        self.board.arrange_panes()
        self._title_panes()
        self.query_one("#plan").focus()
        self._in_thread(self._open)
        self.set_interval(POLL, self._poll)
        self.set_interval(FRAME, self._tick)
        self.set_interval(MEASURE, self._measure)

    def on_unmount(self) -> None:
        self._thread.submit(self.feed.close)
        self._thread.shutdown(wait=False)

    def _in_thread(self, work: Callable[[], Callable[[], None] | None]) -> None:
        """Run `work` in the feed's thread and what it returns on the UI loop."""

        def run() -> None:
            try:
                after = work()
            except (StoreError, OSError) as error:
                sentence = str(error)
                after = lambda: self._failed(sentence)  # noqa: E731
            if after:
                with contextlib.suppress(RuntimeError):  # the screen was closed meanwhile
                    self.app.call_from_thread(after)

        with contextlib.suppress(RuntimeError):
            self._thread.submit(run)

    def _open(self) -> Callable[[], None] | None:
        first = self.feed.connect() if self._start_at is None else None
        if first is not None:
            self._in_thread(self._open_whole)
            return lambda: self.show(first)
        return self._open_whole()

    def _open_whole(self) -> Callable[[], None]:
        self.feed.open()
        start = self._start_at
        moment, marks = self.feed.moment(start), timeline.marks(self.feed.head())
        self.console_app.settled()
        return lambda: self._opened(moment, marks)

    def _opened(self, moment: Moment, marks: list[timeline.Mark]) -> None:
        self._opened_whole = True
        self.marks = marks
        self.playback = self.playback.at(None if moment.live else moment.history.seq, self.feed.times)
        if self._plays_at_once and not moment.live:
            self.playback = Playback(self.playback.seq, self.playback.active, True, 1.0)
        if self.feed.notice:
            self.console_app.tell(self.feed.notice, "warning")
        self._known = news.known(moment, self.sent)
        self.show(moment)
        self._in_thread(self._read_mappings)

    def _read_mappings(self) -> Callable[[], None]:
        more = self.feed.read_mappings()
        if more:
            self._in_thread(self._read_mappings)
            return lambda: None
        self.console_app.settled()
        return self._redraw

    def _failed(self, sentence: str) -> None:
        if sentence != self._fault:
            self._fault = sentence
            self.console_app.tell(sentence, "error")

    def _poll(self) -> None:
        if not self._busy and self._opened_whole:
            self._busy = True
            self._in_thread(self._poll_in_thread)

    def _measure(self) -> None:
        if self._opened_whole and "system" in self.board.visible_panes:
            self._in_thread(self.feed.measure)

    def _poll_in_thread(self) -> Callable[[], None]:
        try:
            changed = self.feed.poll()
            if not changed:
                return self._idle
            marks = timeline.marks(self.feed.head())
            moment = self.feed.moment() if self.playback.seq is None else None
        except BaseException:
            self._busy = False
            raise
        return lambda: self._polled(marks, moment)

    def _idle(self) -> None:
        self._busy = False
        if self.moment is not None and self.moment.live:
            self._show_status()

    def _polled(self, marks: list[timeline.Mark], moment: Moment | None) -> None:
        self._busy = False
        if marks != self.marks:
            self.marks = marks
        if self.playback.seq is None:
            self.playback = self.playback.at(None, self.feed.times)
            if moment is not None:
                self._announce(moment)
                self.show(moment)
        else:
            self._show_timeline()

    def _announce(self, moment: Moment) -> None:
        """A notification, with a bell when somebody is needed."""
        now = news.known(moment, self.sent)
        for notice in news.since(self._known, now, moment, self.sent):
            self.console_app.tell(notice.sentence, notice.severity, bell=notice.bell)
        self._known = now

    # ---- drawing --------------------------------------------------------------------------------
    def show(self, moment: Moment) -> None:
        fresh = self.moment is None
        self.moment = moment
        if fresh:
            self.console_app.set_terminal_title(f"rlgpt {moment.history.session.get('name', '')}")
        if not self._draws:
            return
        for name in self.board.visible_panes:
            self._pane(name).show(moment)
        self._show_status()
        self._show_timeline()
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
            self.console_app.hints()

    def on_screen_resume(self) -> None:
        self._redraw()

    def _redraw(self) -> None:
        if self.moment is not None:
            self.show(self.moment)

    def _show_status(self) -> None:
        if self.moment is None or not self._draws:
            return
        m = self.moment
        bar = self.query_one("#status", Bar)
        width = bar.content_size.width
        bar.set_lines([status.title(m, width, self.read_only), status.budgets(m, width)])
        notice = self.query_one("#banner", Bar)
        lines = banner.lines(m, width)
        if notice.display != bool(lines) or (
            lines and notice.styles.height is not None and notice.styles.height.value != len(lines)
        ):
            notice.display = bool(lines)
            notice.styles.height = max(len(lines), 1)
        notice.set_lines(lines)

    def _show_timeline(self) -> None:
        if not self._draws:
            return
        bar = self.query_one(TimelineBar)
        running = self.moment is not None and self.moment.worker.alive
        times, width = self.feed.times, max(bar.content_size.width, 10)
        if self._track is None or self._track.width != width or self._tracked != (id(self.marks), times.end_seq):
            self._track, self._tracked = timeline.Track(self.marks, times, width), (id(self.marks), times.end_seq)
        bar.set_lines(
            [self._track.line(times, self.playback), timeline.legend(self.marks, times, self.playback, running, width)]
        )

    def _pane(self, name: str) -> Pane:
        found = self.query_one(f"#{name}")
        assert isinstance(found, Pane)
        return found

    def _title_panes(self) -> None:
        for name, slot in self.board.visible_panes.items():
            self._pane(name).set_tabs(slot)

    def on_board_changed(self, message: Board.Changed) -> None:
        self._title_panes()
        visible = self.board.visible_panes
        if self.moment is not None:
            for name in visible:
                self._pane(name).show(self.moment)
        focused = self.focused
        if focused is not None and focused.parent is self.board and focused.id not in visible:
            self._pane(next(iter(visible))).focus()
        self.console_app.preferences.choices = self.board.choices

    @property
    def _draws(self) -> bool:
        """Drawing below another screen would repaint that one twice a second; only a new size is worth it."""
        return self._resized or self.app.screen is self

    def _fit(self) -> None:
        self._resized = True
        self._redraw()
        self._resized = False

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._fit)

    def on_descendant_focus(self) -> None:
        self.call_after_refresh(self.console_app.hints)

    # ---- the cursor -----------------------------------------------------------------------------
    def go_to(self, seq: int | None) -> None:
        """Move the timeline's cursor; None is live."""
        if self.moment is None:
            return
        self.playback = self.playback.at(seq, self.feed.times)
        self._show_timeline()
        self._want()

    def _want(self) -> None:
        """Ask for the moment at the cursor; of several requests only the last is answered."""
        wanted = self.playback.seq
        self._wanted = wanted if wanted is not None else -1

        def read() -> Callable[[], None] | None:
            if self._wanted != (wanted if wanted is not None else -1):
                return None
            moment = self.feed.moment(wanted)
            return lambda: self.show(moment)

        self._in_thread(read)

    def _tick(self) -> None:
        if not self.playback.playing:
            return
        before = self.playback.seq
        self.playback = self.playback.ticked(FRAME, self.feed.times)
        self._show_timeline()
        if self.playback.seq != before:
            self._want()

    def action_play(self) -> None:
        p = self.playback
        if p.seq is None:
            self.go_to(1)
            p = self.playback
        self.playback = Playback(p.seq, p.active, not p.playing, p.speed)
        self._show_timeline()

    def action_live(self) -> None:
        self.go_to(None)

    def action_start(self) -> None:
        self.go_to(1)

    def action_seek(self, by: int) -> None:
        here = self.playback.seq if self.playback.seq is not None else self.feed.times.end_seq
        self.go_to(here + by)

    def action_leap(self, by: int) -> None:
        times = self.feed.times
        active = self.playback.active if self.playback.seq is not None else times.end
        target = active + by * times.end / 20
        self.go_to(None if target >= times.end else times.seq(max(target, 0.0)))

    def action_speed(self, by: int) -> None:
        self.playback = self.playback.faster(by)
        self._show_timeline()

    def action_jump(self, kind: str, forward: bool) -> None:
        here = self.playback.seq if self.playback.seq is not None else self.feed.times.end_seq
        found = timeline.jump(self.marks, here, kind, forward)
        if found is None:
            self.console_app.tell(f"no {'later' if forward else 'earlier'} {kind or 'mark'}", "warning")
        else:
            self.go_to(found.seq)

    def on_timeline_bar_sought(self, message: TimelineBar.Sought) -> None:
        times = self.feed.times
        self.go_to(None if message.share >= 0.995 else times.seq(message.share * times.end))

    def on_list_pane_jump(self, message: ListPane.Jump) -> None:
        self.go_to(message.seq)

    # ---- panes ----------------------------------------------------------------------------------
    def action_pane(self, name: str) -> None:
        if name not in self.board.visible_panes:
            self.board.show(name)
        self._pane(name).focus()

    def action_detach(self) -> None:
        self.console_app.action_leave()

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
            self._remember()

    def action_reset_layout(self) -> None:
        self.board.choose(Choices())
        self._remember()

    def _remember(self) -> None:
        self.console_app.preferences.choices = self.board.choices
        self.console_app.preferences.save(self.console_app.home)

    # ---- filter ---------------------------------------------------------------------------------
    def action_filter(self) -> None:
        if isinstance(self.focused, ListPane):
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
        """Offer only what does something now; a filter being typed takes every key."""
        if isinstance(self.focused, Input) and action not in ("help", "command_palette"):
            return False
        allowed = self.allowed(action)
        return super().check_action(action, parameters) if allowed is None else allowed

    def action_yank(self) -> None:
        self.app.action_yank()  # type: ignore[attr-defined]

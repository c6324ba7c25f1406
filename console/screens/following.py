"""Following a session: its feed is read in one background thread, what it found is drawn on the UI loop."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from textual.screen import Screen

from rlgpt.console.feed import Feed
from rlgpt.console.panes.board import Board
from rlgpt.console.shell import shell_of
from rlgpt.console.view import news, timeline
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.timeline import Playback
from rlgpt.store.errors import StoreError

if TYPE_CHECKING:
    _Base = Screen[None]
else:
    _Base = object

POLL = 0.5
"""Seconds between two looks at the store: redraws are at most this frequent."""
MEASURE = 2.0
"""Seconds between two looks at processes and disk, while the system pane is shown."""


class Following(_Base):
    """A mixin of the session screen, which draws (`show`) what this hands it."""

    folder: Path
    feed: Feed
    moment: Moment | None
    playback: Playback
    marks: list[timeline.Mark]
    sent: dict[str, str]
    _start_at: int | None
    _plays_at_once: bool
    _thread: ThreadPoolExecutor
    _busy = False
    _opened_whole = False
    _fault = ""
    _known = news.Known("", "", {})

    if TYPE_CHECKING:

        @property
        def board(self) -> Board: ...

        def show(self, moment: Moment) -> None: ...

        def _redraw(self) -> None: ...

        def show_status(self) -> None: ...

        def _show_timeline(self) -> None: ...

    def follow(self) -> None:
        """Open the session and look at it again and again."""
        self.feed = Feed(self.folder, shell_of(self).clock)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="feed")
        self._in_thread(self._open)
        self.set_interval(POLL, self._poll)
        self.set_interval(MEASURE, self._measure)

    def unfollow(self) -> None:
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
        shell_of(self).settled()
        return lambda: self._opened(moment, marks)

    def _opened(self, moment: Moment, marks: list[timeline.Mark]) -> None:
        self._opened_whole = True
        self.marks = marks
        self.playback = self.playback.at(None if moment.live else moment.history.seq, self.feed.times)
        if self._plays_at_once and not moment.live:
            self.playback = Playback(self.playback.seq, self.playback.active, True, 1.0)
        if self.feed.notice:
            shell_of(self).tell(self.feed.notice, "warning")
        self._known = news.known(moment, self.sent)
        self.show(moment)
        self._in_thread(self._read_mappings)

    def _read_mappings(self) -> Callable[[], None]:
        more = self.feed.read_mappings()
        if more:
            self._in_thread(self._read_mappings)
            return lambda: None
        shell_of(self).settled()
        return self._redraw

    def _failed(self, sentence: str) -> None:
        if sentence != self._fault:
            self._fault = sentence
            shell_of(self).tell(sentence, "error")

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
            moment = self.feed.moment()
        except BaseException:
            self._busy = False
            raise
        return lambda: self._polled(marks, moment)

    def _idle(self) -> None:
        self._busy = False
        if self.moment is not None and self.moment.live:
            self.show_status()

    def _polled(self, marks: list[timeline.Mark], moment: Moment) -> None:
        self._busy = False
        if marks != self.marks:
            self.marks = marks
        self._announce(moment)
        if self.playback.seq is None:
            self.playback = self.playback.at(None, self.feed.times)
            self.show(moment)
        else:
            self._show_timeline()

    def _announce(self, moment: Moment) -> None:
        """A notification, with a bell when somebody is needed; in replay too."""
        now = news.known(moment, self.sent)
        for notice in news.since(self._known, now, moment, self.sent):
            shell_of(self).tell(notice.sentence, notice.severity, bell=notice.bell)
        self._known = now

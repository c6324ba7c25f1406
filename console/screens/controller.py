"""Following one session: its feed is read in one background thread, what it found is drawn on the UI loop.

The controller owns the feed and the timeline's cursor: where the session is looked at, played and jumped; live is its
right end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from rlgpt.console.feed import Feed
from rlgpt.console.shell import Shell
from rlgpt.console.view import news, timeline
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.timeline import Playback
from rlgpt.store.catalog import UNREADABLE, may_pass, why_unreadable
from rlgpt.store.errors import NoSession

POLL = 0.5
"""Seconds between two looks at the store: redraws are at most this frequent."""
MEASURE = 2.0
"""Seconds between two looks at processes and disk, while the system pane is shown."""
FRAME = 0.1
"""Seconds between two frames of a replay."""


class Canvas(Protocol):
    """What the controller draws on: the session screen."""

    def show(self, moment: Moment) -> None: ...

    def show_status(self) -> None: ...

    def show_fault(self, sentence: str) -> None: ...

    def show_timeline(self) -> None: ...

    def measures(self) -> bool:
        """Whether processes and disk are shown."""


class Controller:
    def __init__(self, folder: Path, shell: Shell, canvas: Canvas, start_at: int | None, plays: bool) -> None:
        """`start_at` is the row to begin with, None for live; `plays` begins to play there."""
        self.folder = folder
        self.feed = Feed(folder, shell.clock)
        self.moment: Moment | None = None
        self.playback = Playback()
        self.marks: list[timeline.Mark] = []
        self.sent: dict[str, str] = {}
        """Id -> words of the commands sent from this console."""
        self.opened = False
        """Whether the whole session was read once."""
        self._shell, self._canvas = shell, canvas
        self._start_at, self._plays_at_once = start_at, plays
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="feed")
        self._busy = self._closed = False
        self._fault = ""
        self._opens_again = False
        """It could not be opened, for a reason that may pass: the next look tries once more."""
        self._last_news = news.Known("", "", {})
        self._requested_row: int | None = None
        """The row asked for last, -1 for live."""

    # ---- following ------------------------------------------------------------------------------
    def follow(self) -> None:
        """Open the session. From then on, `poll` looks at it again."""
        self._in_thread(self._open)

    def close(self) -> None:
        self._closed = True
        self._thread.submit(self.feed.close)
        self._thread.shutdown(wait=False)

    def redraw(self) -> None:
        if self.moment is not None:
            self._canvas.show(self.moment)

    def _show(self, moment: Moment) -> None:
        self.moment = moment
        self._canvas.show(moment)

    def _in_thread(self, work: Callable[[], Callable[[], None] | None]) -> None:
        """Run `work` in the feed's thread and what it returns on the UI loop."""

        def run() -> None:
            try:
                after = work()
            except (*UNREADABLE, OSError) as error:  # damaged rows do not fold: say so, as the list does
                sentence = why_unreadable(self.folder, error)
                gone, passing = isinstance(error, NoSession), may_pass(error)
                after = lambda: self._failed(sentence, gone, passing)  # noqa: E731
            if after and not self._closed:
                with contextlib.suppress(RuntimeError):  # the screen was closed meanwhile
                    self._shell.call_from_thread(after)

        with contextlib.suppress(RuntimeError):
            self._thread.submit(run)

    def _open(self) -> Callable[[], None] | None:
        first = self.feed.connect() if self._start_at is None else None
        if first is not None:
            self._in_thread(self._open_whole)
            return lambda: self._show(first)
        return self._open_whole()

    def _open_whole(self) -> Callable[[], None]:
        self.feed.open()
        moment, marks = self.feed.moment(self._start_at), timeline.marks(self.feed.head())
        newest = moment if moment.live else self.feed.moment()
        self._shell.settled()
        return lambda: self._opened(moment, newest, marks)

    def _opened(self, moment: Moment, newest: Moment, marks: list[timeline.Mark]) -> None:
        self.opened = True
        self.marks = marks
        self.playback = self.playback.at(None if moment.live else moment.history.seq, self.feed.times)
        if self._plays_at_once and not moment.live:
            self.playback = Playback(self.playback.seq, self.playback.active, True, 1.0)
        if self.feed.notice:
            self._shell.tell(self.feed.notice, "warning")
        self._fault = ""
        self._canvas.show_fault("")  # of tries before
        self._last_news = news.known(newest, self.sent)  # in a replay too: what has happened before is no news
        self._show(moment)
        self._in_thread(self._read_mappings)

    def _read_mappings(self) -> Callable[[], None]:
        more = self.feed.read_mappings()
        if more:
            self._in_thread(self._read_mappings)
            return lambda: None
        self._shell.settled()
        return self.redraw

    def _failed(self, sentence: str, gone: bool, passing: bool) -> None:
        """`gone`: there is no session any more, so nothing new is looked for. `passing`: another program locks it, or
        the like; one that could not be opened for that is tried again."""
        if sentence != self._fault:
            self._fault = sentence
            self._shell.tell(sentence, "error")
        if gone:
            self.opened = False
        self._opens_again = passing and not gone and not self.opened
        if gone or self.moment is None:
            self._canvas.show_fault(sentence)

    def poll(self) -> None:
        """Look at the session again, every `POLL` seconds."""
        if self._opens_again:
            self._opens_again = False
            self._in_thread(self._open if self.moment is None else self._open_whole)
        if not self._busy and self.opened:
            self._busy = True
            self._in_thread(self._poll_in_thread)

    def measure(self) -> None:
        """Look at processes and disk, every `MEASURE` seconds."""
        if self.opened and self._canvas.measures():
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
            self.moment = replace(self.moment, now=self._shell.clock())
            self._canvas.show_status()

    def _polled(self, marks: list[timeline.Mark], moment: Moment) -> None:
        self._busy = False
        if marks != self.marks:
            self.marks = marks
        self._announce(moment)
        if self.playback.seq is None:
            self.playback = self.playback.at(None, self.feed.times)
            self._show(moment)
        else:
            self._canvas.show_timeline()

    def _announce(self, moment: Moment) -> None:
        """A notification, with a bell when somebody is needed; in replay too."""
        now = news.known(moment, self.sent)
        for notice in news.since(self._last_news, now, moment, self.sent, self._shell.user_keys):
            self._shell.tell(notice.sentence, notice.severity, bell=notice.bell)
        self._last_news = now

    # ---- the cursor -----------------------------------------------------------------------------
    def go_to(self, seq: int | None) -> None:
        """Move the timeline's cursor; None is live."""
        if self.moment is None:
            return
        self.playback = self.playback.at(seq, self.feed.times)
        self._canvas.show_timeline()
        self._want()

    def _want(self) -> None:
        """Ask for the moment at the cursor; of several requests only the last is answered."""
        target = self.playback.seq
        self._requested_row = target if target is not None else -1

        def read() -> Callable[[], None] | None:
            if self._requested_row != (target if target is not None else -1):
                return None
            moment = self.feed.moment(target)
            return lambda: self._show(moment)

        self._in_thread(read)

    def tick(self) -> None:
        """Play on, every `FRAME` seconds."""
        if not self.playback.playing:
            return
        before = self.playback.seq
        self.playback = self.playback.ticked(FRAME, self.feed.times)
        self._canvas.show_timeline()
        if self.playback.seq != before:
            self._want()

    @property
    def _here(self) -> int:
        return self.playback.seq if self.playback.seq is not None else self.feed.times.end_seq

    def play(self) -> None:
        """Play from the cursor, or stop."""
        p = self.playback
        if p.seq is None:
            self.go_to(1)
            p = self.playback
        self.playback = Playback(p.seq, p.active, not p.playing, p.speed)
        self._canvas.show_timeline()

    def seek(self, by: int) -> None:
        """`by` rows on."""
        self.go_to(self._here + by)

    def leap(self, by: int) -> None:
        """`by` twentieths of the timeline on."""
        self.go_to(timeline.leap(self.playback, by / 20, self.feed.times))

    def speed(self, by: int) -> None:
        self.playback = self.playback.faster(by)
        self._canvas.show_timeline()

    def jump(self, kind: str, forward: bool) -> None:
        """To the next or previous mark of a kind, "" for any."""
        mark = timeline.jump(self.marks, self._here, kind, forward)
        if mark is None:
            self._shell.tell(f"no {'later' if forward else 'earlier'} {kind or 'mark'}", "warning")
        else:
            self.go_to(mark.seq)

    def go_to_share(self, share: float) -> None:
        """To a place of the timeline, 0 its beginning, 1 live."""
        times = self.feed.times
        self.go_to(None if share >= 0.995 else times.seq(share * times.end))

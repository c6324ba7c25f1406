"""The timeline's cursor: where the session is looked at, played and jumped; live is its right end."""

from __future__ import annotations

from collections.abc import Callable

from rlgpt.console.panes.bars import TimelineBar
from rlgpt.console.panes.session_panes import ListPane
from rlgpt.console.screens.following import Following
from rlgpt.console.shell import shell_of
from rlgpt.console.view import timeline
from rlgpt.console.view.timeline import Playback

FRAME = 0.1
"""Seconds between two frames of a replay."""


class Cursor(Following):
    """A mixin of the session screen."""

    _wanted: int | None = None
    """The row asked for last, -1 for live."""

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
        self.go_to(timeline.leap(self.playback, by / 20, self.feed.times))

    def action_speed(self, by: int) -> None:
        self.playback = self.playback.faster(by)
        self._show_timeline()

    def action_jump(self, kind: str, forward: bool) -> None:
        here = self.playback.seq if self.playback.seq is not None else self.feed.times.end_seq
        found = timeline.jump(self.marks, here, kind, forward)
        if found is None:
            shell_of(self).tell(f"no {'later' if forward else 'earlier'} {kind or 'mark'}", "warning")
        else:
            self.go_to(found.seq)

    def on_timeline_bar_sought(self, message: TimelineBar.Sought) -> None:
        times = self.feed.times
        self.go_to(None if message.share >= 0.995 else times.seq(message.share * times.end))

    def on_list_pane_jump(self, message: ListPane.Jump) -> None:
        self.go_to(message.seq)

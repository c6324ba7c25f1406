"""What a console shows of a session, hashed: by one that follows it while it runs, by one that replays it later."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rlgpt.console.charts.plot import draw
from rlgpt.console.feed import Feed
from rlgpt.console.view import code, logs, plan, status, timeline, verdicts, world
from rlgpt.console.view.curves import CHARTS, Charts, Options
from rlgpt.console.view.moment import Moment, Worker
from rlgpt.console.view.text import Line
from rlgpt.store.row_types import Change

WIDTH, HEIGHT = 100, 24
SHARE = 0.4
"""Of the rows, after which the live view is hashed."""


class Screen:
    """Draws moments; like the code pane it keeps what it coloured."""

    def __init__(self) -> None:
        self._sources: dict[object, list[Line]] = {}

    def shown(self, moment: Moment) -> dict[str, str]:
        """Every pane and the fold behind it as text, but for what is no part of a session's rows: the clock, the
        worker's processes, commands that nobody has taken, and how far the timeline goes on to the right."""
        h = moment.history
        m = replace(moment, live=False, now=h.at, worker=Worker(), queued=(), end_seq=h.seq)
        charts = Charts(m, Options(), None)
        panes: dict[str, object] = {
            "fold": h,
            "title": status.title(m, WIDTH),
            "plan": plan.entries(m, WIDTH),
            "verdicts": verdicts.entries(m, WIDTH),
            "log": logs.log_entries(m, WIDTH),
            "calls": logs.call_entries(m, WIDTH),
            "world": world.entries(m, None, WIDTH, HEIGHT),
            "marks": timeline.marks(h),
            "code": self._code(m),
        }
        panes |= {f"chart {chart.key}": draw(charts.plot(chart), 50, 10) for chart in CHARTS}
        return {name: repr(pane) for name, pane in panes.items()}

    def hash(self, moment: Moment) -> str:
        return hashlib.blake2b(repr(self.shown(moment)).encode(), digest_size=16).hexdigest()

    def _code(self, m: Moment) -> object:
        attempt, before = code.chosen(m.history, code.Choice())
        if attempt is None:
            return code.empty(m, WIDTH)
        head = code.tabs(m.history, attempt, WIDTH) + code.facts(m.history, attempt, before, WIDTH)
        key = (attempt.sub_action, attempt.version, bool(attempt.trial), bool(attempt.verdict))
        if key not in self._sources:
            source, old = m.text(attempt.source_hash) or "", m.text(before.source_hash) if before else None
            self._sources[key] = code.source_lines(source, old, attempt, WIDTH)
        return head + self._sources[key]


class _Watched(Feed):
    """A feed that is looked at after single rows too: a cursor may stand at any of them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.logged: dict[int, str] = {}
        self._screen = Screen()
        self._random = random.Random(0)

    def _take(self, rows: list[Change]) -> None:
        for row in rows:
            super()._take([row])
            if self._random.random() < SHARE:
                self.log()

    def log(self) -> None:
        moment = self.moment()
        self.logged[moment.history.seq] = self._screen.hash(moment)


class Follower:
    """A console's reading and drawing without its terminal, in a thread, from the first row to the end of the block."""

    def __init__(self, folder: Path) -> None:
        self._feed = _Watched(folder)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._follow)
        self._failure: BaseException | None = None

    @property
    def logged(self) -> dict[int, str]:
        """seq -> hash of what it showed then."""
        return self._feed.logged

    def __enter__(self) -> Follower:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        if self._failure:
            raise self._failure

    def _follow(self) -> None:
        try:
            self._feed.open()
            while True:
                last = self._done.is_set()
                if self._feed.poll() or last:
                    self._feed.log()
                if last:
                    return
                self._done.wait(0.01)
        except BaseException as error:
            self._failure = error
        finally:
            self._feed.close()


def replayed(folder: Path, cursors: list[int]) -> Iterator[tuple[int, str]]:
    """(cursor, hash) of what a console that was opened afterwards shows there."""
    feed, screen = Feed(folder), Screen()
    feed.open()
    while feed.read_mappings():
        pass
    try:
        for cursor in cursors:
            yield cursor, screen.hash(feed.moment(cursor))
    finally:
        feed.close()

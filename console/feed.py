"""A session as the console follows it: read in one background thread, handed over as moments.

The store is read and folded here and nowhere else in the console. Live is the moment at the end; a cursor gives
the same object for an earlier row. Everything but `Details` is called from the feed's own thread.
"""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from rlgpt.console.machine import Meter, sizes
from rlgpt.console.view import happenings
from rlgpt.console.view.happenings import LogLine
from rlgpt.console.view.metrics import SCALARS, MetricTable
from rlgpt.console.view.moment import Moment, Worker
from rlgpt.console.view.timeline import TimeMap
from rlgpt.console.view.words import bound
from rlgpt.console.watch import Watch
from rlgpt.store import films, live_calls, progress
from rlgpt.store.address import behind_since
from rlgpt.store.catalog import require_shown, summarised
from rlgpt.store.errors import NoSession, StoreError
from rlgpt.store.event_payloads import kind_of, read_event
from rlgpt.store.events import Probed, TrainerDied
from rlgpt.store.films import FilmPlace, Frame
from rlgpt.store.folder import DATABASE
from rlgpt.store.history import History, fold, fold_all
from rlgpt.store.lease import owner
from rlgpt.store.reader import HEAVY, Reader
from rlgpt.store.row_types import Change, CommandRow, EpisodeRow, EventRow, FrameRow, LlmCallRow, LogRow, MetricRow
from rlgpt.store.timeline import Timeline

CHUNK = 1_000
"""Rows read at a time: short enough that the screen answers between two."""
LONG = 5_000
"""Rows from which a session is shown before it is folded."""
STEP = 400
"""Rows that a seek folds on from the moment before, rather than from a kept state."""
RECORDED = "actions"
"""The column of an episode that no pane shows: every command of the episode."""
TELLING = (
    "started",
    "resumed",
    "phase",
    "waiting",
    "plan_in_force",
    "plan_waiting",
    "plan_rejected",
    "training_ended",
    "ended",
)
"""Events that a first moment needs."""


class Feed:
    """One session. `open` first; then `poll` now and then, and `moment` for what to draw."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.times = TimeMap()
        self.metrics = MetricTable()
        self._clock = clock
        self._logs: list[LogLine] = []
        """What was logged, and every other row that says something in a line; by seq."""
        self._last_logged_seq = 0
        self._calls: list[LlmCallRow] = []
        self._films: list[FilmPlace] = []
        self._episodes: list[EpisodeRow] = []
        self._inbox: list[CommandRow] = []
        self._deaths: list[tuple[int, TrainerDied]] = []
        self._probes: list[tuple[int, Probed]] = []
        self._head = History()
        self._version = -1
        self._worker = Worker()
        self._watch = Watch()
        self._mappings_from: int | None = None
        self._near: History | None = None
        self._usage: Mapping[str, Any] = {}
        self._sizes: Mapping[str, Any] = {}
        self._meter = Meter()

    # ---- reading --------------------------------------------------------------------------------
    def connect(self) -> Moment | None:
        """Open the store. A long session has a first moment at once: its curves are whole, its plan and runs as
        they are, only sums and commands are still to be folded. Raises StoreError with a sentence.
        """
        self._file = _file_number(self.folder)
        self._reader = Reader(self.folder)
        self.details = Details(self.folder)
        self._timeline = Timeline(self._read)
        self._version = self._reader.data_version()
        last = self._reader.last_seq()
        self._read_metrics(last)
        if last < LONG:
            return None
        rows = self._reader.changes_since(0, None, without=HEAVY | {"event", "checkpoint"})
        for kind in TELLING:
            rows += [("event", row) for row in self._reader.rows(EventRow, {"kind": kind})]
        history = fold_all(sorted(rows, key=lambda change: int(change[1]["seq"])))
        history.seq = last
        for number, run in history.runs.items():
            of_run = self.metrics.column("env_steps")[self.metrics.column("run") == number]
            run.env_steps = int(of_run[-1]) if len(of_run) else 0
        self._head = history
        self._require_shown()
        self.times.preview(last, history.active)
        self._look()
        return self.moment()

    def open(self) -> None:
        """Folds the whole session. Raises StoreError with a sentence."""
        if not hasattr(self, "_reader"):
            self.connect()
        self.times = TimeMap()
        self._head = self._timeline.at()
        self._require_shown()
        self._first_rows()
        self._look()

    def _require_shown(self) -> None:
        """Raises ValueError and the like for what no list shows either: panes could not draw it."""
        if self._head.session:
            require_shown(summarised(self.folder.name, self._head))

    @property
    def notice(self) -> str:
        return self._reader.notice

    def _read(self, after: int, upto: int | None, limit: int | None) -> list[Change]:
        rows = self._reader.folded_since(after, limit, upto)
        if rows and rows[-1][1]["seq"] > self.times.end_seq:
            for change in rows:
                self.times.add(change[1]["seq"], change[1]["active"])
                if change[0] not in ("log", "llm_call"):  # what they say is not read here
                    self._tell(change)
        return rows

    def _tell(self, change: Change) -> None:
        if change[1]["seq"] > self._last_logged_seq:
            self._last_logged_seq = change[1]["seq"]
            if line := happenings.logged(change):
                self._logs.append(line)

    def _first_rows(self) -> None:
        seq, reader = self._head.seq, self._reader
        shown = self.metrics.upto(seq)
        if shown < self._head.counts.get("metric", 0):
            self.metrics.extend_scalars(reader.matrix("metric", SCALARS, upto_seq=seq)[shown:])
        self._mappings_from = 0 if len(self.metrics) else None
        self._calls = reader.rows(LlmCallRow, upto_seq=seq)
        failed = [line for row in self._calls if (line := happenings.logged(("llm_call", row)))]
        rows = [*self._logs, *reader.rows(LogRow, upto_seq=seq), *failed]
        self._logs = sorted(rows, key=lambda row: int(row["seq"]))
        self._deaths, self._probes = [], []
        for kind in (TrainerDied, Probed):
            for row in reader.rows(EventRow, {"kind": kind_of(kind)}, upto_seq=seq):
                self._take_event(row)
        self._films = []
        for *place, form in reader.matrix("frame", (*FilmPlace._fields, "format"), upto_seq=seq):
            films.add(self._films, FilmPlace(*place), form)
        columns = [name for name in reader.columns("episode") if name != RECORDED]
        self._episodes = reader.rows(EpisodeRow, upto_seq=seq, columns=columns)
        self._inbox = reader.commands()

    def _read_metrics(self, upto: int) -> None:
        self.metrics.extend_scalars(self._reader.matrix("metric", SCALARS, upto_seq=upto))

    def read_mappings(self) -> bool:
        """Reads the mappings of some metric rows that were left for later; False when none are left."""
        if self._mappings_from is None:
            return False
        start = self._mappings_from
        seq = self.metrics.column("seq")
        if start >= len(seq):
            self._mappings_from = None
            return False
        last = int(seq[min(start + CHUNK, len(seq)) - 1])
        rows = self._reader.rows(MetricRow, after_seq=int(seq[start]) - 1, upto_seq=last)
        self.metrics.fill_mappings(start, rows)
        self._mappings_from = start + len(rows)
        return True

    def poll(self) -> bool:
        """Reads what was committed since; whether there is anything new to draw. Raises NoSession once its folder is
        gone, or another database is in it: a deleted file that is open can still be read."""
        try:
            file = _file_number(self.folder)
        except FileNotFoundError as error:
            sentence = f"session {self.folder.name} is no longer in this store: it was deleted or moved"
            raise NoSession(sentence) from error
        if file != self._file:  # the file that is open is written by nobody any more
            raise NoSession(f"another copy of session {self.folder.name} has taken its place: open it again")
        if self._reader.is_outdated():
            self._read_anew()
        version = self._reader.data_version()
        changed = version != self._version
        if changed:
            self._version = version
            self._inbox = self._reader.commands()
            while rows := self._reader.changes_since(self._head.seq, CHUNK):
                self._take(rows)
                if len(rows) < CHUNK:
                    break
        return self._look() or changed

    def _read_anew(self) -> None:
        """A copy of an older session was read; a worker has brought the session itself up to date and writes to it."""
        self._reader.close()
        self._reader = Reader(self.folder)
        self.details = Details(self.folder)  # moments of before keep their own
        self._timeline = Timeline(self._read)
        self._version = -1

    def _take(self, rows: list[Change]) -> None:
        metrics: list[MetricRow] = []
        for change in rows:
            fold(self._head, *change)
            self._tell(change)
            self.times.add(change[1]["seq"], change[1]["active"])
            match change:
                case ("metric", row):
                    metrics.append(row)
                case ("llm_call", row):
                    self._calls.append(row)
                case ("event", row):
                    self._take_event(row)
                case ("frame", row):
                    place = FilmPlace(row["seq"], row["source"], row["owner"], row["episode"])
                    films.add(self._films, place, row["format"])
                case ("episode", row):
                    row["actions"] = None
                    self._episodes.append(row)
        if metrics:
            while self._mappings_from is not None and self.read_mappings():
                pass
            self.metrics.extend(metrics)

    def _take_event(self, row: EventRow) -> None:
        """Keep the events of which the console shows more than the fold keeps."""
        if row["kind"] not in (kind_of(TrainerDied), kind_of(Probed)):
            return
        match read_event(row["kind"], row["payload"]):
            case TrainerDied() as death:
                self._deaths.append((row["seq"], death))
            case Probed() as probe:
                self._probes.append((row["seq"], probe))

    def _look(self) -> bool:
        """Look at the worker's process and heartbeat; returns whether something changed."""
        before = self._worker
        lock = owner(self.folder)
        beat = progress.read(self.folder)
        silent = self._watch.silent(beat, self._clock())
        settings = self._head.session.get("settings", {})
        allowed = bound(self._head.phase.name, settings)
        late = silent is not None and self._head.status == "running" and silent > allowed
        self._worker = Worker(
            alive=lock is not None,
            status=self._head.status,
            overdue=(silent or 0.0) - allowed if late else 0.0,
            beat=beat["at"] if beat else None,
            what=str(beat.get("what", "")),
            next_try=beat.get("next_try"),
            behind_since=behind_since(self.folder, self._clock()) if lock else 0.0,
            calls=live_calls.read(self.folder) if lock else (),
            pid=lock.pid if lock else 0,
            host=lock.host if lock else "",
            usage=self._usage,
            sizes=self._sizes,
        )
        return before != self._worker

    def measure(self) -> None:
        """Look at the worker's processes and the disk; for the system pane only, it takes some milliseconds."""
        lock = owner(self.folder)
        self._usage = self._meter.usage(lock.pid) if lock else {}
        self._sizes = sizes(self.folder)

    # ---- moments --------------------------------------------------------------------------------
    @property
    def end_seq(self) -> int:
        return self._head.seq

    def moment(self, seq: int | None = None) -> Moment:
        """The session up to row `seq`; None or the end is live."""
        live = seq is None or seq >= self._head.seq
        history = self._head.copy() if live else self._at(int(seq or 0))
        upto = history.seq
        return Moment(
            history,
            live,
            self._clock() if live and history.status != "ended" else history.at,
            self.metrics,
            self._logs[: _upto(self._logs, upto)],
            self._calls[: _upto(self._calls, upto)],
            self._films[: bisect.bisect_right(self._films, upto, key=lambda film: film.seq)],
            [c for c in self._inbox if c["id"] not in self._head.commands] if live else (),
            self._worker,
            self.details.text,
            self.details.film,
            [death for at, death in self._deaths if at <= upto],
            self._head.seq,
            self._episodes[: _upto(self._episodes, upto)],
            [probe for at, probe in self._probes if at <= upto],
        )

    def _at(self, seq: int) -> History:
        """The fold up to `seq`: a short way on from the last one asked for, else from a kept state."""
        near = self._near
        if near is not None and near.seq <= seq <= near.seq + STEP:
            history = (
                fold_all(self._read(near.seq, seq, seq - near.seq), near.copy()) if seq > near.seq else near.copy()
            )
        else:
            history = self._timeline.at(seq)
        self._near = history.copy()
        return history

    def head(self) -> History:
        """The session up to its newest row, for the marks of the timeline."""
        return self._head.copy()

    def close(self) -> None:
        if hasattr(self, "_reader"):
            self._reader.close()
            self.details.close()


def _file_number(folder: Path) -> int:
    """Which file the session's database is. Raises FileNotFoundError."""
    return (folder / DATABASE).stat().st_ino


def _upto(rows: Sequence[LogLine] | Sequence[LlmCallRow] | Sequence[EpisodeRow], seq: int) -> int:
    return bisect.bisect_right(rows, seq, key=lambda row: row["seq"])


class Details:
    """Single rows on demand, on their own connection: a stored text, the frames of a film. Any thread."""

    def __init__(self, folder: Path) -> None:
        self._reader = Reader(folder)
        self.text = lru_cache(maxsize=256)(self._text)
        self.film = lru_cache(maxsize=16)(self._film)

    def _text(self, name: str) -> str | None:
        try:
            return self._reader.text(name)
        except StoreError as error:
            return f"({error})"

    def _film(self, seq: int) -> list[Frame]:
        rows = self._reader.rows(FrameRow, {"seq": seq})
        if rows and not rows[0]["format"].startswith(films.FORMAT):  # each frame has a row
            last = rows[0]
            episode = {"source": last["source"], "owner": last["owner"], "episode": last["episode"]}
            rows = self._reader.rows(FrameRow, episode | {"incarnation": last["incarnation"]}, upto_seq=seq)
        return films.unpacked(rows)

    def close(self) -> None:
        self._reader.close()

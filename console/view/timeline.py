"""The timeline: moments worth jumping to, the clock of a replay, and the two lines at the bottom."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rlgpt.console.view.numbers import clock
from rlgpt.console.view.text import Line, Span, fit, line, spread
from rlgpt.store.history import History, PlanState

SPEEDS = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0)


class Mark(NamedTuple):
    seq: int
    kind: str
    """plan | code | verdict | override | iteration | resume | end."""
    label: str


GLYPHS = {
    "plan": ("◆", "mark_plan"),
    "code": ("▪", "mark_code"),
    "verdict": ("▲", "mark_verdict"),
    "override": ("●", "mark_override"),
    "iteration": ("┃", "mark_iteration"),
    "resume": ("↻", "warn"),
    "end": ("■", "bold"),
}
_RANK = ("code", "verdict", "plan", "resume", "end", "iteration", "override")


def whole(plan: PlanState) -> int:
    """The last row of a plan: its sub-actions are written after it, in the same transaction."""
    return plan.seq + len(plan.items)


def marks(h: History) -> list[Mark]:
    """In order of seq."""
    all_marks = [
        Mark(whole(p), "override" if p.author == "operator" else "plan", f"plan {p.revision} by {p.author}")
        for p in h.plans.values()
    ]
    for a in h.attempts:
        all_marks.append(Mark(a.seq, "code", f"{a.sub_action} v{a.version}"))
        if a.verdict:
            all_marks.append(Mark(a.verdict.seq, "verdict", f"verdict on {a.sub_action} v{a.version}"))
    for i in h.iterations:
        all_marks.append(Mark(i.seq, "iteration", f"iteration {i.number}"))
        if i.verdict:
            all_marks.append(Mark(i.verdict.seq, "verdict", f"verdict on iteration {i.number}"))
    all_marks += [Mark(c.seq, "override", f"{c.kind.replace('_', ' ')} {c.state}") for c in h.commands.values()]
    all_marks += [Mark(a.seq, "override", f"advice to the {a.agent}") for a in h.advice]
    return sorted(set(all_marks))


def jump(all_marks: Sequence[Mark], seq: int, kind: str, forward: bool) -> Mark | None:
    """The next mark of `kind` ("" for any) strictly after (before) `seq`."""
    of_kind = [m for m in all_marks if kind in ("", m.kind)]
    if forward:
        return next((m for m in of_kind if m.seq > seq), None)
    return next((m for m in reversed(of_kind) if m.seq < seq), None)


def leap(playback: Playback, by: float, times: TimeMap) -> int | None:
    """The row a share `by` of the timeline away, at least one row on; None is the end."""
    here = playback.seq if playback.seq is not None else times.end_seq
    active = playback.active if playback.seq is not None else times.end
    target = active + by * times.end
    if target >= times.end:
        return None
    seq = times.seq(max(target, 0.0))
    return max(seq, here + 1) if by > 0 else min(seq, here - 1)


class TimeMap:
    """Active seconds by seq and back, from a sparse index of rows."""

    def __init__(self) -> None:
        self._seq: list[int] = []
        self._active: list[float] = []

    def add(self, seq: int, active: float) -> None:
        """Add rows in order; not every row must be given."""
        if self._seq and seq <= self._seq[-1]:
            return
        self._seq.append(seq)
        self._active.append(max(active, self._active[-1] if self._active else 0.0))

    def preview(self, seq: int, active: float) -> None:
        """Only the two ends, until the rows between are known."""
        self._seq, self._active = [0, seq], [0.0, active]

    @property
    def end(self) -> float:
        return self._active[-1] if self._active else 0.0

    @property
    def end_seq(self) -> int:
        return self._seq[-1] if self._seq else 0

    def active(self, seq: int) -> float:
        index = bisect_right(self._seq, seq) - 1
        return self._active[index] if index >= 0 else 0.0

    def seq(self, active: float) -> int:
        """The last row at or before `active`."""
        index = bisect_right(self._active, active) - 1
        return self._seq[index] if index >= 0 else (self._seq[0] if self._seq else 0)


@dataclass(frozen=True)
class Playback:
    """Where the cursor is. `seq` None: live, the right end."""

    seq: int | None = None
    active: float = 0.0
    playing: bool = False
    speed: float = 1.0

    def faster(self, step: int) -> Playback:
        index = SPEEDS.index(self.speed) + step
        return replace(self, speed=SPEEDS[min(max(index, 0), len(SPEEDS) - 1)])

    def at(self, seq: int | None, times: TimeMap) -> Playback:
        """The playback moved to `seq`; at or past the end, or for None, it is live and does not play."""
        if seq is None or seq >= times.end_seq:
            return replace(self, seq=None, active=times.end, playing=False)
        seq = max(seq, 1)
        return replace(self, seq=seq, active=times.active(seq))

    def ticked(self, seconds: float, times: TimeMap) -> Playback:
        """After `seconds` of the wall clock."""
        if not self.playing or self.seq is None:
            return self
        active = self.active + seconds * self.speed
        if active >= times.end:
            return self.at(None, times)
        return replace(self, active=active, seq=max(times.seq(active), self.seq))


class Track:
    """The marks on a line of `width` cells, placed once and drawn often."""

    def __init__(self, all_marks: Sequence[Mark], times: TimeMap, width: int) -> None:
        self.width = width
        self.cells: list[Span | None] = [None] * width
        rank = [-1] * width
        for mark in all_marks:
            column = column_of(times.active(mark.seq), times, width)
            level = _RANK.index(mark.kind)
            if level >= rank[column]:
                rank[column] = level
                self.cells[column] = Span(*GLYPHS[mark.kind])

    def line(self, times: TimeMap, playback: Playback) -> Line:
        cursor = self.width - 1 if playback.seq is None else column_of(playback.active, times, self.width)
        merged: list[Span] = []
        for column, cell in enumerate(self.cells):
            span = cell or (Span("━", "bar") if column < cursor else Span("─", "axis"))
            if column == cursor:
                span = Span(cell.text if cell else "█", "cursor")
            if merged and merged[-1].style == span.style:
                merged[-1] = Span(merged[-1].text + span.text, span.style)
            else:
                merged.append(span)
        return tuple(merged)


def column_of(active: float, times: TimeMap, width: int) -> int:
    return min(max(round(active / times.end * (width - 1)), 0), width - 1) if times.end > 0 else 0


def legend(all_marks: Sequence[Mark], times: TimeMap, playback: Playback, live: bool, width: int) -> Line:
    end = times.end_seq
    if playback.seq is None:
        state = Span(" LIVE " if live else " END ", "badge_live" if live else "badge")
    else:
        state = Span(" ▶ PLAY " if playback.playing else " ❚❚ REPLAY ", "badge_warn")
    left = [
        state,
        Span(f" {clock(playback.active if playback.seq is not None else times.end)}", "bold"),
        Span(f" / {clock(times.end)} active", "dim"),
    ]
    if playback.seq is not None:
        left += [Span(f"  row {playback.seq:,} of {end:,}", "dim"), Span(f"  {playback.speed:g}x", "bold")]
        place = bisect_right(all_marks, playback.seq, key=lambda mark: mark.seq)
        if place:
            glyph, style = GLYPHS[all_marks[place - 1].kind]
            left += [Span(f"  {glyph} ", style), Span(all_marks[place - 1].label, "")]
    key = []
    if width >= 100:
        for kind in ("plan", "code", "verdict", "override"):
            glyph, style = GLYPHS[kind]
            key += [Span(f" {glyph}", style), Span(f" {kind} ", "dim")]
    return spread(left, key, width) if key else fit(line(*left), width)

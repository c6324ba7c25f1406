"""All that panes draw from: a session folded up to a cursor, and the heavy rows up to there.

Live is the moment at the end of the timeline; a replayed moment is the same object made with an earlier cursor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlgpt.console.view.happenings import LogLine
from rlgpt.console.view.metrics import MetricTable
from rlgpt.store.calls import is_rule_based
from rlgpt.store.events import Probed, TrainerDied
from rlgpt.store.films import FilmPlace, Frame
from rlgpt.store.history import History
from rlgpt.store.live_calls import LiveCall
from rlgpt.store.row_types import CommandRow, EpisodeRow, LlmCallRow


@dataclass(frozen=True)
class Worker:
    """What is known of the worker now, wherever the cursor is."""

    alive: bool = False
    status: str = ""
    """Of the session by its last row: created | running | paused | waiting | ended."""
    overdue: float = 0.0
    """Seconds by which progress is overdue for its phase, 0 when it is not."""
    beat: float | None = None
    """UTC seconds of the last progress, None before the first."""
    what: str = ""
    next_try: float | None = None
    """UTC seconds at which a model that did not answer is asked again."""
    calls: tuple[LiveCall, ...] = ()
    """Calls to a model that are under way."""
    behind_since: float = 0.0
    """UTC seconds of the last push to the team's store while that is away, 0.0 while it is not."""
    pid: int = 0
    host: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    """What `machine.Meter.usage` measured of the worker's process tree, for the system pane; empty before."""
    sizes: Mapping[str, float] = field(default_factory=dict)
    """What `machine.sizes` measured of its folder and disk, in bytes; empty before."""


@dataclass(frozen=True)
class Moment:
    history: History
    live: bool
    now: float
    """UTC seconds: the clock when live, the cursor's time in replay."""
    metrics: MetricTable
    logs: Sequence[LogLine] = ()
    calls: Sequence[LlmCallRow] = ()
    films: Sequence[FilmPlace] = ()
    queued: Sequence[CommandRow] = ()
    """Commands in the inbox that no worker has seen."""
    worker: Worker = field(default_factory=Worker)
    text: Callable[[str], str | None] = lambda _hash: None
    """A stored text by hash; None while it is being read."""
    film: Callable[[int], Sequence[Frame]] = lambda _seq: ()
    """The frames of a film by the seq of its place; empty where they were pruned or are damaged."""
    deaths: Sequence[TrainerDied] = ()
    end_seq: int = 0
    """The timeline's right end."""
    episodes: Sequence[EpisodeRow] = ()
    """episode rows, without their recorded actions."""
    probes: Sequence[Probed] = ()
    """What models tried before they answered."""

    @property
    def rules(self) -> bool:
        """Whether the built-in rule-based model answers in this session, or once gave the answers it repeats."""
        llm = self.history.session.get("settings", {}).get("llm", {})
        return is_rule_based(str(llm.get("kind", "")), (call["model"] for call in self.calls))

    @property
    def phase(self) -> str:
        return self.history.phase.name

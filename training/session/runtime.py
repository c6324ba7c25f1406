"""The parts of a running session: store, world, host, client of the agents, inbox.

Every step of the loop gets this and nothing else. Opened once per worker, closed once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from queue import SimpleQueue
from typing import Any, TypeVar

from rlgpt.agents.client import Client
from rlgpt.agents.context import Context
from rlgpt.agents.loop import Limits
from rlgpt.store import events, films, tables, training_series
from rlgpt.store.errors import DiskFull
from rlgpt.store.folder import SessionFolder
from rlgpt.store.history import History, Item
from rlgpt.store.lease import TrainingSlot
from rlgpt.store.progress import Progress
from rlgpt.store.reader import Reader
from rlgpt.store.row_types import JsonObject, MetricRow
from rlgpt.store.settings import Settings
from rlgpt.store.states import MODEL, SLOT
from rlgpt.store.writer import Transaction, Writer
from rlgpt.training.host.api import Admission, Host
from rlgpt.training.options.film import FrameSnapshot
from rlgpt.training.session.command_replay import CommandReplay
from rlgpt.training.session.inbox import Inbox
from rlgpt.training.worlds.protocol import World

T = TypeVar("T")


class Interrupted(Exception):
    """A step was left because the operator stopped the session; nothing of it is kept."""


@dataclass
class SessionRuntime:
    folder: SessionFolder
    settings: Settings
    writer: Writer
    reader: Reader
    world: World
    host: Host
    client: Client
    limits: Limits
    progress: Progress
    inbox: Inbox
    apply: Callable[[SessionRuntime], None]
    """Applies what is in the inbox (`commands.apply_pending`)."""
    slot: TrainingSlot
    command_replay: CommandReplay = field(default_factory=CommandReplay)
    """The operator's commands of the session that is replayed."""
    reworded: bool = False
    """Whether this replays answers to questions with other words: such an answer is taken as it was then."""
    skills: list[Mapping[str, Any]] = field(default_factory=list)
    admissions: dict[tuple[str, str], Admission] = field(default_factory=dict)
    """(kind, source) -> admission in this worker's host."""
    admitting: threading.Lock = field(default_factory=threading.Lock)
    """Held while the host admits a source: from the thread of a call to a model, or from that of the loop."""
    dry: dict[str, list[list[bytes]]] = field(default_factory=dict)
    """Task -> recorded views for dry runs."""
    sheets: dict[str, dict[str, Any]] = field(default_factory=dict)
    stop_signal: bool = False
    """Set by SIGTERM: leave at the next poll; the session can be resumed."""
    clock: int | None = None
    """Where PPO stands (Observer.clock) while it asks for commands."""
    _texts: dict[str, str] = field(default_factory=dict)
    _errands: SimpleQueue[Callable[[], None]] = field(default_factory=SimpleQueue)
    """What the thread of the call that is under way wants to be done in the loop's."""

    @property
    def history(self) -> History:
        return self.writer.history

    @property
    def seed(self) -> int:
        return self.settings.seed

    @cached_property
    def session_task(self) -> str:
        return self.settings.task

    def task_of(self, sub_task: int) -> str:
        """The world's task of a sub-task: the planner's where there is one, else the session's."""
        plans = self.history.task_plans
        return str(plans[-1].sub_tasks[sub_task]["task"]) if plans else self.session_task

    @property
    def task(self) -> str:
        return self.task_of(self.history.sub_task)

    def context(self) -> Context:
        """What the agents may see now; it stays as it is while they are asked, whatever the operator does meanwhile."""
        if self.task not in self.sheets:
            self.sheets[self.task] = self.world.sheet(self.task) | {
                "features": {f.name: f.doc for f in self.world.features.values()},
                "default_features": list(self.world.default_features),
                "targets": list(self.world.targets),
            }
        return Context(
            history=self.history.copy(),
            sheet=self.sheets[self.task],
            task=self.world.tasks[self.task],
            limits=self.limits,
            skills=self.skills,
            text=self.source,
            series=self.series,
            env_steps_left=self.env_steps_left(),
            restorable=self.world.restorable,
        )

    def series(self, run: int) -> JsonObject:
        """Ten points of a training run."""
        rows = self.reader.rows(MetricRow, {"run": run}, columns=training_series.COLUMNS)
        hidden = self.history.runs[run].hidden
        return training_series.training_series(
            [row for row in rows if not any(after < row["seq"] < before for after, before in hidden)]
        )

    def env_steps_left(self) -> int:
        most = self.history.budgets.get("env_steps", self.settings.budget.env_steps)
        return max(0, int(most) - self.history.spent.env_steps) if most else 100_000_000

    def source(self, source_hash: str) -> str:
        """A stored text, such as a coded action's source, by its hash."""
        if source_hash not in self._texts:
            self._texts[source_hash] = self.reader.text(source_hash)
        return self._texts[source_hash]

    def item(self, name: str) -> Item:
        plan = self.history.plan
        item = plan.item(name) if plan else None
        if item is None:
            raise KeyError(f"the plan in force has no sub-action {name!r}")
        return item

    # ---- patience ---------------------------------------------------------------------------------
    def poll(self) -> None:
        """Called at least ten times a second by everything that takes long: takes commands, sits out a pause.

        Raises Interrupted once a stop was requested, DiskFull.
        """
        self.need_room()
        self.apply(self)
        if self.history.pause_requested and not self.history.stop_requested:
            self._sit_out_pause()
        if self.history.stop_requested:
            raise Interrupted

    def need_room(self) -> None:
        """Raises DiskFull where the storage law lets no session go on; what is begun is done again on a resume."""
        if self.writer.room() == "none":
            raise DiskFull(
                f"the disk of {self.folder.path} is nearly full: make room (`rlgpt store prune`), then `rlgpt resume` "
                "the session"
            )

    def _sit_out_pause(self) -> None:
        phase = self.history.phase
        while self.history.pause_requested and not self.history.stop_requested:
            self.slot.give_back()
            self.say_waiting("paused")
            while self.history.pause_requested and not self.history.stop_requested:
                time.sleep(0.1)
                self.apply(self)
            self.take_slot()
        self.writer.event(phase, durable=False)
        for role, why in self.client.away.copy().items():
            self.say_waiting(MODEL, role=role, why=why)

    def take_slot(self) -> None:
        """Wait until the session may train again, or is to do something else: it is paused or stopped."""
        announced = False
        while not (self.history.stop_requested or self.history.pause_requested or self.slot.take()):
            if not announced:
                self.say_waiting(SLOT)
                announced = True
            time.sleep(0.5)
            self.need_room()
            self.apply(self)

    def ask(self, call: Callable[[], T]) -> T:
        """Run one LLM call beside the loop so that commands are taken meanwhile; a stop abandons it."""
        result: list[T] = []
        failure: list[BaseException] = []
        self._errands = SimpleQueue()

        def run() -> None:
            try:
                result.append(call())
            except BaseException as error:  # handed to the caller below
                failure.append(error)

        thread = threading.Thread(target=run, name="llm-call", daemon=True)
        thread.start()
        self.poll()
        while thread.is_alive():
            thread.join(0.02)
            self.poll()
            while not self._errands.empty():
                self._errands.get()()
        if failure:
            raise failure[0]
        return result[0]

    def in_the_loop(self, work: Callable[[], T]) -> T:
        """For the thread of a call: have the loop's thread do this, which alone plays in the world."""
        future: Future[T] = Future()

        def errand() -> None:
            try:
                future.set_result(work())
            except Interrupted as stop:
                future.set_exception(stop)
                raise
            except Exception as error:  # handed to the call, which fails by it
                future.set_exception(error)

        self._errands.put(errand)
        return future.result()

    # ---- rows that several steps write ---------------------------------------------------------------
    def write_moments(self, tx: Transaction, source: str, owner: int, moments: Sequence[FrameSnapshot]) -> None:
        """A row for the film of each episode; nothing below 1 GB of free space."""
        form = self.world.frame_format
        for episode, film in groupby(moments if self.writer.room() == "ok" else (), attrgetter("episode")):
            frames = [films.Frame(m.step, form, m.decision, m.frame, m.primitive, m.inner, m.total) for m in film]
            last = frames[-1]
            tx.add(
                tables.Frame(
                    source=source,
                    owner=owner,
                    episode=episode,
                    step=last.step,
                    format=films.FORMAT + form,
                    decision=last.decision,
                    body=films.packed(frames),
                    primitive=last.primitive,
                    inner=last.inner,
                    return_=last.total,
                )
            )

    def write_deaths(self, tx: Transaction) -> None:
        """What died in the action host since the last look."""
        for death in self.host.take_deaths():
            tx.event(events.HostDeath(**death._asdict()))
            tx.event(events.Nondeterministic(cause=f"the action host died: {death.cause}"))

    def say_waiting(self, what: str, role: str | None = None, why: str | None = None) -> None:
        self.writer.event(events.Waiting(what, role, why))

    def log(self, level: str, event: str, **fields: Any) -> None:
        self.writer.add(tables.Log(level=level, event=event, fields=fields))

    def close(self) -> None:
        self.inbox.close()
        self.host.close()
        self.writer.close()
        self.progress.close()

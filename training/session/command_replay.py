"""The operator's commands of a recorded session, given again at the places where they were taken (`--llm replay:ID`).

A place is told by what the session has done so far, not by the time of day: how much it has decided and measured,
the step that it is at, and within PPO the training's own clock. An override `apply: next` is given where it was
first seen, so that it waits as it did.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from rlgpt.store import event_payloads, events
from rlgpt.store.commands import Command, parse_command
from rlgpt.store.folder import SessionFolder
from rlgpt.store.history import CommandState, History, fold
from rlgpt.store.inbox import send
from rlgpt.store.reader import Reader
from rlgpt.store.states import MODEL
from rlgpt.training.options.observer import NEVER

WORK = (
    "task_plan", "iteration", "plan", "code_version", "trial", "rl_config", "training_run", "evaluation", "verdict",
)  # fmt: skip
"""Tables whose rows say how far a session has come."""


@dataclass(frozen=True)
class Taken:
    """A command and the place where it was taken."""

    state: CommandState
    command: Command
    phase: events.Phase
    work: int
    clock: int | None = None
    """Observer.clock where PPO was running, else None."""


@dataclass
class CommandReplay:
    """What is still to be given, in order; empty in a session that replays nothing."""

    left: deque[Taken] = field(default_factory=deque)

    @classmethod
    def of(cls, source: Reader, ids: Collection[str]) -> CommandReplay:
        """The commands of `source` that were decided, but for those with an id in `ids`. Raises BadCommand for one
        that this version does not understand."""
        history, left = History(), deque[Taken]()
        for change in source.folded_since(0, None):
            fold(history, *change)
            event = event_payloads.read_event(change[1]["kind"], change[1]["payload"]) if change[0] == "event" else None
            if not isinstance(event, events.Command) or event.place is None or event.id in ids:
                continue
            if event.kind == "cancel_call" or (event.kind == "resume" and history.waiting_for == MODEL):
                continue  # it ended a call, which is a row, or a wait for a server; a replay waits for neither
            waits = event.payload.get("apply") == "next"
            if (event.state == "seen") == waits:
                parsed = parse_command(event.kind, event.payload)
                left.append(Taken(history.commands[event.id], parsed, history.phase, **event.place))
        return cls(left)

    def due(self, history: History, clock: int | None) -> bool:
        """Whether the next one's place is reached; `clock` while PPO asks."""
        if not self.left:
            return False
        following, work = self.left[0], _work(history)
        if work != following.work:
            return work > following.work
        if following.clock is not None:
            return clock is not None and clock >= following.clock
        return history.phase == following.phase

    def wake(self, history: History) -> int:
        """The clock of the running training at which it must look here again."""
        following = self.left[0] if self.left else None
        if following is None or following.clock is None or following.work != _work(history):
            return NEVER
        return following.clock

    def give(self, folder: SessionFolder) -> None:
        """Put the next one into the session's inbox, as its author did."""
        command = self.left.popleft()
        send(folder, command.command, command.state.revision, command.state.author, name=command.state.id)


def place(history: History, clock: int | None = None) -> events.Place:
    """Where a session stands, as the event of a command tells it; `clock` where PPO asks."""
    work = _work(history)
    return {"work": work} if clock is None else {"work": work, "clock": clock}


def _work(history: History) -> int:
    return sum(history.counts.get(table, 0) for table in WORK)

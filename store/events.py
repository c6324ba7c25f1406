"""The events of a session: one dataclass for each kind, which is what writers write and readers read.

A row of the table `event` holds the kind (the class name in snake case) and the payload (the fields, under their names
without a trailing underscore). An optional field (`= None`) that is None is left out of the payload. Kinds and keys may
be added and are never renamed: an older reader passes over what it does not know.

Standard library only, because the supervisor writes events too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import (
    Literal,
    NotRequired,
    TypedDict,
)

from rlgpt.store.row_types import JsonObject


class ActionHost(TypedDict):
    """How generated code is run on this machine."""

    mode: str
    enforced: dict[str, str]


class Where(TypedDict):
    """The machine of a worker."""

    node: str
    cpu: str
    """Kind of processor that libraries choose their numerical kernels by: other last bits on another one."""
    versions: JsonObject


class Place(TypedDict):
    """Where in a session a command was taken (`training/session/command_replay.py`)."""

    work: int
    clock: NotRequired[int]


# ---- the course of a session -------------------------------------------------------------------
@dataclass(frozen=True)
class Started:
    """A worker begins."""

    host: ActionHost | None = None
    where: Where | None = None


@dataclass(frozen=True)
class Resumed:
    """A worker goes on behind row `from_seq`; with `run`, at that PPO run's checkpoint."""

    from_seq: int
    run: int | None = None
    update: int | None = None
    env_steps: int | None = None
    cause: str | None = None
    """Why it does not go on from the last checkpoint."""
    host: ActionHost | None = None
    where: Where | None = None


@dataclass(frozen=True)
class Phase:
    """The step of the loop that the worker does now: its name and its arguments (`agents/loop.py`)."""

    name: str = ""
    sub_task: int | None = None
    number: int | None = None
    iteration: int | None = None
    failed: Sequence[str] | None = None
    last_depth: bool | None = None
    item: str | None = None
    attempt: int | None = None
    draft: int | None = None
    """None where an attempt is one version."""
    version: int | None = None
    revision: int | None = None
    run: int | None = None
    split: str | None = None
    variant: str | None = None
    first: int | None = None
    episodes: int | None = None
    ahead: Mapping[str, int] | None = None
    """What is planned behind it until the end (`agents/remaining.py`): steps by name, but of Evaluate the episodes and
    of Train the env steps."""


@dataclass(frozen=True)
class Waiting:
    """The session waits: for a person, for the server of a model, for a free training slot, or paused."""

    for_: str
    role: str | None = None
    why: str | None = None


@dataclass(frozen=True)
class Ended:
    """The session has ended."""

    status: Literal["succeeded", "finished", "stopped", "failed"]
    reason: str


@dataclass(frozen=True)
class Forked:
    """In a fork, behind the last row that was copied."""

    parent: str
    seq: int
    changed: Sequence[str]
    """Sections of the settings that differ."""


# ---- plans and training ------------------------------------------------------------------------
@dataclass(frozen=True)
class PlanInForce:
    """This revision is the plan from now on."""

    revision: int


@dataclass(frozen=True)
class PlanWaiting:
    """This revision waits for a person's approval."""

    revision: int


@dataclass(frozen=True)
class PlanApproved:
    """A person, or the time-out of the review, approved the plan."""

    revision: int
    author: str


@dataclass(frozen=True)
class PlanRejected:
    """A person rejected the plan."""

    revision: int
    author: str
    text: str = ""
    """Why."""


@dataclass(frozen=True)
class TrainingEnded:
    """A PPO run is over."""

    run: int
    state: Literal["finished", "superseded", "stopped", "failed"]
    env_steps: int
    decisions: int
    updates: int
    reason: str = ""


# ---- what the worker decides by the rules of `agents/choice.py` and `outcome.py` -------------------------
@dataclass(frozen=True)
class VersionChosen:
    """Which code version of a sub-action is in use under a plan revision."""

    revision: int
    item: str
    version: int | None
    """The version that acts; null: no code of this sub-action acts."""
    accepted: bool
    """Its trials accepted it. Code that was not accepted may act where it works at least sometimes."""
    why: str


@dataclass(frozen=True)
class IterationResult:
    """What an iteration came to when it was closed."""

    sub_task: int
    iteration: int
    variant: str
    """full (the policy sampled, or the sequence of code), greedy (the policy's most probable actions) or plan (the code
    alone): what acts of this iteration, named by the variant of its development episodes."""
    score: float
    """Of those episodes, in [0, 1]: the share that succeeded, or the task's score where it has one."""
    low: float
    high: float
    """95% interval of `score`."""
    why: str


@dataclass(frozen=True)
class Incumbent:
    """The best iteration of a sub-task so far."""

    sub_task: int
    iteration: int
    why: str


# ---- what an operator asks for -----------------------------------------------------------------
@dataclass(frozen=True)
class Command:
    """What became of a command."""

    id: str
    kind: str
    author: str
    revision: int | None
    """The plan revision that its author saw."""
    payload: JsonObject
    """As it was sent; a command that was refused may hold anything."""
    state: Literal["seen", "applied", "refused", "expired"]
    reason: str = ""
    place: Place | None = None


@dataclass(frozen=True)
class Advice:
    """Words of the operator for an agent."""

    agent: str
    text: str
    author: str


@dataclass(frozen=True)
class Budget:
    """A budget was changed; null: no limit."""

    name: str
    value: float | None
    author: str = ""


@dataclass(frozen=True)
class PauseRequested:
    """The session is to pause."""

    author: str


@dataclass(frozen=True)
class ResumeRequested:
    """The pause is over."""

    author: str


@dataclass(frozen=True)
class StopRequested:
    """The session is to end; `now`: without the rest of the step."""

    author: str
    now: bool = False


@dataclass(frozen=True)
class TrainingStopRequested:
    """The PPO run in progress is to end; what it learnt is kept."""

    author: str


# ---- mishaps, and what stays ------------------------------------------------------------------
@dataclass(frozen=True)
class HostDeath:
    """The process that runs generated code died."""

    cause: str
    source_hash: str
    """The source that was running; empty if none is blamed."""
    lane: int | None = None
    quarantined: bool = False
    """That source is not run again."""


@dataclass(frozen=True)
class Nondeterministic:
    """From here on the session cannot be repeated exactly."""

    cause: str


@dataclass(frozen=True)
class TrainerDied:
    """The worker process died; written by its supervisor."""

    exit_code: int | None
    signal: str | None
    last_lines: Sequence[str] = ()
    restart: bool = False
    """It is started again."""
    peak_mb: int | None = None

    @property
    def how(self) -> str:
        return self.signal or f"exit code {self.exit_code}"

    @property
    def last_words(self) -> str:
        """The last line that says something, or nothing."""
        return next((line for line in reversed(self.last_lines) if line.strip()), "")


@dataclass(frozen=True)
class Probed:
    """A model called a tool before it answered (`agents/probes.py`)."""

    step: str
    request_hash: str
    """Of the request whose answer called it, both as `llm_call` has them."""
    number: int
    """Among the calls of that answer, from 0."""
    tool: str
    """As the model named it."""
    told: str
    """What came of it, as the model was told."""
    env_steps: int

    @property
    def headline(self) -> str:
        return f"{self.tool}: {self.told.partition(chr(10))[0]}"


@dataclass(frozen=True)
class SkillKept:
    """A coded action was put into the skill library."""

    name: str
    hash: str


Decision = VersionChosen | IterationResult | Incumbent
Event = (
    Started | Resumed | Phase | Waiting | Ended | Forked | PlanInForce | PlanWaiting | PlanApproved | PlanRejected
    | TrainingEnded | Decision | Command | Advice | Budget | PauseRequested | ResumeRequested | StopRequested
    | TrainingStopRequested | HostDeath | Nondeterministic | TrainerDied | Probed | SkillKept
)  # fmt: skip

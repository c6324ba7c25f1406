"""The events of a session: one dataclass for each kind, which is what writers write and readers read.

A row of the table `event` holds the kind (the class name in snake case) and the payload (the fields, under their names
without a trailing underscore). An optional field (`= None`) that is None is left out of the payload. Kinds and keys may
be added and are never renamed: an older reader passes over what it does not know.

Standard library only, because the supervisor writes events too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from types import UnionType
from typing import (
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
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


# ---- what the worker decides by the rules of `agents/choice.py` ------------------------------------
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


def kind_of(event: Event | type[Event]) -> str:
    """As the column `kind` names it."""
    return _snake((event if isinstance(event, type) else type(event)).__name__)


@cache
def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


KINDS: dict[str, type[Event]] = {kind_of(cls): cls for cls in get_args(Event)}
DECISIONS = tuple(kind_of(cls) for cls in get_args(Decision))


def key_of(field: Field[Any]) -> str:
    """As the payload names it: a trailing underscore keeps a field's name from being a word of Python."""
    return field.name.rstrip("_")


def payload_of(event: Event) -> JsonObject:
    """As the column `payload` holds it."""
    payload = {}
    for key, name, optional in _layout(kind_of(event)).keys:
        value = getattr(event, name)
        if not (optional and value is None):
            payload[key] = value
    return payload


def read_event(kind: str, payload: JsonObject) -> Event | None:
    """None for a kind of a later version, whose further keys are passed over too.

    Raises ValueError for a payload that lacks a key or holds something of another type there.
    """
    cls = KINDS.get(kind)
    if cls is None:
        return None
    _, types_by_key, defaults = _layout(kind)
    # Made as copy and pickle make an instance: the __init__ of a frozen dataclass sets each field by itself through
    # object.__setattr__, which takes longer than all else here. A fold reads every event of a session.
    event = object.__new__(cls)
    values = vars(event)
    values.update(defaults)
    for key, value in payload.items():
        if key not in types_by_key:
            continue
        name, types = types_by_key[key]
        if value is None and types == _NUMBER:  # not a number (NaN) is stored as null
            value = math.nan
        if not isinstance(value, types) or (isinstance(value, list) and not all(isinstance(x, str) for x in value)):
            raise ValueError(f"{key} of an event {kind} cannot be {value!r:.80}")
        values[name] = value
    if len(values) < len(types_by_key):
        missing = [key for key, (name, _) in types_by_key.items() if name not in values]
        raise ValueError(f"an event {kind} has no {', '.join(missing)}")
    return event


_NUMBER = (float, int)


class _Layout(NamedTuple):
    """How the fields of a kind stand in its payload."""

    keys: Sequence[tuple[str, str, bool]]
    """Key, field, and whether it is left out when it is None."""
    types: Mapping[str, tuple[str, tuple[type, ...]]]
    """Key -> the field, and the types of JSON that it takes."""
    defaults: Mapping[str, Any]
    """Field -> what it is where the payload lacks it."""


@cache
def _layout(kind: str) -> _Layout:
    cls = KINDS[kind]
    hints = get_type_hints(cls)
    types_by_key = {}
    for f in fields(cls):
        hint = hints[f.name]
        parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        types_by_key[key_of(f)] = (f.name, tuple(kind for part in parts for kind in _types(part)))
    keys = [(key_of(f), f.name, f.default is None) for f in fields(cls)]
    return _Layout(keys, types_by_key, {f.name: f.default for f in fields(cls) if f.default is not MISSING})


def _types(hint: Any) -> tuple[type, ...]:
    if get_origin(hint) is Literal:  # a later version may know further words
        return (str,)
    if is_typeddict(hint) or get_origin(hint) is Mapping:
        return (dict,)
    if get_origin(hint) is Sequence:
        return (list,)
    return _NUMBER if hint is float else (hint,)

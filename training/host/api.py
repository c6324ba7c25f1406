"""The border between the trusted side and the action host: what can be asked, what comes back.

One `ActionHost` per worker serves every env (`lane`) of the worker. All generated code, in every mode
but `trusted`, lives behind it. Calls block; one message per `tick` carries all lanes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from rlgpt.training.worlds.protocol import NativeAction

Kind = Literal["action", "done_when", "reward"]
Mode = Literal["locked", "process", "trusted"]
End = Literal["return", "error", "bad_yield", "budget", "killed", "quarantined"]
"""Why a call ended in the host. `max_option_steps`, the interrupt and the episode's end are the caller's business."""


def source_hash(source: str) -> str:
    """Hex digest that names a source everywhere (rows, slots, artifacts)."""
    return hashlib.blake2b(source.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Admission(NamedTuple):
    """`rule`, `line` and `message` are written for the language model that has to mend the source."""

    admitted: bool
    source_hash: str
    kind: Kind
    name: str
    rule: str
    line: int
    message: str
    arguments: Mapping[str, tuple[object, ...]]
    """Literal argument values by parameter; {} when the action takes none."""
    has_available: bool
    uninterruptible: bool
    tree_hash: str
    """Hash of the normalised syntax tree: equal trees are one slot."""


@dataclass(frozen=True)
class Action:
    """One callable: a coded action with its arguments bound, or a plan followed as an option."""

    source_hash: str
    arguments: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True)
class PlanItem:
    done_when: str
    """Expression source, admitted as kind `done_when`."""
    action: Action
    trigger: str = ""
    """Of a guard: while this holds it runs before the steps, and interrupts them. Admitted as kind `done_when`."""


@dataclass(frozen=True)
class Programs:
    """Everything loaded in the host at once; indices into these tuples are the wire format."""

    sources: Mapping[str, str] = field(default_factory=dict)
    """Hash -> source, admitted before."""
    actions: tuple[Action, ...] = ()
    plan: tuple[PlanItem, ...] = ()
    """What `follow_plan` runs: the first guard whose trigger holds, else the first step whose done_when is false.
    Callable as action index `FOLLOW_PLAN`."""
    predicates: tuple[str, ...] = ()
    """done_when expressions whose truth can be asked for (at most 64)."""
    rewards: tuple[str, ...] = ()
    """Hashes of admitted `reward` sources (`def reward(before, view): return float`)."""
    lines: bool = False
    """Whether answers tell the line of each yield: for evidence that is read, not for training."""


FOLLOW_PLAN = 0xFFFF


class Ask(NamedTuple):
    lane: int
    view: bytes
    """`Env.view(whole)`: whole when `open` is given or `episode_start`, else the change since the last."""
    open: int | None = None
    """Start this action (index into Programs.actions, or FOLLOW_PLAN), dropping any open call."""
    resume: bool = False
    """Continue the open call with this view."""
    episode_start: bool = False
    """This view becomes `start` of the predicates and of follow_plan."""
    predicates: bool = False
    available: bool = False
    reward: bool = False
    """Ask for the generated reward of the step from the lane's previous view to this one."""
    step: int = 0
    """`Env.steps` of the lane: seeds the `rng` of a call opened now, so equal episodes draw equal numbers."""


class Answer(NamedTuple):
    lane: int
    command: NativeAction | None
    """The next env step of the call; None when it ended or none was asked for."""
    end: End | None
    message: str
    """Traceback line or sentence when `end` is error, bad_yield, budget, killed or quarantined; with any
    `end` also what a predicate, an `available` or a reward raised (it counts as false, false, 0)."""
    action: int
    """Which action really runs (under FOLLOW_PLAN the plan item's index + 0x8000), else -1."""
    predicates: int
    """Bit i: predicate i is true now. 0 unless asked."""
    available: int
    """Bit i: action i may start now (no `available` function: set). 0 unless asked."""
    reward: float
    """Sum of the generated rewards, clipped to [-1, 1]; 0.0 unless asked."""
    line: int = 0
    """Line of the source whose yield gave the command; 0 unless `Programs.lines`."""


class Death(NamedTuple):
    """One death of the process. The session's numbers are no longer a function of its seeds."""

    cause: str
    """A sentence: what happened, while running what, for the how-manieth time."""
    source_hash: str
    """The source that is held responsible; empty if none was running."""
    lane: int
    quarantined: bool
    """The source is not run any more."""


class Host(Protocol):
    mode: Mode
    enforced: Mapping[str, str]
    """Protection -> `enforced` or why not; stored with the session."""
    quarantined: Mapping[str, str]
    """Source hash -> why it is not run any more."""

    @property
    def deaths(self) -> int:
        """Of the process, so far."""

    def admit(self, kind: Kind, source: str, views: Sequence[Sequence[bytes]] = ()) -> Admission:
        """Check and dry-run twice on recorded views (each a sequence whose first is whole). Never raises for
        bad source."""

    def load(self, programs: Programs) -> None:
        """Replace everything loaded; open calls are dropped. Raises if a source was never admitted."""

    def tick(self, asks: Sequence[Ask]) -> list[Answer]:
        """Answers in the order of the asks. Survives the death of the process: only the guilty call ends."""

    def post(self, asks: Sequence[Ask]) -> None:
        """The first half of a tick: the process works on it while the caller does something else. What was posted
        before and never collected is dropped."""

    def collect(self) -> list[Answer]:
        """The second half: the answers to what was posted."""

    def take_deaths(self) -> list[Death]:
        """The deaths since the last call, for the session's rows."""

    def cpu_seconds(self) -> float:
        """CPU time of the process behind it so far: for differences. A process that took its place begins at 0."""

    def close(self) -> None: ...

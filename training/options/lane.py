"""One env with what the runner keeps about it between env steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.options.dead_loops import DeadLoopWatch
from rlgpt.training.options.rewards import RewardStream
from rlgpt.training.options.trouble import TroubleWatch
from rlgpt.training.worlds.protocol import Env, NativeAction


class Tracer(Protocol):
    """Keeps what an episode was like."""

    def start(self, env: Env) -> None: ...

    def step(self, lane: Lane, command: NativeAction) -> None:
        """An env step was taken."""


Phase = Literal["idle", "resetting", "decide", "opening", "running", "repeating", "settling"]
"""idle: no episode. resetting: the env is being reset for the next episode. decide: the policy is asked next.
opening: an option was chosen, the host not yet asked.
running: an option is open. repeating: a primitive is to be repeated. settling: a decision is over, but the host still
owes something about its end."""
EpisodeEnd = Literal["", "success", "time", "death", "truncated"]


@dataclass(slots=True, eq=False)
class Lane:
    index: int
    env: Env
    stream: RewardStream
    watch: DeadLoopWatch
    horizon: int
    """Env steps after which the episode terminates."""
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    """Draws the actions of this episode; seeded with it, so that an episode does not depend on its lane."""

    trouble: TroubleWatch = field(default_factory=TroubleWatch)

    # the episode
    episode: int = -1
    seed: int = 0
    outcome: EpisodeEnd = ""
    turns_left: int = 0
    """Until the env, which is being reset, is waited for."""
    decisions: int = 0
    total: float = 0.0
    """Undiscounted reward so far."""
    novelty: int = 0
    """Env.novelty() after the last env step."""
    truths_ever: int = 0
    """Bit i: predicate i was true at some step of this episode."""
    true_since: dict[int, int] = field(default_factory=dict)
    """Predicate -> env step at which it was true first."""
    commands: list[NativeAction] | None = None
    trace: Tracer | None = None
    usage: dict[str, int] = field(default_factory=dict)
    ends: dict[str, dict[str, int]] = field(default_factory=dict)
    last: str = ""
    """The sub-action whose code ran last."""

    # the decision
    phase: Phase = "idle"
    observation: NDArray[Any] | None = None
    mask: NDArray[np.bool_] | None = None
    action: tuple[int, ...] = ()
    slot: int = -1
    """-1: a primitive."""
    steps: int = 0
    """Env steps of this decision so far (k)."""
    reward: float = 0.0
    """Discounted sum over this decision."""
    discount: float = 1.0
    """gamma ** steps."""
    weight: float = 1.0
    """gamma ** (steps - 1): the discount of the last env step."""
    end: str = ""
    """Why the option ended, as rows and prompts call it: return, cap (after `max_option_steps`), alarm (an interrupt),
    error, bad_yield, budget, killed or quarantined; where its episode ended in it, how that did (one word, `episode`,
    in sessions before 0003). `cap` and `alarm` keep their names, because prompts have them, by which a recorded session
    is repeated; the console says "call limit" and "interrupted"."""
    message: str = ""
    idle: bool = False
    """Whether the option ended without a step of its own (it cost a no-op)."""
    until: int = 0
    """Bits of the predicates each of which ends the option when it comes true; 0 for none."""
    running: int = -1
    """Which action really runs (Answer.action)."""
    line: int = 0
    """Of the source whose yield gave the last command, where the programs tell lines."""

    # the host
    truths: int = 0
    """Bit i: predicate i is true now."""
    available: int = -1
    served: bool = False
    """Whether the host has answered about the present view."""
    synced: bool = False
    """Whether the host has seen the view of the previous env step."""
    owed: bool = False
    """Whether the generated reward of the last env step is still to come."""
    fresh: bool = True
    """Whether the host does not know yet that an episode began."""
    start_view: bytes | None = None
    """Whole view at the episode's start: what predicates and follow_plan compare with. Sent first when the
    lane did not begin there (`moved`)."""
    moved: bool = False
    note: Any = None
    """For whoever drives the lane."""
    film: Tracer | None = None
    """Of this episode, where it is filmed."""

    def introduce(self) -> None:
        """The host knows nothing of this lane any more: it is told anew of its episode and its view."""
        self.moved = self.start_view is not None
        self.fresh, self.served, self.synced, self.owed = True, False, False, False


@dataclass(frozen=True)
class EpisodeResult:
    """An episode that ended, as the episode row wants it."""

    index: int
    seed: int
    success: bool
    return_: float
    env_steps: int
    decisions: int
    dead_loop: bool
    end: EpisodeEnd
    milestones: tuple[str, ...]
    rewards: dict[str, float]
    """Weighted sum per reward term."""
    usage: dict[str, int]
    """Decisions per slot name; primitives together under `primitive`."""
    ends: dict[str, dict[str, int]]
    """slot name -> end reason -> count."""
    truths: int
    """Bit i: predicate i was ever true."""
    true_since: Mapping[int, int] = field(default_factory=dict)
    """Predicate -> env step at which it was true first."""
    last: str = ""
    """The sub-action whose code ran last, "" if none did."""
    cause: str = ""
    """What killed the agent, where the world told it."""
    vitals: Mapping[str, float] = field(default_factory=dict)
    """What it lived by at the end, where the world told it."""
    commands: bytes | None = None
    """int16 little endian, (env_steps, native_action_size), where they were recorded."""

"""What a world may offer beside what it must (`protocol.py`), and how the rest of `training` asks for it.

Each class names the one or two members of a part. A world has the part if it has these members; where it lacks them,
the function below the class says what holds instead. `rlgpt world check NAME` checks the parts that a world has.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.worlds.protocol import Env, NativeAction, Task, World

log = logging.getLogger(__name__)


class Ending(NamedTuple):
    """How the agent stands at the end of an episode, as far as the world can tell."""

    cause: str = ""
    """What killed it, in one word of the world (`zombie`, `lava`, `thirst`); empty where it lives, or nobody knows."""
    vitals: Mapping[str, float] = MappingProxyType({})
    """What it lives by, as it was then: health, food ..."""


@runtime_checkable
class TellsEnding(Protocol):
    """Optional part of an Env: how an episode ended, for rows that agents and operators read; see `ending_of`."""

    def ending(self) -> Ending: ...


def ending_of(env: Env) -> Ending:
    """How the episode stands that has just ended; empty where the world does not tell."""
    return env.ending() if isinstance(env, TellsEnding) else Ending()


@runtime_checkable
class Surveys(Protocol):
    """Optional part of an Env that hides most of its world; see `survey_of`."""

    def survey(self) -> str:
        """How much of this episode's world the agent has seen, and what there is of it that a goal may need, in one
        sentence. Told of lost episodes, so that agents and operators can tell a search that was too short from a goal
        that was out of reach."""


def survey_of(env: Env) -> str:
    """Of the episode that is played; empty where the world does not tell."""
    return env.survey() if isinstance(env, Surveys) else ""


@runtime_checkable
class CountsObtained(Protocol):
    """Optional part of an Env: lets a distance reward start anew for the next target of the same kind."""

    def obtained(self, target: str) -> int:
        """How often `target` was obtained (collected, eaten, defeated) in this episode."""


@runtime_checkable
class Reseeds(Protocol):
    """Optional part of an Env in whose course chance has a part."""

    def reseed(self, seed: int) -> None:
        """From now on other chances, which follow from `seed` in [0, 2**31). Used in training only."""


@runtime_checkable
class StepsElsewhere(Protocol):
    """Optional part of an Env whose game computes in another process: several games compute at the same time.

    Nothing but time depends on it.
    """

    def begin_step(self, command: NativeAction) -> None:
        """Send the command; the `step` with the same command that must follow waits for its result."""

    def begin_reset(self, seed: int) -> None:
        """Begin an episode; the `reset` with the same seed that must follow waits until it has begun. Until then only
        `steps` may be read, which is still that of the episode before."""


@runtime_checkable
class MakesAhead(Protocol):
    """Optional part of a World that takes long to make an episode's world, and can while others are played."""

    def expect(self, seeds: Sequence[int]) -> None:
        """Episodes with these seeds will begin. Nothing but time depends on it."""


def expect(world: World, seeds: Sequence[int]) -> None:
    """Tell a world that makes ahead which episodes will begin."""
    if isinstance(world, MakesAhead):
        world.expect(seeds)


@runtime_checkable
class Scores(Protocol):
    """The part of a World that has a task of kind `score`."""

    def score(self, rates: NDArray[np.float64]) -> NDArray[np.float64]:
        """The score, in [0, 1], of episodes of which these shares reached each of the task's milestones (last axis)."""


def score_of(world: World, task: Task, reached: Mapping[str, int], episodes: int) -> float | None:
    """The score of some episodes, of which so many reached each milestone. None for a task that is won or lost, and
    without episodes."""
    if task.kind != "score" or not episodes or not isinstance(world, Scores):
        return None
    return float(world.score(np.array([reached.get(name, 0) / episodes for name in task.milestones])))


@runtime_checkable
class LimitsEnvs(Protocol):
    """Optional part of a World of which only so many envs fit a machine (each Minecraft is a process of 3 GB)."""

    max_envs: int


def side_by_side(world: World, wanted: int) -> int:
    """How many envs of a world to run at once: `wanted`, or fewer where the world limits them."""
    return max(1, min(wanted, world.max_envs if isinstance(world, LimitsEnvs) else wanted))


@runtime_checkable
class StepsSlowly(Protocol):
    """Optional part of a World; see `is_slow`."""

    slow: bool


def is_slow(world: World) -> bool:
    """Whether a world's env steps take so long (Minecraft: 30 ms) that all lanes are stepped at once, and not in two
    halves while the action host works for the other: `StepsSlowly.slow`, False where it has none.

    The order in which lanes decide depends on it, and with that what a training learns. So it is a property of the
    world: an env may compute here or elsewhere (`StepsElsewhere`), and nothing but time changes.
    """
    return isinstance(world, StepsSlowly) and world.slow


@runtime_checkable
class ResetsSlowly(Protocol):
    """Optional part of a slow World whose resets take as long as many env steps; see `reset_turns`."""

    reset_steps: int


def reset_turns(world: World) -> int:
    """Turns that a lane of a slow world is left out between two episodes, while the others go on:
    `ResetsSlowly.reset_steps`, about as many env steps as a reset takes; 0 where it has none.

    It is a number of the world and not the time that a reset happens to take, because the order in which lanes decide
    depends on it.
    """
    return world.reset_steps if is_slow(world) and isinstance(world, ResetsSlowly) else 0


@runtime_checkable
class ChecksMachine(Protocol):
    """Optional part of a World that needs something which a machine may lack."""

    def ready(self) -> None:
        """Called before a session is made. Raises `WorldFailed` where none can start."""


def check_machine(world: World) -> None:
    """Raises `WorldFailed` where the machine lacks what the world needs."""
    if isinstance(world, ChecksMachine):
        world.ready()


@dataclass(frozen=True)
class WorldEvent:
    """Something that a session keeps a line of in its log. `fault` and `restart` are shown as warnings."""

    kind: str
    sentence: str
    detail: Mapping[str, Any] = field(default_factory=dict)


def log_event(event: WorldEvent) -> None:
    """Where no session listens: to the worker's log."""
    level = logging.WARNING if event.kind in ("fault", "restart") else logging.INFO
    log.log(level, "%s: %s", event.kind, event.sentence)


@runtime_checkable
class ReportsEvents(Protocol):
    """Optional part of a World that has processes of its own, which start, fail and are started again."""

    report: Callable[[WorldEvent], None]
    """Set by the session; before that, whatever the world does with its events."""


def report_to(world: World, listener: Callable[[WorldEvent], None]) -> None:
    """From now on the world's events go to `listener`; most worlds have none."""
    if isinstance(world, ReportsEvents):
        world.report = listener


@runtime_checkable
class ChargesCalls(Protocol):
    """Optional part of a HostSide, read in the sandbox."""

    COSTS: Mapping[str, int]
    """Function of `LIBRARY` -> what a call takes from the budget of the code; 20 where it is not named."""


@runtime_checkable
class NamesAttributes(Protocol):
    """Optional part of a HostSide, read in the sandbox."""

    ATTRIBUTES: Sequence[str]
    """What code may write behind a dot, besides the methods of plain values. Without it: every public attribute of
    the classes in the module."""


@runtime_checkable
class NamesTexts(Protocol):
    """Optional part of a HostSide, read in the sandbox: any other text is refused before the code runs."""

    TEXTS: Mapping[str, Collection[str]]
    """Function, method or keyword of the library -> the texts that may be written there."""


@runtime_checkable
class DescribesViews(Protocol):
    """Optional part of a HostSide; without it, `rollouts.evidence` takes the view's public attributes."""

    def describe(self, view: Any) -> Mapping[str, Any]:
        """The view as JSON values, in the few words that tell a person or a critic what is going on."""


def describe_view(host_side: object, view: object) -> dict[str, Any] | None:
    """The module's own description of a view, None where it offers none."""
    return dict(host_side.describe(view)) if isinstance(host_side, DescribesViews) else None


@runtime_checkable
class ShowsMoments(Protocol):
    """Optional part of a HostSide: a line of a timeline, for agents and operators. Without it, that line is the plain
    numbers and texts of the view's description."""

    def moment(self, view: Any) -> Mapping[str, Any]:
        """One line of a timeline: where the agent is, how it is, what it holds."""


@runtime_checkable
class DrawsViews(Protocol):
    """Optional part of a HostSide: a picture of characters, for agents and operators."""

    def picture(self, view: Any) -> str:
        """The surroundings as lines of characters, with a legend below."""


@runtime_checkable
class TellsState(Protocol):
    """Optional part of a FrameSide."""

    def state(self, body: bytes) -> Mapping[str, float]:
        """What the agent has and how it is in a frame, name -> number (health, wood ...): the console shows what
        changed since the frame before. {} for bytes that are no frame."""

"""What a world may offer besides what `protocol.py` demands, and the functions by which the rest of `training` uses it.

Each class names the one or two members of a part. A world has the part if it has these members (`offers`); the function
below the class returns the default where it lacks them. `rlgpt world check NAME` checks the parts that a world has.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.worlds.protocol import Env, NativeAction, Task, World, WorldFailed

if TYPE_CHECKING:
    from typing_extensions import TypeIs

log = logging.getLogger(__name__)

Part = TypeVar("Part")


def offers(thing: object, part: type[Part]) -> TypeIs[Part]:
    """Whether `thing` has the members of an optional part.

    `isinstance` would say so too, but since Python 3.12 not of a wrapper that hands them on by `__getattr__`
    (https://docs.python.org/3/whatsnew/3.12.html, "typing"): one world would have other parts in another Python.
    """
    methods = (name for name in vars(part) if not name.startswith("_"))
    return all(hasattr(thing, name) for name in inspect.get_annotations(part)) and all(
        getattr(thing, name, None) is not None for name in methods
    )


class Ending(NamedTuple):
    """What the world knows of the end of an episode."""

    cause: str = ""
    """What killed the agent, in one word of the world (`zombie`, `lava`, `thirst`); empty if it lives or the cause is
    not known."""
    vitals: Mapping[str, float] = MappingProxyType({})
    """Health, food and the like at the end: name -> number."""


class TellsEnding(Protocol):
    """Optional part of an Env: how an episode ended, for rows that agents and operators read; see `ending_of`."""

    def ending(self) -> Ending: ...


def ending_of(env: Env) -> Ending:
    """The end of the episode that has just ended; an empty `Ending` where the env has no such part. Numbers of numpy's
    become Python's: rows and the file of a trial's finished part take no others."""
    if not offers(env, TellsEnding):
        return Ending()
    cause, vitals = env.ending()
    return Ending(cause, {name: each.item() if isinstance(each, np.generic) else each for name, each in vitals.items()})


class Surveys(Protocol):
    """Optional part of an Env that hides most of its world; see `survey_of`."""

    def survey(self) -> str:
        """One sentence on how much of this episode's world the agent has seen, and where things are that a goal may
        need. It is reported of lost episodes, so that agents and operators can tell a search that was too short from a
        goal that was out of reach. A clause between semicolons that begins with `no ` says what this episode's
        world does not hold (`no diamond anywhere`); these are counted over all lost episodes."""


def survey_of(env: Env) -> str:
    """The survey of the present episode; empty where the env has no such part. Raises WorldFailed."""
    survey: object = env.survey() if offers(env, Surveys) else ""
    if not isinstance(survey, str):
        raise WorldFailed(f"survey() gave {survey!r:.40} at step {env.steps} of an episode of {env.task.id}, no text.")
    return survey


class CountsObtained(Protocol):
    """Optional part of an Env: lets a distance reward start anew for the next target of the same kind."""

    def obtained(self, target: str) -> int:
        """How often `target` was obtained (collected, eaten, defeated) in this episode."""


class Reseeds(Protocol):
    """Optional part of an Env whose episodes draw random numbers."""

    def reseed(self, seed: int) -> None:
        """From now on draw random numbers from `seed`, in [0, 2**31). Used in training only."""


class StepsElsewhere(Protocol):
    """Optional part of an Env whose game computes in another process or thread, so that several games compute at once.

    It changes no result, only the time that steps take.
    """

    def begin_step(self, command: NativeAction) -> None:
        """Send the command. `step` with the same command must follow; it waits for the result."""

    def begin_reset(self, seed: int) -> None:
        """Begin an episode. `reset` with the same seed must follow; it waits until the episode has begun. Until then
        only `steps` may be read, which is still that of the previous episode."""


class MakesAhead(Protocol):
    """Optional part of a World that needs long to make the world of an episode, and can do so while others are
    played."""

    def expect(self, seeds: Sequence[int]) -> None:
        """Episodes with these seeds will begin. It changes no result, only the time that resets take."""


def expect(world: World, seeds: Sequence[int]) -> None:
    """Announce the seeds of episodes to a world that makes them in advance."""
    if offers(world, MakesAhead):
        world.expect(seeds)


class Scores(Protocol):
    """The part of a World that has a task of kind `score`."""

    def score(self, rates: NDArray[np.float64]) -> NDArray[np.float64]:
        """The score in [0, 1] for the shares of episodes that reached each of the task's milestones, along the last
        axis."""


def score_of(world: World, task: Task, reached: Mapping[str, int], episodes: int) -> float | None:
    """The score of `episodes` episodes; `reached`: milestone -> how many of them reached it. None for a task of another
    kind than `score`, and for no episodes."""
    if task.kind != "score" or not episodes or not offers(world, Scores):
        return None
    score = float(world.score(np.array([reached.get(name, 0) / episodes for name in task.milestones])))
    return min(max(score, 0.0), 1.0)  # Crafter's of all milestones in all episodes is rounded to a little more than 1


class LimitsEnvs(Protocol):
    """Optional part of a World whose envs are so large that few fit a machine (each Minecraft takes 3 GB)."""

    max_envs: int


def side_by_side(world: World, wanted: int) -> int:
    """How many envs of a world to run at once: `wanted`, or fewer where the world limits them."""
    return max(1, min(wanted, world.max_envs if offers(world, LimitsEnvs) else wanted))


class StepsSlowly(Protocol):
    """Optional part of a World; see `is_slow`."""

    slow: bool


def is_slow(world: World) -> bool:
    """Whether a world's env steps take so long (Minecraft: 30 ms) that all lanes are stepped at once, and not in two
    halves while the action host works for the other: `StepsSlowly.slow`, False where it has none.

    The order in which lanes decide depends on it, and with that what a training learns. So it is a property of the
    world: an env may compute here or elsewhere (`StepsElsewhere`), and nothing but time changes.
    """
    return offers(world, StepsSlowly) and world.slow


class ResetsSlowly(Protocol):
    """Optional part of a slow World whose resets take as long as many env steps; see `reset_turns`."""

    reset_steps: int


def reset_turns(world: World) -> int:
    """Turns that a lane of a slow world is left out between two episodes, while the others go on:
    `ResetsSlowly.reset_steps`, about as many env steps as a reset takes; 0 where it has none.

    It is a number of the world and not the time that a reset happens to take, because the order in which lanes decide
    depends on it.
    """
    return world.reset_steps if is_slow(world) and offers(world, ResetsSlowly) else 0


class ChecksMachine(Protocol):
    """Optional part of a World that needs something that a machine may lack."""

    def ready(self) -> None:
        """Called before a session is made. Raises `WorldFailed` where none can start."""


def check_machine(world: World) -> None:
    """Raises `WorldFailed` where the machine lacks what the world needs."""
    if offers(world, ChecksMachine):
        world.ready()


@dataclass(frozen=True)
class WorldEvent:
    """An event that becomes a line in the log of a session. The kinds `fault` and `restart` are shown as warnings."""

    kind: str
    sentence: str
    detail: Mapping[str, Any] = field(default_factory=dict)


def log_event(event: WorldEvent) -> None:
    """Write an event to the worker's log; used while no session listens."""
    level = logging.WARNING if event.kind in ("fault", "restart") else logging.INFO
    log.log(level, "%s: %s", event.kind, event.sentence)


class ReportsEvents(Protocol):
    """Optional part of a World with processes of its own, which start, fail and are restarted."""

    report: Callable[[WorldEvent], None]
    """Receives the events. The session sets it."""


def report_to(world: World, listener: Callable[[WorldEvent], None]) -> None:
    """From now on the world's events go to `listener`; nothing happens for a world without events."""
    if offers(world, ReportsEvents):
        world.report = listener


class ChargesCalls(Protocol):
    """Optional part of a HostSide, read in the sandbox."""

    COSTS: Mapping[str, int]
    """Function of `LIBRARY` -> ticks that a call takes from the budget of the code; 20 for those not named."""


class NamesAttributes(Protocol):
    """Optional part of a HostSide, read in the sandbox."""

    ATTRIBUTES: Sequence[str]
    """The attributes that code may use, besides the methods of plain values. Without it: every public attribute of the
    classes in the module."""


class NamesTexts(Protocol):
    """Optional part of a HostSide, read in the sandbox: any other text is refused before the code runs."""

    TEXTS: Mapping[str, Collection[str]]
    """Function, method or keyword of the library -> the texts that may be written there."""


class DescribesViews(Protocol):
    """Optional part of a HostSide; without it, `rollouts.evidence` takes the view's public attributes."""

    def describe(self, view: Any) -> Mapping[str, Any]:
        """The view as JSON values, short enough for a person or a critic to read."""


def describe_view(host_side: object, view: object) -> dict[str, Any] | None:
    """The module's own description of a view, None where it has no such part."""
    return dict(host_side.describe(view)) if offers(host_side, DescribesViews) else None


class ShowsMoments(Protocol):
    """Optional part of a HostSide: a line of a timeline, for agents and operators. Without it, the line has the numbers
    and texts of the view's description."""

    def moment(self, view: Any) -> Mapping[str, Any]:
        """One line of a timeline: the agent's place, state and inventory."""


class DrawsViews(Protocol):
    """Optional part of a HostSide: a picture of characters, for agents and operators."""

    def picture(self, view: Any) -> str:
        """The surroundings as lines of characters, with a legend below."""


class TellsState(Protocol):
    """Optional part of a FrameSide."""

    def state(self, body: bytes) -> Mapping[str, float]:
        """The agent's state and inventory in a frame: name -> number (health, wood ...). The console shows what changed
        since the previous frame. {} for bytes that are no frame."""

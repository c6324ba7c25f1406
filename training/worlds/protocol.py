"""What a world must offer. Everything else in `training` sees a world only through this file.

A `World` is the immutable description (tasks, primitives, features, documentation); an `Env` is one
running copy of it on one task. Third parties register a world under the entry point group
`rlgpt.worlds`; `rlgpt world check NAME` runs the conformance check.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

log = logging.getLogger(__name__)

NativeAction = tuple[int, ...]
"""One action in the world's own form, always `World.native_action_size` small integers (int16)."""


@dataclass(frozen=True)
class Task:
    id: str
    prompt: str
    """One sentence for people and models."""
    horizon: int
    """Env steps until the episode terminates; time left is a feature, so the limit is terminal."""
    milestones: tuple[str, ...]
    """Names of `Env.milestones` that lead to the task, in the usual order; the last one is the goal."""
    kind: str = "goal"
    """`goal`: success = the last milestone, which ends the episode. `score`: no success event ends it.
    `survive`: success = alive at the horizon."""
    long_horizon: bool = False
    """True if a task planner should order sub-tasks first."""
    sub_tasks: tuple[str, ...] = ()
    start: Mapping[str, Any] = field(default_factory=dict)
    """The published start state, empty for the world's own."""


@dataclass(frozen=True)
class Primitive:
    name: str
    doc: str


@dataclass(frozen=True)
class Feature:
    """One named part of the policy's observation."""

    name: str
    size: int
    doc: str
    low: float = 0.0
    high: float = 1.0
    categories: int = 0
    """0: `size` scalars in [low, high]. n > 0: `size` integers in [0, n), embedded by the policy."""


@dataclass(frozen=True)
class Script:
    """A template of the world's script book: what a competent programmer would ship first."""

    name: str
    goal: str
    done_when: str
    """Expression over `start` and `view`."""
    sources: tuple[str, ...]
    """Versions ordered by length; a rung is left only on measured failure."""
    needs: tuple[str, ...] = ()
    """Names of scripts whose result this one needs."""
    gives: tuple[str, ...] = ()
    """Milestones it is meant to reach."""
    hard: bool = False
    """The author expects that code alone will not do; a planner may hand it to RL at once."""


class StepResult(NamedTuple):
    reward: float
    """The world's published reward of this env step."""
    terminated: bool
    truncated: bool
    """Only for a cut that is an artefact; a task's own limit is `terminated`."""


class Ending(NamedTuple):
    """How the agent stands at the end of an episode, as far as the world can tell."""

    cause: str = ""
    """What killed it, in one word of the world (`zombie`, `lava`, `thirst`); empty where it lives, or nobody knows."""
    vitals: Mapping[str, float] = MappingProxyType({})
    """What it lives by, as it was then: health, food ..."""


@runtime_checkable
class Env(Protocol):
    """One running copy of a world. Not thread-safe. Deterministic in (task, seed, commands)."""

    task: Task
    steps: int
    """Env steps since reset."""

    def reset(self, seed: int) -> None:
        """Start an episode; `seed` in [0, 2**31)."""

    def step(self, command: NativeAction) -> StepResult: ...

    def succeeded(self) -> bool:
        """Whether the task's success test holds now."""

    def milestones(self) -> frozenset[str]:
        """Reached in this episode."""

    def observe(self) -> NDArray[np.float32]:
        """The selected features in order, flat. A fresh array or a view valid until the next step."""

    def pixels(self) -> NDArray[np.uint8]:
        """(height, width, 3); only when the env was made with `pixels`."""

    def action_masks(self) -> NDArray[np.bool_]:
        """Legal policy actions, flat over all heads."""

    def view(self, whole: bool) -> bytes:
        """The view for coded actions, packed for `World.host_module`.

        `whole` when an option starts: includes the complete map memory; else only what changed since
        the previous env step.
        """

    def interrupt(self) -> bool:
        """Whether the last env step should interrupt an option (health lost, enemy newly adjacent)."""

    def waiting(self) -> bool:
        """Asleep or at a world-declared wait: such steps do not count towards a dead loop."""

    def progress_key(self) -> int:
        """Hash of what must change when the agent gets anywhere (cell, facing, inventory)."""

    def novelty(self) -> int:
        """Grows whenever a milestone, an inventory maximum or a newly seen cell occurs (dead loop test)."""

    def distance(self, target: str) -> float | None:
        """Env-native distance to the nearest `target` in sight, None if unseen."""

    def frame(self) -> bytes:
        """What a console needs to draw this moment; the format is `World.frame_format`."""

    def save(self) -> bytes:
        """Exact state, no pickle; restoring it repeats the same future."""

    def restore(self, state: bytes) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class TellsEnding(Protocol):
    """Optional part of an Env: how an episode ended, for rows that agents and operators read; see `ending_of`."""

    def ending(self) -> Ending: ...


@runtime_checkable
class Surveys(Protocol):
    """Optional part of an Env that hides most of its world; see `survey_of`."""

    def survey(self) -> str:
        """How much of this episode's world the agent has seen, and what there is of it that a goal may need, in one
        sentence. Told of lost episodes, so that agents and operators can tell a search that was too short from a goal
        that was out of reach."""


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
class World(Protocol):
    name: str
    version: str
    tasks: Mapping[str, Task]
    action_nvec: tuple[int, ...]
    """Sizes of the policy's action heads: (17,) is Discrete, (12, 3) MultiDiscrete. Coded actions
    extend the first head. Of several heads, index 0 of each is neutral: all together they keep still, and
    the further heads stay at 0 while a coded action runs or a primitive is tried alone."""
    primitives: tuple[Primitive, ...]
    """Of the first head, index = action."""
    features: Mapping[str, Feature]
    default_features: tuple[str, ...]
    targets: tuple[str, ...]
    """Names `Env.distance` understands."""
    native_action_size: int
    host_module: str
    """Import path of the stdlib-only module that decodes views in the action host (see HostSide)."""
    frame_format: str
    """Name of what `Env.frame` returns: `crafter-window-1`, `jpeg`, `text` ..."""
    frame_module: str
    """Import path of the stdlib-only module that draws frames in the console (see FrameSide), in the package of the
    world; "" for `jpeg` (a picture, whose comment stands under it) and `text`, which the console draws itself."""
    restorable: bool
    pixel_shape: tuple[int, int, int] | None

    def native_action(self, action: Sequence[int]) -> NativeAction:
        """The command of one policy action (one index per head)."""

    def make(self, task: str, *, features: Sequence[str] | None = None, pixels: bool = False) -> Env:
        """A new env; raises `UnknownTask` (a sentence) for an unknown id."""

    def sheet(self, task: str) -> dict[str, Any]:
        """The world sheet as plain data, rendered by prompts/world_sheet.md: `items`, `recipes`,
        `primitives`, `view_doc`, `library_doc`, `dangers`, `milestones`, `scripts`, `limits`."""

    def scripts(self, task: str) -> tuple[Script, ...]:
        """The script book, empty if the world has none."""


@runtime_checkable
class MakesAhead(Protocol):
    """Optional part of a World that takes long to make an episode's world, and can while others are played."""

    def expect(self, seeds: Sequence[int]) -> None:
        """Episodes with these seeds will begin. Nothing but time depends on it."""


@runtime_checkable
class Scores(Protocol):
    """The part of a World that has a task of kind `score`."""

    def score(self, rates: NDArray[np.float64]) -> NDArray[np.float64]:
        """The score, in [0, 1], of episodes of which these shares reached each of the task's milestones (last axis)."""


@runtime_checkable
class LimitsEnvs(Protocol):
    """Optional part of a World of which only so many envs fit a machine (each Minecraft is a process of 3 GB)."""

    max_envs: int


@runtime_checkable
class StepsSlowly(Protocol):
    """Optional part of a World; see `is_slow`."""

    slow: bool


@runtime_checkable
class ResetsSlowly(Protocol):
    """Optional part of a slow World whose resets take as long as many env steps; see `reset_turns`."""

    reset_steps: int


@runtime_checkable
class ChecksMachine(Protocol):
    """Optional part of a World that needs something which a machine may lack."""

    def ready(self) -> None:
        """Called before a session is made. Raises `WorldFailed` where none can start."""


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


class HostSide(Protocol):
    """The module named by `World.host_module`. Imported in the action host: stdlib only, no I/O."""

    LIBRARY: Mapping[str, Any]
    """Pure functions and constants that generated code may name."""
    NATIVE_ACTION_SIZE: int

    def decoder(self) -> Decoder: ...

    def encode(self, yielded: object) -> NativeAction:
        """Exact-type and range check of a yield; raises ValueError with the sentence for the agent."""


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


class Decoder(Protocol):
    """Keeps the map memory of one env between the packed views of one option call."""

    def view(self, packed: bytes) -> object:
        """An immutable plain-data view; attributes are documented in the world sheet's `view_doc`."""


class FrameSide(Protocol):
    """The module named by `World.frame_module`. The console loads it by its path, also where the world itself cannot be
    imported: it imports the standard library only, nothing of its own package, and does no I/O."""

    def draw(self, body: bytes, width: int, height: int, decision: str) -> list[list[tuple[str, str]]] | None:
        """A frame as rows of (text, style) for a pane of `width` x `height` cells, None for bytes that are no frame.

        `decision` is the option in force. A style is words of the console's palette (`dim`, `bold`, `ok`, `warn`,
        `bad`, `accent`, `curve1`..`curve8`, `tile_<thing>`, `on_<ground>`, `night`) or colours, `#rrggbb` or
        `#front/#back`.
        """


@runtime_checkable
class TellsState(Protocol):
    """Optional part of a FrameSide."""

    def state(self, body: bytes) -> Mapping[str, float]:
        """What the agent has and how it is in a frame, name -> number (health, wood ...): the console shows what
        changed since the frame before. {} for bytes that are no frame."""


def side_by_side(world: World, wanted: int) -> int:
    """How many envs of a world to run at once: `wanted`, or fewer where the world limits them."""
    return max(1, min(wanted, world.max_envs if isinstance(world, LimitsEnvs) else wanted))


def check_machine(world: World) -> None:
    """Raises `WorldFailed` where the machine lacks what the world needs."""
    if isinstance(world, ChecksMachine):
        world.ready()


def report_to(world: World, listener: Callable[[WorldEvent], None]) -> None:
    """From now on the world's events go to `listener`; most worlds have none."""
    if isinstance(world, ReportsEvents):
        world.report = listener


def describe_view(host_side: object, view: object) -> dict[str, Any] | None:
    """The module's own description of a view, None where it offers none."""
    return dict(host_side.describe(view)) if isinstance(host_side, DescribesViews) else None


def expect(world: World, seeds: Sequence[int]) -> None:
    """Tell a world that makes ahead which episodes will begin."""
    if isinstance(world, MakesAhead):
        world.expect(seeds)


def is_slow(world: World) -> bool:
    """Whether a world's env steps take so long (Minecraft: 30 ms) that all lanes are stepped at once, and not in two
    halves while the action host works for the other: `StepsSlowly.slow`, False where it has none.

    The order in which lanes decide depends on it, and with that what a training learns. So it is a property of the
    world: an env may compute here or elsewhere (`StepsElsewhere`), and nothing but time changes.
    """
    return isinstance(world, StepsSlowly) and world.slow


def reset_turns(world: World) -> int:
    """Turns that a lane of a slow world is left out between two episodes, while the others go on:
    `ResetsSlowly.reset_steps`, about as many env steps as a reset takes; 0 where it has none.

    It is a number of the world and not the time that a reset happens to take, because the order in which lanes decide
    depends on it.
    """
    return world.reset_steps if is_slow(world) and isinstance(world, ResetsSlowly) else 0


def ending_of(env: Env) -> Ending:
    """How the episode stands that has just ended; empty where the world does not tell."""
    return env.ending() if isinstance(env, TellsEnding) else Ending()


def survey_of(env: Env) -> str:
    """Of the episode that is played; empty where the world does not tell."""
    return env.survey() if isinstance(env, Surveys) else ""


def score_of(world: World, task: Task, reached: Mapping[str, int], episodes: int) -> float | None:
    """The score of some episodes, of which so many reached each milestone. None for a task that is won or lost, and
    without episodes."""
    if task.kind != "score" or not episodes or not isinstance(world, Scores):
        return None
    return float(world.score(np.array([reached.get(name, 0) / episodes for name in task.milestones])))


class WorldFailed(RuntimeError):
    """The world cannot go on, whatever is tried again; the argument is the sentence for the operator."""


class UnknownTask(KeyError):
    """The sentence for the operator is the argument."""

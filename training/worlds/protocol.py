"""What a world must offer. The rest of `training` uses a world only through this file and `optional_parts.py`, which
has the parts that a world may offer besides.

A `World` is the immutable description (tasks, primitives, features, documentation); an `Env` is one
running copy of it on one task. Third parties register a world under the entry point group
`rlgpt.worlds`; `rlgpt world check NAME` runs the conformance check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

NativeAction = tuple[int, ...]
"""One action in the world's own form: `World.native_action_size` integers, each in the range of int16."""


@dataclass(frozen=True)
class Task:
    id: str
    prompt: str
    """One sentence for people and models."""
    horizon: int
    """Env steps until the episode terminates. The end is `terminated`, not `truncated`, because the policy observes the
    time that is left."""
    milestones: tuple[str, ...]
    """Names of `Env.milestones` on the way to the goal, in the usual order; the last one is the goal."""
    kind: str = "goal"
    """`goal`: the last milestone is the success and ends the episode. `score`: no success ends it; its result is the
    score of its milestones (`optional_parts.Scores`). `survive`: success is to be alive at the horizon."""
    long_horizon: bool = False
    """True if a task planner should order sub-tasks first."""
    sub_tasks: tuple[str, ...] = ()
    """Ids of tasks that a task planner may order on the way."""
    start: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the world's own start, in the world's own terms (an inventory, for example)."""


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
    """An entry of the world's script book: code for one sub-action, in the versions that a programmer would write."""

    name: str
    goal: str
    done_when: str
    """Expression over `start` and `view`."""
    sources: tuple[str, ...]
    """Versions ordered by length. The rule-based model goes on to the next one only when a trial of this one failed."""
    needs: tuple[str, ...] = ()
    """Names of scripts whose result this one needs."""
    gives: tuple[str, ...] = ()
    """Milestones that it is meant to reach."""
    hard: bool = False
    """The author expects that code alone does not suffice; a planner may choose the mode `rl` at once."""
    trigger: str = ""
    """Of an action that no plan of steps needs, and that may help at the right moment: where it may be tried. A planner
    may offer it to a policy (mode `option`) once all its needs are in the plan."""


class StepResult(NamedTuple):
    reward: float
    """The world's published reward of this env step."""
    terminated: bool
    truncated: bool
    """The episode was broken off for a reason outside the task, such as a lost game. A task's own limit is
    `terminated`."""


@runtime_checkable
class Env(Protocol):
    """One running copy of a world on one task. Not thread-safe. Equal task, seed and commands give an equal episode."""

    task: Task
    steps: int
    """Env steps since reset."""

    def reset(self, seed: int) -> None:
        """Start an episode; `seed` in [0, 2**31)."""

    def step(self, command: NativeAction) -> StepResult: ...

    def succeeded(self) -> bool:
        """Whether the task's success test holds now."""

    def milestones(self) -> frozenset[str]:
        """Names of the milestones reached in this episode."""

    def observe(self) -> NDArray[np.float32]:
        """The selected features in order, flat. A fresh array or a view valid until the next step."""

    def pixels(self) -> NDArray[np.uint8]:
        """`World.pixel_shape` = (height, width, 3); only where the env was made with `pixels`."""

    def action_masks(self) -> NDArray[np.bool_]:
        """(sum of `World.action_nvec`,) which actions are legal, one head after the other; at least one of each
        head."""

    def view(self, whole: bool) -> bytes:
        """The view for coded actions, packed for `World.host_module`.

        With `whole`, which is set when an option starts, it includes the complete map memory, else only what changed
        since the previous env step.
        """

    def interrupt(self) -> bool:
        """Whether the last env step should interrupt an option (health was lost, or an enemy arrived)."""

    def waiting(self) -> bool:
        """Whether the agent waits for something, such as sleep to end: the step does not count towards a dead loop."""

    def progress_key(self) -> int:
        """Hash of what changes when the agent makes progress (cell, facing, inventory)."""

    def novelty(self) -> int:
        """A count that grows with each milestone, inventory maximum or newly seen cell; for the dead loop test."""

    def distance(self, target: str) -> float | None:
        """Distance to the nearest `target` in sight, >= 0 in the world's own unit; None if there is none in sight."""

    def frame(self) -> bytes:
        """What the console needs to draw the present state, in the format `World.frame_format`."""

    def save(self) -> bytes:
        """The exact state, not a pickle: after `restore` the same commands have the same results. Only where
        `World.restorable`."""

    def restore(self, state: bytes) -> None:
        """Continue from a saved state, under this env's own task. Raises ValueError for damaged bytes."""

    def close(self) -> None: ...


@runtime_checkable
class World(Protocol):
    name: str
    version: str
    tasks: Mapping[str, Task]
    action_nvec: tuple[int, ...]
    """Sizes of the policy's action heads: (17,) is Discrete, (12, 3) MultiDiscrete. Coded actions
    extend the first head. With several heads, index 0 of each is neutral: all together they do nothing, and the
    further heads stay at 0 while a coded action runs or a primitive is tried alone."""
    primitives: tuple[Primitive, ...]
    """The actions of the first head, in their order."""
    features: Mapping[str, Feature]
    default_features: tuple[str, ...]
    targets: tuple[str, ...]
    """Names that `Env.distance` takes."""
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
        """The native action of one policy action, which is one index per head."""

    def make(self, task: str, *, features: Sequence[str] | None = None, pixels: bool = False) -> Env:
        """A new env that observes these features, `default_features` for None. Raises `UnknownTask`."""

    def sheet(self, task: str) -> dict[str, Any]:
        """The world sheet as plain data, rendered by prompts/world_sheet.md: `items`, `recipes`,
        `primitives`, `view_doc`, `library_doc`, `dangers`, `milestones`, `scripts`, `limits`."""

    def scripts(self, task: str) -> tuple[Script, ...]:
        """The script book, empty if the world has none."""


class HostSide(Protocol):
    """The module named by `World.host_module`. Imported in the action host: stdlib only, no I/O."""

    LIBRARY: Mapping[str, Any]
    """Pure functions and constants that generated code may name."""
    NATIVE_ACTION_SIZE: int

    def decoder(self) -> Decoder: ...

    def encode(self, yielded: object) -> NativeAction:
        """The native action of a yielded value, checked for its exact type and range. Raises ValueError with the
        sentence for the agent. In a world with one head the name of each primitive stands for it."""


class Decoder(Protocol):
    """Decodes the views of one env, and keeps its map memory between the views of one option call."""

    def view(self, packed: bytes) -> object:
        """An immutable view of plain data; the world sheet's `view_doc` describes its attributes."""


class FrameSide(Protocol):
    """The module named by `World.frame_module`. The console loads it by its path, also where the world itself cannot be
    imported: it imports the standard library only, nothing of its own package, and does no I/O."""

    def draw(self, body: bytes, width: int, height: int, decision: str) -> list[list[tuple[str, str]]] | None:
        """A frame as rows of (text, style) for a pane of `width` x `height` cells, None for bytes that are no frame.

        `decision` is the option in force. A style is words of the console's palette (`dim`, `bold`, `ok`, `warn`,
        `bad`, `accent`, `curve1`..`curve8`, `tile_<thing>`, `on_<ground>`, `night`) or colours, `#rrggbb` or
        `#front/#back`.
        """


class WorldFailed(RuntimeError):
    """The world cannot go on, and another try would not help; the argument is the sentence for the operator."""


class UnknownTask(KeyError):
    """The sentence for the operator is the argument."""

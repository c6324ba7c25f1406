"""What a world must offer. Everything else in `training` sees a world only through this file and `optional_parts.py`,
which says what a world may offer besides.

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


class HostSide(Protocol):
    """The module named by `World.host_module`. Imported in the action host: stdlib only, no I/O."""

    LIBRARY: Mapping[str, Any]
    """Pure functions and constants that generated code may name."""
    NATIVE_ACTION_SIZE: int

    def decoder(self) -> Decoder: ...

    def encode(self, yielded: object) -> NativeAction:
        """Exact-type and range check of a yield; raises ValueError with the sentence for the agent."""


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


class WorldFailed(RuntimeError):
    """The world cannot go on, whatever is tried again; the argument is the sentence for the operator."""


class UnknownTask(KeyError):
    """The sentence for the operator is the argument."""

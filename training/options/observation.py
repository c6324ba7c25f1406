"""What the policy observes: the configured features, the time left, and what the reward remembers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.options.rewards import RewardStream
from rlgpt.training.worlds.bounds import bounds_flaw, picture_flaw
from rlgpt.training.worlds.protocol import Env, Feature, World, WorldFailed

PIXELS = "pixels"
"""As a name in a configuration's `observation`: the world's picture instead of its features."""
TIME_LEFT = Feature("time_left_of_horizon", 1, "share of the task's horizon that is left in this episode")


class ObservationError(ValueError):
    """The observation cannot be built; the sentence is the argument."""


@dataclass(frozen=True)
class Observation:
    """Layout of the policy's input: (size,) float32, or uint8 with a picture first.

    With a picture, the scalars after it are shares of 255.
    """

    features: tuple[Feature, ...]
    """Of the world, in order; empty with pixels."""
    own: tuple[Feature, ...]
    """Appended by the runner: TIME_LEFT, then the reward's."""
    picture: tuple[int, int, int] | None = None
    """(height, width, 3)."""

    @cached_property
    def world_size(self) -> int:
        if self.picture:
            height, width, depth = self.picture
            return height * width * depth
        return sum(feature.size for feature in self.features)

    @cached_property
    def size(self) -> int:
        return self.world_size + len(self.own)

    @property
    def dtype(self) -> type[np.uint8] | type[np.float32]:
        return np.uint8 if self.picture else np.float32

    def fingerprint(self) -> str:
        """Equal for layouts that a policy cannot tell apart."""
        named = [(f.name, f.size, f.low, f.high, f.categories) for f in (*self.features, *self.own)]
        text = repr((self.picture, named))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def read(self, env: Env, stream: RewardStream, left: float) -> NDArray[Any]:
        """A fresh row. `left` in [0, 1]. Raises WorldFailed when the world's part has another shape than was
        declared, a picture is not of uint8, or a number is infinite or none: a network that learnt from it would
        answer nothing else for ever."""
        row: NDArray[Any] = np.empty(self.size, self.dtype)
        observation: NDArray[Any] = env.pixels() if self.picture else env.observe()
        count = self.world_size
        expected = tuple(self.picture or (count,))
        if getattr(observation, "shape", None) != expected:
            raise WorldFailed(
                f"The world observed {_told(observation)} at step {env.steps} of an episode of {env.task.id}; "
                f"{expected} was expected."
            )
        if self.picture and observation.dtype != np.uint8:  # shares of 1 would all be cut down to black
            raise WorldFailed(
                f"The world observed a picture of {observation.dtype} at step {env.steps} of an episode of "
                f"{env.task.id}; uint8 (0 to 255) was expected."
            )
        row[:count] = observation.reshape(-1) if self.picture else observation
        if not self.picture and not isfinite(row[:count].sum()):
            raise WorldFailed(self._not_finite(row, env))
        own = [left, *stream.observe()]
        row[count:] = [round(255 * value) for value in own] if self.picture else own
        return row

    def _not_finite(self, row: NDArray[Any], env: Env) -> str:
        names = [feature.name for feature in self.features for _ in range(feature.size)]
        bad = next((i for i, value in enumerate(row[: len(names)]) if not isfinite(value)), 0)
        return f"The world observed {names[bad]} = {row[bad]} at step {env.steps} of an episode of {env.task.id}."


def _told(observation: object) -> str:
    """A world may return anything."""
    if isinstance(observation, np.ndarray):
        return f"an array of shape {observation.shape}"
    return f"a {type(observation).__name__} and no array"


def build_observation(world: World, names: Sequence[str], stream: RewardStream) -> Observation:
    """Raises ObservationError where the world has no such thing, WorldFailed where it declares a feature that no
    network can take in."""
    own = (TIME_LEFT, *stream.features())
    if PIXELS in names:
        if world.pixel_shape is None:
            raise ObservationError(f"The world {world.name} has no pixel observation.")
        if flaw := picture_flaw(world.pixel_shape):
            raise WorldFailed(f"The world {world.name} cannot be learnt from pixels: {flaw}.")
        return Observation((), own, world.pixel_shape)
    unknown = [name for name in names if name not in world.features]
    if unknown or not names:
        raise ObservationError(
            f"The world {world.name} has no feature {unknown[0]!r}." if unknown else "No feature is observed."
        )
    features = tuple(world.features[name] for name in names)
    for flaw in filter(None, map(bounds_flaw, features)):
        raise WorldFailed(f"The world {world.name} cannot be learnt: {flaw}.")
    return Observation(features, own)


def make_env(world: World, task: str, observation: Observation) -> Env:
    if observation.picture:
        return world.make(task, pixels=True)
    return world.make(task, features=[feature.name for feature in observation.features])

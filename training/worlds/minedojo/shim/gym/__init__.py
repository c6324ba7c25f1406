"""The small part of gym 0.21 that the MineDojo client uses, for interpreters without gym.

gym 0.21 cannot be installed by a current pip (its metadata is invalid), and MineDojo needs nothing of it but
these classes. The bridge child puts this folder on the path only where `import gym` fails, and in PYTHONPATH,
because the client's launch watchdog imports the client again in a process of its own. Valid on Python 3.9.
"""

from __future__ import annotations

from typing import Any

import numpy as np

if not hasattr(np, "unicode_"):  # removed in numpy 2; the client names it once
    np.unicode_ = np.str_  # type: ignore[attr-defined]

from . import spaces
from .spaces import Space

__version__ = "0.21.0+rlgpt"
__all__ = ["Env", "ObservationWrapper", "Space", "Wrapper", "spaces"]


class Env:
    """An environment with the old interface: reset() -> observation, step() -> (obs, reward, done, info)."""

    action_space: Any
    observation_space: Any

    def close(self) -> None:
        """Nothing to release by default."""

    @property
    def unwrapped(self) -> Env:
        return self


class Wrapper(Env):
    """Delegates whatever it does not define itself to `env`."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"private attribute {name!r} of a wrapped environment")
        return getattr(self.env, name)

    @property
    def action_space(self) -> Any:
        own = self.__dict__.get("_action_space")
        return self.env.action_space if own is None else own

    @action_space.setter
    def action_space(self, space: Any) -> None:
        self.__dict__["_action_space"] = space

    @property
    def observation_space(self) -> Any:
        own = self.__dict__.get("_observation_space")
        return self.env.observation_space if own is None else own

    @observation_space.setter
    def observation_space(self, space: Any) -> None:
        self.__dict__["_observation_space"] = space

    def reset(self, **kwargs: Any) -> Any:
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> Any:
        return self.env.step(action)

    def close(self) -> None:
        self.env.close()

    @property
    def unwrapped(self) -> Any:
        return self.env.unwrapped


class ObservationWrapper(Wrapper):
    """Passes every observation through `observation`."""

    def reset(self, **kwargs: Any) -> Any:
        return self.observation(self.env.reset(**kwargs))

    def step(self, action: Any) -> Any:
        observation, reward, done, info = self.env.step(action)
        return self.observation(observation), reward, done, info

    def observation(self, observation: Any) -> Any:
        return observation

"""A world whose games are played elsewhere, and the setting that says where.

The place is not stored with a session: `--games-on` and RLGPT_GAMES_ON hold for one start of its worker.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

from rlgpt.store.home import GAMES_ON
from rlgpt.training.worlds.away.channel import Channel
from rlgpt.training.worlds.away.env import AwayEnv
from rlgpt.training.worlds.away.process import GameProcess
from rlgpt.training.worlds.optional_parts import (
    ChecksMachine,
    LimitsEnvs,
    ResetsSlowly,
    Scores,
    StepsSlowly,
    WorldEvent,
    is_slow,
    log_event,
    offers,
)
from rlgpt.training.worlds.protocol import Task, UnknownTask, World, WorldFailed

PLAYER = "rlgpt.training.worlds.away.player:Player"
LOCAL = "local"
"""The place that means: each game in a process of its own on this machine."""
PARTS = (Scores, LimitsEnvs, StepsSlowly, ResetsSlowly, ChecksMachine)
"""Optional parts of a World that an `AwayWorld` offers where its inner world does."""
MEMBERS = sorted(
    {name for part in (World, *PARTS) for name in (*part.__annotations__, *vars(part)) if not name.startswith("_")}
    - {"make"}
)


class Games(Protocol):
    """Starts games somewhere."""

    def open(self, side: str, resource: str = "") -> Channel:
        """Start a game. `side` is `module:class` of what answers there; `resource` is what a machine must offer for it,
        empty for nothing special. Raises `GameLost`."""

    def room(self, resource: str) -> int | None:
        """How many games the machines offer `resource` for, None where there is no limit. Raises StoreError."""


class LocalGames:
    """Each in a process of its own on this machine."""

    def open(self, side: str, resource: str = "") -> Channel:
        return GameProcess(side)

    def room(self, resource: str) -> int | None:
        return None


class PlacesGames(Protocol):
    """Optional part of a World whose games are processes of their own anyway."""

    def place_games(self, games: Games) -> None:
        """From now on start games by `games`. Raises `WorldFailed`, StoreError."""


class AwayWorld:
    """The world `inner`, which the registry calls `name`; each of its envs is an `AwayEnv` with a game of `games`."""

    def __init__(self, inner: World, name: str, games: Games) -> None:
        self.tasks: Mapping[str, Task] = inner.tasks
        for member in MEMBERS:
            if hasattr(inner, member):
                setattr(self, member, getattr(inner, member))
        self.report: Callable[[WorldEvent], None] = log_event
        self._inner, self._name, self._games = inner, name, games
        self._idle_games: list[Channel] = []
        self._parts: list[str] | None = None
        atexit.register(self.close)

    def make(self, task: str, *, features: Sequence[str] | None = None, pixels: bool = False) -> AwayEnv:
        if task not in self.tasks:
            raise UnknownTask(f"The world {self._inner.name} has no task {task!r}.")
        env_arguments = [self._name, task, None if features is None else list(features), pixels]
        version, park = self._inner.version, self._idle_games.append
        env = AwayEnv(self.tasks[task], env_arguments, version, self._open, park, lambda event: self.report(event))
        if self._parts is None:  # all envs of a world have the same parts, so only the first game is waited for
            self._parts = env.parts()
        env.add_parts(self._parts)
        return env

    def _open(self) -> Channel:
        return self._idle_games.pop() if self._idle_games else self._games.open(PLAYER)

    def close(self) -> None:
        """End the games that no env uses."""
        while self._idle_games:
            self._idle_games.pop().end()


def games_place() -> str:
    """Where games are played by the operator's setting: `local`, an address of a cluster, or empty for the worker's own
    process."""
    return os.environ.get(GAMES_ON, "")


def check_slow(world: World, place: str) -> None:
    """Raises `WorldFailed` for a world that is not slow; `place` is named in the sentence."""
    if not is_slow(world):
        raise WorldFailed(
            f"The games of {world.name} are not played elsewhere ({place}): it does not say that its env steps are "
            f"slow, and a message would take longer than a step. Leave out --games-on and unset {GAMES_ON}."
        )


def played_at(world: World, name: str, games: Games) -> World:
    """The world, which the registry calls `name`, with its games started by `games`."""
    if offers(world, PlacesGames):
        world.place_games(games)
        return world
    return cast(World, AwayWorld(world, name, games))

"""A world whose games are played elsewhere, and the choice of where.

Where a game is played is no part of a session: `--games-on` and RLGPT_GAMES_ON hold for one start of its worker.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast, runtime_checkable

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
)
from rlgpt.training.worlds.protocol import Task, UnknownTask, World, WorldFailed

PLAYER = "rlgpt.training.worlds.away.player:Player"
LOCAL = "local"
"""Each game in a process of its own on this machine."""
PARTS = (Scores, LimitsEnvs, StepsSlowly, ResetsSlowly, ChecksMachine)
"""Optional parts of a World that it has away as well."""
MEMBERS = sorted(
    {name for part in (World, *PARTS) for name in (*part.__annotations__, *vars(part)) if not name.startswith("_")}
    - {"make"}
)


class Games(Protocol):
    """What starts games somewhere."""

    def open(self, side: str, resource: str = "") -> Channel:
        """`side` names the class that answers there; `resource` what a place must offer for it. Raises `GameLost`."""

    def room(self, resource: str) -> int | None:
        """For how many games there is one, None where nobody counts. Raises StoreError."""


class LocalGames:
    """Each in a process of its own on this machine."""

    def open(self, side: str, resource: str = "") -> Channel:
        return GameProcess(side)

    def room(self, resource: str) -> int | None:
        return None


@runtime_checkable
class PlacesGames(Protocol):
    """Optional part of a World whose games are processes of their own anyway."""

    def place_games(self, games: Games) -> None:
        """From now on they are started there. Raises `WorldFailed`, StoreError."""


class AwayWorld:
    """The world `inner`, which the registry calls `name`, with one of `games` for each env."""

    def __init__(self, inner: World, name: str, games: Games) -> None:
        self.tasks: Mapping[str, Task] = inner.tasks
        for member in MEMBERS:
            if hasattr(inner, member):
                setattr(self, member, getattr(inner, member))
        self.report: Callable[[WorldEvent], None] = log_event
        self._inner, self._name, self._games = inner, name, games
        self._parked: list[Channel] = []
        self._parts: list[str] | None = None
        atexit.register(self.close)

    def make(self, task: str, *, features: Sequence[str] | None = None, pixels: bool = False) -> AwayEnv:
        if task not in self.tasks:
            raise UnknownTask(f"The world {self._inner.name} has no task {task!r}.")
        wanted = [self._name, task, None if features is None else list(features), pixels]
        env = AwayEnv(
            self.tasks[task], wanted, self._inner.version, self._open, self._parked.append, lambda e: self.report(e)
        )
        if self._parts is None:  # they are the same for all: the games of the others need not be waited for
            self._parts = env.parts()
        env.add_parts(self._parts)
        return env

    def _open(self) -> Channel:
        return self._parked.pop() if self._parked else self._games.open(PLAYER)

    def close(self) -> None:
        """End the games that nobody plays."""
        while self._parked:
            self._parked.pop().end()


def named() -> str:
    """Where games are to be played; empty: in the worker."""
    return os.environ.get(GAMES_ON, "")


def check_slow(world: World, place: str) -> None:
    """Raises `WorldFailed`."""
    if not is_slow(world):
        raise WorldFailed(
            f"The games of {world.name} are not played elsewhere ({place}): it does not say that its env steps are "
            f"slow, and a message would take longer than a step. Leave out --games-on and unset {GAMES_ON}."
        )


def played_at(world: World, name: str, games: Games) -> World:
    """The world, which the registry calls `name`, with those games."""
    if isinstance(world, PlacesGames):
        world.place_games(games)
        return world
    return cast(World, AwayWorld(world, name, games))

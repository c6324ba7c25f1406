"""What the environments of one world share: the lock for launching a game, the ports of games that already run, and
parked games to use again.

A game takes minutes to start, and sessions open and close environments for every trial and evaluation: closing one
parks its game here, and the next environment of the same client task takes it over with a fast reset.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rlgpt.training.worlds.minedojo.bridge import Bridge, GameBridge, MineDojoError
from rlgpt.training.worlds.minedojo.ports import PortLock, free_port
from rlgpt.training.worlds.minedojo.processes import ProcessRecord
from rlgpt.training.worlds.minedojo.settings import Settings, folder


@contextmanager
def launch_lock() -> Iterator[None]:
    """Held by one process of this machine while it starts a game. The kernel releases it when the process dies."""
    path = folder() / "launch.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass
class ParkedGame:
    """A running game that no environment uses. `key` names the client task and the sensors it was made with; `port` is
    None for a game that the client started; `episodes` is how many it has played."""

    key: str
    bridge: GameBridge
    port: int | None
    episodes: int


OpenBridge = Callable[[Settings, Callable[[ProcessRecord], None]], GameBridge]
"""Starts a bridge, and calls the given function with its record once its process runs."""


class GamePool:
    """Counts the games in use and holds those to use again. At most `limit` games run at once: a parked one is ended
    when another task needs its place. `ports` are those of games that already run, empty where the client starts them;
    `open_bridge` starts a game elsewhere than on this machine."""

    def __init__(self, ports: Sequence[int], limit: int, open_bridge: OpenBridge | None = None) -> None:
        self._open_bridge = open_bridge
        self._ports = tuple(ports)
        self._port_locks: dict[int, PortLock] = {}
        self._free_ports = list(ports)
        self._limit = limit
        self._games_in_use = 0
        self._parked_games: list[ParkedGame] = []

    @contextmanager
    def launch(self, settings: Settings, on_start: Callable[[ProcessRecord], None]) -> Iterator[GameBridge]:
        """A new bridge. While the block lasts no other game is launched on this machine, because each launch copies the
        game's folder and takes a free port. An `open_bridge` takes the lock on the machine of its game."""
        if self._open_bridge is not None:
            yield self._open_bridge(settings, on_start)
            return
        with launch_lock():
            yield Bridge(settings, on_start)

    def take(self, key: str) -> ParkedGame | None:
        """A parked game of that key, which now counts as in use; None if there is none."""
        for game in self._parked_games:
            if game.key == key:
                self._parked_games.remove(game)
                self._games_in_use += 1
                return game
        return None

    def reserve(self) -> int | None:
        """Reserve a place for a new game and return a free one of the given ports, None where the client starts games.

        Raises `MineDojoError` when all given ports are in use, here or by another session, or when something else than
        the game listens on one.
        """
        while self._parked_games and not self._has_place():
            self._end_parked(self._parked_games.pop(0))
        if self._ports and not self._free_ports:
            raise MineDojoError(
                "order", f"All {len(self._ports)} given game ports are in use; set RLGPT_MINEDOJO_PORTS to more."
            )
        port = self._lock_free_port() if self._ports else None
        self._games_in_use += 1
        return port

    def _has_place(self) -> bool:
        if self._ports:
            return bool(self._free_ports)
        return self._games_in_use + len(self._parked_games) < self._limit

    def _lock_free_port(self) -> int:
        lock = free_port(self._free_ports)
        self._port_locks[lock.port] = lock
        self._free_ports.remove(lock.port)
        return lock.port

    def park(self, game: ParkedGame) -> None:
        self._games_in_use -= 1
        self._parked_games.append(game)

    def give_up(self, port: int | None) -> None:
        """Give up the place of a game that has ended; its port is free again."""
        self._games_in_use -= 1
        self._release_port(port)

    def close(self) -> None:
        """End every parked game."""
        while self._parked_games:
            self._end_parked(self._parked_games.pop())

    def _end_parked(self, game: ParkedGame) -> None:
        game.bridge.close()
        self._release_port(game.port)

    def _release_port(self, port: int | None) -> None:
        if port is not None:
            self._port_locks.pop(port).release()
            self._free_ports.append(port)

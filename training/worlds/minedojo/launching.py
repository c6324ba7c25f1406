"""What the environments of one world share: the right to launch a game, ports of running ones, games to use again.

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
    """Held while a game starts; the kernel releases it with its holder's last breath."""
    path = folder() / "launch.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass
class Parked:
    """A running game that nobody plays. `key` names the client task and sensors it was made with."""

    key: str
    bridge: GameBridge
    port: int | None
    episodes: int


Opened = Callable[[Settings, Callable[[ProcessRecord], None]], GameBridge]
"""Starts a bridge; the function that it is given is called once its process runs."""


class GamePool:
    """`limit`: games at once; a parked one is ended when another task needs the room. `opened` starts one elsewhere."""

    def __init__(self, ports: Sequence[int], limit: int, opened: Opened | None = None) -> None:
        self._opened = opened
        self._all = tuple(ports)
        self._locks: dict[int, PortLock] = {}
        self._free = list(ports)
        self._limit = limit
        self._playing = 0
        self._parked: list[Parked] = []

    @contextmanager
    def launched(self, settings: Settings, started: Callable[[ProcessRecord], None]) -> Iterator[GameBridge]:
        """A new bridge; while the block lasts no other game is launched on its machine: each copies the game's folder
        and takes a free port."""
        if self._opened is not None:
            yield self._opened(settings, started)
            return
        with launch_lock():
            yield Bridge(settings, started)

    def take(self, key: str) -> Parked | None:
        """A parked game of that key, if there is one."""
        for parked in self._parked:
            if parked.key == key:
                self._parked.remove(parked)
                self._playing += 1
                return parked
        return None

    def room(self) -> int | None:
        """Room for a new game: a free port of those given, None where games are started.

        Raises `MineDojoError` when all given ports are in use, here or by another session, or when no game listens.
        """
        while self._parked and (not self._free if self._all else self._playing + len(self._parked) >= self._limit):
            self._end(self._parked.pop(0))
        if self._all and not self._free:
            raise MineDojoError(
                "order", f"All {len(self._all)} given game ports are in use; set RLGPT_MINEDOJO_PORTS to more."
            )
        port = self._free_port() if self._all else None
        self._playing += 1
        return port

    def _free_port(self) -> int:
        """The first that no other session steers."""
        lock = free_port(self._free)
        self._locks[lock.port] = lock
        self._free.remove(lock.port)
        return lock.port

    def park(self, parked: Parked) -> None:
        self._playing -= 1
        self._parked.append(parked)

    def leave(self, port: int | None) -> None:
        """A game ended; its port is free again."""
        self._playing -= 1
        self._release(port)

    def close(self) -> None:
        """End every parked game."""
        while self._parked:
            self._end(self._parked.pop())

    def _end(self, parked: Parked) -> None:
        parked.bridge.close()
        self._release(parked.port)

    def _release(self, port: int | None) -> None:
        if port is not None:
            self._unlock(port)
            self._free.append(port)

    def _unlock(self, port: int) -> None:
        self._locks.pop(port).release()

"""What the environments of one world share: the right to launch a game, ports of running ones, games to use again.

A game takes minutes to start, and sessions open and close environments for every trial and evaluation: closing one
parks its game here, and the next environment of the same client task takes it over with a fast reset.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rlgpt.training.worlds.minedojo.bridge import Bridge, MineDojoError
from rlgpt.training.worlds.minedojo.ports import PortLock, need_game
from rlgpt.training.worlds.minedojo.settings import folder


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
    bridge: Bridge
    port: int | None
    episodes: int


class GamePool:
    """`limit`: games at once; a parked one is ended when another task needs the room."""

    def __init__(self, ports: Sequence[int], limit: int) -> None:
        self._all = tuple(ports)
        self._locks: dict[int, PortLock] = {}
        self._free = list(ports)
        self._limit = limit
        self._playing = 0
        self._parked: list[Parked] = []

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
        taken: MineDojoError | None = None
        for port in self._free:
            try:
                self._locks[port] = PortLock(port)
            except MineDojoError as error:
                taken = taken or error
                continue
            try:
                need_game(port)
            except MineDojoError:
                self._unlock(port)
                raise
            self._free.remove(port)
            return port
        assert taken is not None
        raise taken

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

"""What several environments of this machine share: the right to launch a game, and the ports of running ones."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rlgpt.training.worlds.minedojo.bridge import MineDojoError
from rlgpt.training.worlds.minedojo.settings import folder


@contextmanager
def launch_lock() -> Iterator[None]:
    """Held while a game starts; the kernel releases it with its holder's last breath."""
    path = folder() / "launch.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class PortPool:
    """Ports of games that already run, one per environment. Empty: environments start their own games."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._all = tuple(ports)
        self._free = list(ports)

    def take(self) -> int | None:
        """A free port, None when games are started. Raises `MineDojoError` when all are in use."""
        if not self._all:
            return None
        if not self._free:
            raise MineDojoError(
                "order", f"All {len(self._all)} given game ports are in use; set RLGPT_MINEDOJO_PORTS to more."
            )
        return self._free.pop(0)

    def give(self, port: int) -> None:
        self._free.append(port)

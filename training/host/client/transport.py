"""Messages to a host process and back, and where the next process comes from when one died."""

from __future__ import annotations

import time
from typing import Protocol

from rlgpt.training.host.client.errors import HostLost
from rlgpt.training.host.client.process import HostDied

_PAUSES = (0.0, 0.1, 0.5, 2.0)
"""Seconds before another process is tried where one could not be started."""


class Transport(Protocol):
    enforced: dict[str, str]

    def begin(self, kind: int, body: bytes) -> None:
        """Send a message; its reply must be awaited before the next. Raises HostDied."""

    def finish(self, kind: int) -> bytes:
        """The reply's body. Raises HostDied."""

    def exchange(self, kind: int, body: bytes) -> bytes:
        """Both."""

    def cpu_seconds(self) -> float:
        """Of CPU time it has used so far."""

    def resident(self) -> int:
        """Bytes of memory it holds now."""

    def close(self) -> None: ...


class Processes(Protocol):
    """Where transports come from."""

    def take(self) -> Transport:
        """One that is ready; raises HostDied."""

    def close(self) -> None: ...


def replacement(processes: Processes) -> tuple[Transport, int]:
    """A process that is ready, and how many died before they were. Raises HostLost where none can be started."""
    for failures, pause in enumerate(_PAUSES):
        try:
            return processes.take(), failures
        except HostDied:
            time.sleep(pause)
    try:
        return processes.take(), len(_PAUSES)
    except HostDied as died:
        cure = "; `rlgpt world check` says whether it can load the world's host module"
        raise HostLost(f"no action host can be started: the process {died.cause}{cure}") from died

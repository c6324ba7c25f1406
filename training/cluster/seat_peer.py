"""A seat as seen from the machine that placed it: a peer whose every answer is a call of the actor."""

from __future__ import annotations

import time
from typing import Any

from rlgpt.store.errors import StoreError
from rlgpt.store.peers import LIMIT, Batch, Behind, Head, RemoteWorker
from rlgpt.store.row_types import JsonObject
from rlgpt.training.cluster.connect import Ray
from rlgpt.training.cluster.seat import Ending

ANSWER = 20.0
"""Seconds to wait for one answer."""
SILENCE = 60.0
"""Seconds without an answer after which a seat is lost."""


class SeatLost(StoreError):
    """The seat is gone, or does not answer any more: the session goes on elsewhere."""


class SeatPeer:
    """Raises SeatLost, and what the seat raises."""

    def __init__(self, ray: Ray, actor: Any, place: str) -> None:
        self._ray, self._actor = ray, actor
        self.place = place
        self._offered_texts: set[str] = set()

    def ask(self, question: str, *arguments: object) -> Any:
        """The seat may hear a question twice, where only its answer was lost."""
        errors = self._ray.exceptions
        until = time.monotonic() + SILENCE
        asked: Any = None
        while True:
            try:
                asked = asked or getattr(self._actor, question).remote(*arguments)
                return self._ray.get(asked, timeout=ANSWER)
            except errors.RayTaskError as error:
                if isinstance(error.cause, StoreError):
                    raise error.cause from None
                raise SeatLost(f"the seat at {self.place} failed: {error.cause!r:.300}") from error
            except errors.ActorDiedError as error:
                raise SeatLost(f"the seat at {self.place} is gone: {_line(error)}") from error
            except errors.RayError as error:  # it does not answer now; it may again
                if not isinstance(error, errors.GetTimeoutError):  # it is not merely slow
                    asked = None
                if time.monotonic() >= until:
                    raise SeatLost(f"the seat at {self.place} does not answer: {_line(error)}") from error

    # ---- a peer ---------------------------------------------------------------------------------
    def head(self) -> Head:
        return Head(*self.ask("head"))

    def names(self) -> set[str]:
        return set(self.ask("names"))

    def mark(self, seq: int) -> str:
        return str(self.ask("mark", seq))

    def since(self, seq: int, names: set[str], limit: int = LIMIT) -> Batch:
        new = names - self._offered_texts
        batch: Batch = self.ask("since", seq, new, limit)
        self._offered_texts |= new
        return batch

    def append(self, batch: Batch) -> None:
        try:
            self.ask("append", batch)
        except Behind:
            if self.head().seq != batch.last:
                raise

    def worker(self) -> RemoteWorker | None:
        worker: RemoteWorker | None = self.ask("worker")
        return worker

    def send(self, command: JsonObject) -> None:
        self.ask("send", command)

    # ---- its supervisor -------------------------------------------------------------------------
    def ending(self) -> Ending | None:
        ending: Ending | None = self.ask("ending")
        return ending

    def end(self) -> None:
        """End the seat and all that it runs, at once."""
        self._ray.kill(self._actor, no_restart=True)


class SourcePeer:
    """Another session in the seat's home, to be written: one whose recorded calls are replayed there."""

    def __init__(self, seat: SeatPeer, session_id: str) -> None:
        self._seat, self._id = seat, session_id

    def append(self, batch: Batch) -> None:
        self._seat.ask("append_source", self._id, batch)


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]:.200}" if lines else type(error).__name__

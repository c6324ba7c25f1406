"""What carries messages to a game: a process of this machine (`process.py`) or an actor of a cluster
(`training/cluster/games.py`)."""

from __future__ import annotations

from typing import Any, Protocol

import msgpack
import numpy as np

ARRAY, WHOLE = 1, 2
"""Types of ours in messages: an array, and an integer of more than 64 bits."""


class GameLost(Exception):
    """The game, or what carries messages to it, is gone or does not answer; the argument is the sentence why."""


class Channel(Protocol):
    """To one game. Not thread-safe. After `GameLost` it is ended."""

    @property
    def place(self) -> str:
        """Where the game runs, for an operator: `process 4711`, `node tower, process 4711`."""

    def send(self, message: bytes) -> None:
        """Returns at once; the `receive` that must follow waits for the answer. Raises `GameLost`."""

    def receive(self, timeout: float) -> bytes:
        """Raises `GameLost`, also after `timeout` seconds."""

    def end(self) -> None:
        """Ends the game; it may be lost already."""


def pack(message: object) -> bytes:
    packed: bytes = msgpack.packb(message, default=_plain)
    return packed


def unpack(message: bytes) -> Any:
    return msgpack.unpackb(message, ext_hook=_ours, strict_map_key=False)


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return msgpack.ExtType(ARRAY, msgpack.packb([value.dtype.str, value.shape, value.tobytes()]))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, int):
        return msgpack.ExtType(WHOLE, str(value).encode())
    return dict(value)  # type: ignore[call-overload]  # a mapping; anything else raises TypeError, with its type


def _ours(kind: int, data: bytes) -> object:
    if kind == WHOLE:
        return int(data)
    dtype, shape, body = msgpack.unpackb(data)
    return np.frombuffer(body, np.dtype(dtype)).reshape(shape).copy()

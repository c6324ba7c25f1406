"""What carries messages to a game: a process of this machine (`process.py`) or an actor of a cluster
(`training/cluster/games.py`)."""

from __future__ import annotations

from typing import Any, Protocol

import msgpack
import numpy as np

ARRAY, BIG_INTEGER = 1, 2
"""Codes of msgpack extension types: a NumPy array, and an integer of more than 64 bits."""


class GameLost(Exception):
    """The game or the channel to it is gone or does not answer; the argument says why, without a full stop."""


class Channel(Protocol):
    """Carries messages to one game, one request and one reply at a time. Not thread-safe. After `GameLost` the caller
    ends it."""

    @property
    def place(self) -> str:
        """Where the game runs, for an operator: `process 4711`, `node tower, process 4711`."""

    def send(self, message: bytes) -> None:
        """Send a request and return at once; `receive` must follow. Raises `GameLost`."""

    def receive(self, timeout: float) -> bytes:
        """Wait for the reply. Raises `GameLost`, also after `timeout` seconds."""

    def end(self) -> None:
        """End the game; nothing happens if it is lost already."""


def pack(message: object) -> bytes:
    packed: bytes = msgpack.packb(message, default=_encode_special)
    return packed


def unpack(message: bytes) -> Any:
    return msgpack.unpackb(message, ext_hook=_decode_special, strict_map_key=False)


def _encode_special(value: object) -> object:
    if isinstance(value, np.ndarray):
        return msgpack.ExtType(ARRAY, msgpack.packb([value.dtype.str, value.shape, value.tobytes()]))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, int):
        return msgpack.ExtType(BIG_INTEGER, str(value).encode())
    return dict(value)  # type: ignore[call-overload]  # a mapping; anything else raises TypeError, with its type


def _decode_special(kind: int, data: bytes) -> object:
    if kind == BIG_INTEGER:
        return int(data)
    dtype, shape, body = msgpack.unpackb(data)
    return np.frombuffer(body, np.dtype(dtype)).reshape(shape).copy()

"""Messages over the pipes of a child process: four bytes of length, then the message."""

from __future__ import annotations

import os
import select
import struct
import subprocess
import time
from typing import IO

READ = 1 << 16
"""Bytes of a pipe: a small message is one read."""
LIMIT = 64 << 20


class TooLong(Exception):
    """A message beyond LIMIT; the argument says of what length."""


class ChildPipe:
    """The parent's side."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._requests: IO[bytes] = process.stdin
        self._answers: IO[bytes] = process.stdout
        os.set_blocking(self._answers.fileno(), False)
        self._early = bytearray()
        """Read already, and not asked for yet."""

    def send(self, message: bytes) -> None:
        """Raises BrokenPipeError."""
        self._requests.write(struct.pack("!I", len(message)) + message)
        self._requests.flush()

    def receive(self, timeout: float) -> bytes:
        """Raises TimeoutError; EOFError where the child has closed its end; TooLong."""
        deadline = time.monotonic() + timeout
        (size,) = struct.unpack("!I", self._read(4, deadline))
        if size > LIMIT:
            raise TooLong(f"a message of {size} bytes")
        return self._read(size, deadline)

    def _read(self, count: int, deadline: float) -> bytes:
        parts, self._early = self._early, bytearray()
        while len(parts) < count:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                raise TimeoutError
            part = os.read(self._answers.fileno(), max(READ, count - len(parts)))
            if not part:
                raise EOFError
            parts += part
        self._early = parts[count:]
        return bytes(parts[:count])

    def close(self) -> None:
        for pipe in (self._requests, self._answers):
            try:
                pipe.close()
            except BrokenPipeError:
                continue


def serve_request(requests: IO[bytes]) -> bytes | None:
    """The child's side: the next message, None at the end."""
    head = requests.read(4)
    if len(head) < 4:
        return None
    (size,) = struct.unpack("!I", head)
    body = requests.read(size)
    return body if len(body) == size else None

"""Messages over the pipes of a child process: four bytes of length, then the message."""

from __future__ import annotations

import os
import select
import struct
import subprocess
import time
from typing import IO

READ_SIZE = 1 << 16
"""Bytes of one read, the size of a pipe's buffer: a small message takes one read."""
MAX_MESSAGE = 64 << 20
"""Bytes."""


class TooLong(Exception):
    """A message of more than `MAX_MESSAGE` bytes; the argument names its length."""


class ChildPipe:
    """The parent's side: one message at a time each way, with a time limit. Not thread-safe."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._requests: IO[bytes] = process.stdin
        self._answers: IO[bytes] = process.stdout
        os.set_blocking(self._answers.fileno(), False)
        self._unread = bytearray()
        """Bytes that were read beyond the last message."""

    def send(self, message: bytes) -> None:
        """Raises BrokenPipeError."""
        self._requests.write(struct.pack("!I", len(message)) + message)
        self._requests.flush()

    def receive(self, timeout: float) -> bytes:
        """Raises TimeoutError; EOFError where the child has closed its end; TooLong."""
        deadline = time.monotonic() + timeout
        (size,) = struct.unpack("!I", self._read(4, deadline))
        if size > MAX_MESSAGE:
            raise TooLong(f"a message of {size} bytes")
        return self._read(size, deadline)

    def _read(self, count: int, deadline: float) -> bytes:
        parts, self._unread = self._unread, bytearray()
        while len(parts) < count:
            seconds_left = deadline - time.monotonic()
            if seconds_left <= 0 or not select.select([self._answers], [], [], seconds_left)[0]:
                raise TimeoutError
            part = os.read(self._answers.fileno(), max(READ_SIZE, count - len(parts)))
            if not part:
                raise EOFError
            parts += part
        self._unread = parts[count:]
        return bytes(parts[:count])

    def close(self) -> None:
        for pipe in (self._requests, self._answers):
            try:
                pipe.close()
            except BrokenPipeError:
                continue


def serve_request(requests: IO[bytes]) -> bytes | None:
    """The child's side: the next message, None when the parent has closed its end."""
    header = requests.read(4)
    if len(header) < 4:
        return None
    (size,) = struct.unpack("!I", header)
    body = requests.read(size)
    return body if len(body) == size else None

"""Ports of games that already run: a lock, so that one session at a time uses each, and a check that the game listens
there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rlgpt.training.worlds.minedojo.bridge import MineDojoError

PROBE = b"GET / HTTP/1.0\r\n\r\n"
"""Sent to find out what listens on a port. Malmo reads the first four bytes as the length of its greeting and closes
the connection on one as large as this (`MalmoEnvServer.checkHello`); a web server answers it, and many other servers
send a greeting of their own."""
PROBE_SECONDS = 2.0


class PortLock:
    """This process's lock on the game at a port of this machine. It holds between processes of any RLGPT_HOME.

    The kernel releases it when the process dies.
    """

    def __init__(self, port: int) -> None:
        """Raises `MineDojoError` when another process has the port."""
        self.port = port
        path = Path(tempfile.gettempdir()) / f"rlgpt-minedojo-port-{port}.lock"
        try:
            self._descriptor = _open_lock_file(path)
        except OSError as error:
            raise MineDojoError("order", f"Port {port} cannot be locked: {path}: {error.strerror}.") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._descriptor, 20, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            owner_name = f"process {owner}" if owner.isdigit() else "another process"
            raise MineDojoError(
                "order",
                f"The game on port {port} is steered by another session ({owner_name}): stop that one, or set "
                "RLGPT_MINEDOJO_PORTS to other games.",
            ) from None
        with contextlib.suppress(OSError):  # another user's file cannot be written, so it does not name our pid
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        os.close(self._descriptor)


def free_port(ports: Sequence[int]) -> PortLock:
    """A lock on the first of the ports that no other session uses. Raises `MineDojoError` when all are in use, or when
    something else than the game listens on that port."""
    first_refusal: MineDojoError | None = None
    for port in ports:
        try:
            lock = PortLock(port)
        except MineDojoError as error:
            first_refusal = first_refusal or error
            continue
        try:
            need_game(port)
        except MineDojoError:
            lock.release()
            raise
        return lock
    assert first_refusal is not None
    raise first_refusal


def _open_lock_file(path: Path) -> int:
    """Open or create a file that every user of this machine can lock; another user's is opened for reading only."""
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    with contextlib.suppress(FileNotFoundError, PermissionError):
        return os.open(path, flags | os.O_RDWR)
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, flags | os.O_RDONLY)
    descriptor = os.open(path, flags | os.O_RDWR | os.O_CREAT, 0o644)
    os.fchmod(descriptor, 0o644)  # the worker's umask would keep other users from reading it
    return descriptor


def need_game(port: int) -> None:
    """Raises `MineDojoError` where the server on the port speaks another protocol than Malmo's.

    Where nothing listens or nothing answers, this returns, and the client reports it.
    """
    greeting = _probe(port)
    if not greeting:
        return
    lines = greeting.decode("latin-1").splitlines()
    name = next((line[7:].strip()[:60] for line in lines if line.lower().startswith("server:")), lines[0][:80])
    server = f"a web server ({name})" if greeting.startswith(b"HTTP/") else f"a server that says {lines[0][:80]!r}"
    raise MineDojoError(
        "order",
        f"On port {port} listens {server}, not Minecraft with Malmo: start the game there, or set RLGPT_MINEDOJO_PORTS "
        "to the port that the game names in its line `Start MalmoEnvServer on port`.",
    )


def _probe(port: int) -> bytes:
    """What the server on the port sends within `PROBE_SECONDS`, about 2,000 bytes at most."""
    deadline, greeting = time.monotonic() + PROBE_SECONDS, b""
    with contextlib.suppress(OSError), socket.create_connection(("localhost", port), PROBE_SECONDS) as sock:
        sock.sendall(PROBE)
        while len(greeting) < 2000 and (left := deadline - time.monotonic()) > 0:
            sock.settimeout(left)
            part = sock.recv(2000)
            if not part:
                break
            greeting += part
    return greeting

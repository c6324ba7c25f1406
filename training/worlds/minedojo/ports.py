"""Ports of games that already run: one session steers each, and what listens there must be the game."""

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

ASKED = b"GET / HTTP/1.0\r\n\r\n"
"""Malmo reads the first four bytes as the length of its greeting and closes on one as large as this
(`MalmoEnvServer.checkHello`); a web server answers, and many other servers speak first."""
PATIENCE = 2.0


class PortLock:
    """This process's right to steer the game on a port of this machine, whatever RLGPT_HOME it has.

    The kernel releases it with its holder's last breath.
    """

    def __init__(self, port: int) -> None:
        """Raises `MineDojoError` when another process has the port."""
        self.port = port
        path = Path(tempfile.gettempdir()) / f"rlgpt-minedojo-port-{port}.lock"
        try:
            self._descriptor = _open(path)
        except OSError as error:
            raise MineDojoError("order", f"Port {port} cannot be locked: {path}: {error.strerror}.") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(self._descriptor, 20, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            by = f"process {who}" if who.isdigit() else "another process"
            raise MineDojoError(
                "order",
                f"The game on port {port} is steered by another session ({by}): stop that one, or set "
                "RLGPT_MINEDOJO_PORTS to other games.",
            ) from None
        with contextlib.suppress(OSError):  # another user's file tells no pid of ours
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        os.close(self._descriptor)


def free_port(ports: Sequence[int]) -> PortLock:
    """The first of them that no other session steers. Raises `MineDojoError` when all are, or when no game listens."""
    taken: MineDojoError | None = None
    for port in ports:
        try:
            lock = PortLock(port)
        except MineDojoError as error:
            taken = taken or error
            continue
        try:
            need_game(port)
        except MineDojoError:
            lock.release()
            raise
        return lock
    assert taken is not None
    raise taken


def _open(path: Path) -> int:
    """For everybody on this machine to lock: a file that another user made can be read only."""
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    with contextlib.suppress(FileNotFoundError, PermissionError):
        return os.open(path, flags | os.O_RDWR)
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, flags | os.O_RDONLY)
    descriptor = os.open(path, flags | os.O_RDWR | os.O_CREAT, 0o644)
    os.fchmod(descriptor, 0o644)  # the worker's umask would hide it
    return descriptor


def need_game(port: int) -> None:
    """Raises `MineDojoError` where something listens that speaks another protocol than Malmo's.

    Where nobody listens, or nobody answers, the client itself finds out.
    """
    heard = _heard(port)
    if not heard:
        return
    lines = heard.decode("latin-1").splitlines()
    name = next((line[7:].strip()[:60] for line in lines if line.lower().startswith("server:")), lines[0][:80])
    what = f"a web server ({name})" if heard.startswith(b"HTTP/") else f"a server that says {lines[0][:80]!r}"
    raise MineDojoError(
        "order",
        f"On port {port} listens {what}, not Minecraft with Malmo: start the game there, or set RLGPT_MINEDOJO_PORTS "
        "to the port that the game names in its line `Start MalmoEnvServer on port`.",
    )


def _heard(port: int) -> bytes:
    deadline, heard = time.monotonic() + PATIENCE, b""
    with contextlib.suppress(OSError), socket.create_connection(("localhost", port), PATIENCE) as sock:
        sock.sendall(ASKED)
        while len(heard) < 2000 and (left := deadline - time.monotonic()) > 0:
            sock.settimeout(left)
            part = sock.recv(2000)
            if not part:
                break
            heard += part
    return heard

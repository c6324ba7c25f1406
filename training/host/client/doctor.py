"""Does this machine keep what the action host promises? Runs the attack table."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rlgpt.training.host.client.process import HostDied, HostProcess
from rlgpt.training.host.sandbox.attacks import ATTACKS, Attack, Target
from rlgpt.training.host.wire import TEXT_CAP, TICK, UNLOCKED, Reader, Writer

PROBE = Path(__file__).parents[1] / "sandbox" / "probe.py"


@dataclass(frozen=True)
class Line:
    """One protection on this machine."""

    name: str
    protection: str
    enforced: bool
    how: str
    """What stopped the attack, or why the protection is not available here."""


@contextmanager
def target() -> Iterator[Target]:
    """A file, ports and a socket that are there only to be attacked."""
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        Path(folder).chmod(0o755)
        secret = Path(folder, "secret")
        secret.write_text("secret")
        udp.bind(("127.0.0.1", 0))
        path = str(Path(folder, "socket"))
        unix.bind(path)
        unix.listen()
        Path(path).chmod(0o777)
        yield Target(os.getpid(), str(secret), tcp.getsockname()[1], udp.getsockname()[1], path)


def attacked(name: str, attack: Attack, aim: Target, mode: str = "locked") -> Line:
    """Start a locked process and let it attack."""
    hello = Writer().text(mode).text(name).text(aim.secret).number(aim.tcp).number(aim.udp).text(aim.unix)
    process = HostProcess(hello.done(), PROBE)
    try:
        process.ready()
        if UNLOCKED in process.enforced:
            return Line(name, attack.protection, False, f"not available here: {process.enforced[UNLOCKED]}")
        achieved = Reader(process.exchange(TICK, b""), TEXT_CAP).text()
    except HostDied as died:
        # One that ends by itself has got away: it became another program, or left before it was asked.
        return Line(name, attack.protection, not died.cause.startswith("exited"), f"the process {died.cause}")
    finally:
        process.close()
    if achieved.startswith("refused") or not achieved:
        return Line(name, attack.protection, True, achieved or "nothing to be found")
    return Line(name, attack.protection, False, f"the attack {achieved}")


def table(mode: str = "locked") -> list[Line]:
    """Every attack, each from its own process."""
    if not sys.platform.startswith("linux"):
        why = f"not available here: the lock needs Linux, this is {sys.platform}"
        return [Line(name, attack.protection, False, why) for name, attack in ATTACKS.items()]
    with target() as aim:
        return [attacked(name, attack, aim, mode) for name, attack in ATTACKS.items()]

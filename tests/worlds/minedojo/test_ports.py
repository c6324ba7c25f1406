"""What is said of a port on which no Minecraft listens: no client needed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer, SimpleHTTPRequestHandler

import pytest

from rlgpt.training.worlds.minedojo import ports
from rlgpt.training.worlds.minedojo.bridge import MineDojoError
from rlgpt.training.worlds.minedojo.ports import PortLock, need_game
from rlgpt.training.worlds.minedojo.settings import Settings
from rlgpt.training.worlds.minedojo.world import MineDojoWorld

MILK = "harvest_milk_with_empty_bucket_and_cow"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of these tests says its word, if it has one, but on a busy machine late."""
    monkeypatch.setattr(ports, "PROBE_SECONDS", ports.PROBE_SECONDS * 30)


@contextmanager
def listening(greeting: bytes) -> Iterator[int]:
    """A server that says this to whoever comes, and hears nothing."""
    with socket.create_server(("localhost", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    sock, _ = server.accept()
                except OSError:
                    return
                with sock:
                    sock.sendall(greeting)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def test_a_web_server_on_the_port_is_named_with_the_cure() -> None:
    server = HTTPServer(("localhost", 0), SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = MineDojoWorld(Settings(python="/nowhere", ports=str(server.server_port))).make(MILK)
    try:
        with pytest.raises(MineDojoError, match=r"listens a web server \(SimpleHTTP.*RLGPT_MINEDOJO_PORTS"):
            env.reset(0)
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("greeting", [b"SSH-2.0-OpenSSH_9.2\r\n", b"\r\n", b"\0\0\0\4\0\0\0\1"])
def test_another_server_on_the_port_is_quoted(greeting: bytes) -> None:
    with listening(greeting) as port, pytest.raises(MineDojoError, match=r"listens a server that says .*, not Mine"):
        need_game(port)


def test_a_port_without_anybody_or_with_a_silent_server_is_left_to_the_client() -> None:
    with listening(b"") as port:
        need_game(port)
    need_game(port)


def test_a_port_is_locked_once_and_free_again() -> None:
    lock = PortLock(1)
    with pytest.raises(MineDojoError, match="The game on port 1 is steered by another session"):
        PortLock(1)
    lock.release()
    PortLock(1).release()

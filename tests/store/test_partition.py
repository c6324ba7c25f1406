"""A network that breaks between a keeper and the store: another machine goes on, and the first is told so."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from rlgpt.store import events
from rlgpt.store.errors import LeaseTaken
from rlgpt.store.folder import SessionFolder
from rlgpt.store.lease import Lease
from rlgpt.store.shared import admin
from rlgpt.store.shared.connection import connect
from rlgpt.store.shared.peer import SharedPeer
from rlgpt.store.writer import Writer
from tests.store.keeping import until
from tests.store.postgres import Server, programs

NAME = f"rlgpt{os.getpid() % 100_000}"
NET = f"10.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250}"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


def _can_break_networks() -> bool:
    if os.getuid() != 0 or shutil.which("ip") is None or programs() is None:
        return False
    try:
        ip("netns", "add", f"{NAME}t")
        ip("netns", "del", f"{NAME}t")
    except subprocess.SubprocessError:
        return False
    return True


pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not _can_break_networks(), reason="needs root, the program ip, and PostgreSQL's server"),
]


@pytest.fixture
def address() -> Iterator[str]:
    """Of a store at one end of a link; the keeper is at the other, in a network of its own."""
    ip("netns", "add", NAME)
    try:
        ip("link", "add", f"{NAME}a", "type", "veth", "peer", "name", f"{NAME}b")
        ip("link", "set", f"{NAME}b", "netns", NAME)
        ip("addr", "add", f"{NET}.1/24", "dev", f"{NAME}a")
        ip("link", "set", f"{NAME}a", "up")
        ip("-n", NAME, "addr", "add", f"{NET}.2/24", "dev", f"{NAME}b")
        ip("-n", NAME, "link", "set", f"{NAME}b", "up")
        server = Server(listens=f"{NET}.1")
        try:
            server.new_database()
            found = f"postgresql://postgres@{NET}.1:{server.port}/store1"
            admin.init(found)
            yield found
        finally:
            server.remove()
    finally:
        ip("netns", "del", NAME)
        with contextlib.suppress(subprocess.SubprocessError):
            ip("link", "del", f"{NAME}a")


def test_a_session_whose_network_broke_is_taken_over_and_its_first_worker_fenced(
    session: SessionFolder, address: str
) -> None:
    line = ["ip", "netns", "exec", NAME, sys.executable, "-P", "-m", "rlgpt.store.shared.keeper"]
    pipe = subprocess.PIPE
    with Lease.acquire(session.path), Writer(session) as writer:
        writer.event(events.Started())
        keeper = subprocess.Popen(
            [*line, str(session.path), address], stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1
        )
        try:
            assert keeper.stdout is not None and keeper.stdout.readline() == "ready 1\n"
            heir = SharedPeer(connect(address), address, session.id)
            until(lambda: heir.head().seq == writer.history.seq)
            ip("link", "set", f"{NAME}a", "down")
            ip("addr", "add", f"{NET}.1/32", "dev", "lo")  # for who is at the server's end
            began = time.monotonic()
            writer.event(events.Resumed(from_seq=1))
            claimed = False
            while not claimed:
                try:
                    claimed = SharedPeer.claim(heir) == 2
                except LeaseTaken:
                    time.sleep(0.2)
            print(f"\ntaken over after {time.monotonic() - began:.1f} s")
            seq = heir.head().seq
            ip("addr", "del", f"{NET}.1/32", "dev", "lo")
            ip("link", "set", f"{NAME}a", "up")
            heir.release()
            _, said = keeper.communicate(timeout=100)
            assert keeper.returncode == 5 and "was taken over by" in said
            assert heir.head().seq == seq
        finally:
            keeper.kill()
            keeper.wait()

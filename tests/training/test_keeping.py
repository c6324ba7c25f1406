"""The supervisor's side of a shared store, without a trainer."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlgpt.store import creation, events
from rlgpt.store.errors import StoreError
from rlgpt.store.folder import SessionFolder, sessions
from rlgpt.store.lease import Lease
from rlgpt.store.settings import Settings
from rlgpt.store.writer import Writer
from rlgpt.training import keeping
from tests.processes import lives
from tests.store.keeping import until
from tests.store.postgres import NEEDS_SERVER, Server

pytest.importorskip("psycopg")
pytestmark = NEEDS_SERVER


@pytest.fixture
def address(address: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("RLGPT_STORE", address)
    return address


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SessionFolder:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "home"))
    tree = Settings.model_validate({"task": "collect_wood"})
    return creation.create(tree, task_info={"horizon": 5, "milestones": []}, world_version="1", versions={})


@pytest.fixture
def stops() -> Iterator[threading.Event]:
    """What the supervisor does on SIGTERM."""
    told = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda number, frame: told.set())
    yield told
    signal.signal(signal.SIGTERM, before)


def head(address: str, session: SessionFolder) -> int:
    from rlgpt.store.shared.store import SharedStore

    store = SharedStore(address)
    try:
        return store.remote(session.id).head().seq
    finally:
        store.close()


def test_where_no_shared_store_is_named_nothing_is_kept(
    session: SessionFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for named in (None, str(tmp_path)):
        monkeypatch.delenv("RLGPT_STORE", raising=False)
        if named:
            monkeypatch.setenv("RLGPT_STORE", named)
        kept = keeping.begin_keeping(session.path)
        assert type(kept) is keeping.Keeping and not kept.fenced
        kept.close()
    assert not (session.path / "shared.json").exists()


def test_a_keeper_that_dies_is_started_again(
    session: SessionFolder, address: str, monkeypatch: pytest.MonkeyPatch, stops: threading.Event
) -> None:
    monkeypatch.setattr(keeping, "AGAIN", 0.1)
    with Lease.acquire(session.path), Writer(session) as writer:
        kept = keeping.begin_keeping(session.path)
        assert isinstance(kept, keeping.Keeper)
        for _ in range(3):
            first = kept.pid
            os.kill(first, signal.SIGKILL)
            until(lambda first=first: kept.pid != first)
            writer.event(events.Resumed(from_seq=1))
            until(lambda: head(address, session) == writer.history.seq)
        writer.event(events.Ended("finished", "all is done"))
        kept.close()
    assert head(address, session) == FINAL + 3 and not stops.is_set() and not kept.fenced


FINAL = 2
"""Rows besides those that are counted: the session's, and its end."""


def test_a_worker_that_was_taken_over_stops_and_its_folder_is_set_aside(
    session: SessionFolder, address: str, server: Server, stops: threading.Event
) -> None:
    from rlgpt.store.errors import LeaseTaken
    from rlgpt.store.shared.connection import connect
    from rlgpt.store.shared.peer import SharedPeer

    kept = keeping.begin_keeping(session.path)
    assert isinstance(kept, keeping.Keeper)
    os.kill(kept.pid, signal.SIGSTOP)
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")
    heir = SharedPeer(connect(address), address, session.id)

    def claims() -> bool:
        try:
            return heir.claim() > 0
        except LeaseTaken:
            return False

    until(claims)
    heir.release()
    os.kill(kept.pid, signal.SIGCONT)
    assert stops.wait(60) and kept.fenced
    kept.close()
    keeping.set_aside(session.path, kept)
    assert sessions() == [] and session.path.with_name(f".lost-{session.id}-1").is_dir()
    assert "was taken over by" in (session.path.with_name(f".lost-{session.id}-1") / "worker.log").read_text()


def test_a_session_that_may_not_begin_says_why(session: SessionFolder, address: str, server: Server) -> None:
    from rlgpt.store.shared.connection import connect
    from rlgpt.store.shared.peer import SharedPeer

    held = SharedPeer(connect(address), address, session.id)
    held.claim()
    with pytest.raises(StoreError, match="is already run"):
        keeping.begin_keeping(session.path)
    held.release()


def test_a_supervisor_that_is_killed_leaves_no_claim(session: SessionFolder, address: str) -> None:
    import subprocess
    import sys

    code = f"""
import sys, time
from pathlib import Path
from rlgpt.training.keeping import begin_keeping
kept = begin_keeping(Path({str(session.path)!r}))
print(kept.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        keeper = int(child.stdout.readline())
        child.kill()
    until(lambda: not lives(keeper))
    kept = keeping.begin_keeping(session.path)
    assert isinstance(kept, keeping.Keeper) and kept.incarnation == 2
    kept.close()

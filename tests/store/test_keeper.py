"""A keeper pushes what a worker writes, whatever becomes of the server, of the keeper and of who else wants it."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from rlgpt.store import events, progress
from rlgpt.store import tables as t
from rlgpt.store.address import behind_since, reached_at
from rlgpt.store.commands import parse_command
from rlgpt.store.folder import SessionFolder
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.inbox import send
from rlgpt.store.lease import Lease, owner
from rlgpt.store.mirror import Mirror, refusal
from rlgpt.store.peers import digest, sync
from rlgpt.store.shared.connection import connect
from rlgpt.store.shared.peer import SharedPeer
from rlgpt.store.shared.store import SharedStore
from rlgpt.store.writer import Writer
from rlgpt.training import keeping
from tests.store.copies import everything
from tests.store.keeping import PATIENCE, Keeper, until
from tests.store.postgres import NEEDS_SERVER, Server

pytestmark = NEEDS_SERVER


@pytest.fixture
def keep() -> Iterator[Callable[..., Keeper]]:
    started: list[Keeper] = []

    def start(folder: Path, address: str, *incarnation: int) -> Keeper:
        started.append(Keeper(folder, address, *incarnation))
        return started[-1]

    yield start
    for keeper in started:
        if keeper.child.poll() is None:
            keeper.child.kill()
        keeper.child.wait()


def add(writer: Writer, number: int) -> None:
    with writer.transaction() as tx:
        tx.event(events.SkillKept("x", writer.text(f"text {number}")))
        tx.add(t.Log(level="info", event=f"row {number}"))


def there(address: str, session: SessionFolder) -> SharedPeer:
    return SharedPeer(connect(address), address, session.id)


def test_what_a_worker_writes_is_in_the_store_and_commands_come_back(
    session: SessionFolder, address: str, keep: Callable[..., Keeper], tmp_path: Path
) -> None:
    with Lease.acquire(session.path), Writer(session) as writer:
        keeper = keep(session.path, address)
        assert keeper.ready() == 1
        writer.event(events.Started())
        progress.Progress(session.path).phase("Train run 1")
        store = SharedStore(address)
        until(lambda: store.remote(session.id).head().seq == writer.history.seq)
        worker = until(lambda: store.remote(session.id).worker())
        assert worker.owner == owner(session.path)
        mirror = Mirror(store.remote(session.id), tmp_path / "mirror" / session.id)
        mirror.step()
        sent = send(mirror.folder, parse_command("advise", {"agent": "slow", "text": "use wood"}), author="ann@desk")
        mirror.step()
        (arrived,) = until(lambda: writer.commands_after(0))
        assert (arrived.id, arrived.author, arrived.payload["text"]) == (sent, "postgres (ann@desk)", "use wood")
        add(writer, 1)
        until(lambda: mirror.step() and FolderPeer(mirror.folder).head().seq == writer.history.seq)
        (told,) = until(lambda: [s for s in store.summaries() if s.status == "running"])
        assert told.alive and told.name == writer.history.session["name"]
        writer.event(events.Ended("finished", "all is done"))
        assert keeper.end() == (0, "")
    assert not mirror.step() and owner(mirror.folder) is None
    assert digest(store.remote(session.id)) == digest(FolderPeer(session.path))
    assert [s.alive for s in store.summaries()] == [False]
    mirror.close()
    store.close()


def kill_backends(server: Server, address: str, started: list[Keeper], keep: Any, folder: Path) -> None:
    query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'rlgpt'"
    for pid in server.sql(query).split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)  # the server then restarts all of them


def end_backends(server: Server, address: str, started: list[Keeper], keep: Any, folder: Path) -> None:
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rlgpt'")


def restart_at_once(server: Server, address: str, started: list[Keeper], keep: Any, folder: Path) -> None:
    server.stop("immediate")
    server.start()


def stay_away(server: Server, address: str, started: list[Keeper], keep: Any, folder: Path) -> None:
    server.stop("fast")
    time.sleep(4)
    server.start()


def kill_keeper(server: Server, address: str, started: list[Keeper], keep: Any, folder: Path) -> None:
    started[-1].child.kill()
    started[-1].child.wait()
    started.append(keep(folder, address, 1))


FAULTS = [kill_backends, end_backends, restart_at_once, stay_away, kill_keeper]


def test_no_row_is_lost_or_there_twice_and_the_worker_never_waits(
    session: SessionFolder, address: str, server: Server, keep: Callable[..., Keeper], tmp_path: Path
) -> None:
    started = [keep(session.path, address)]
    assert started[0].ready() == 1
    number = 0
    with Lease.acquire(session.path), Writer(session) as writer:
        writer.event(events.Started())
        for fault in FAULTS:
            before = there(address, session).head().seq
            for _ in range(100):
                add(writer, number := number + 1)
            seq = writer.history.seq
            fault(server, address, started, keep, session.path)
            for _ in range(100):
                add(writer, number := number + 1)
            assert writer.history.seq == seq + 200 > before  # written while the store was not there

            def caught_up(wanted: int = writer.history.seq) -> bool:
                with contextlib.suppress(Exception):  # it may still be starting
                    return there(address, session).head().seq == wanted
                return False

            until(caught_up)
        assert started[-1].end()[0] == 0
    copy = FolderPeer(tmp_path / session.id)
    sync(there(address, session), copy)
    assert everything(copy.folder.path) == everything(session.path)


def test_a_session_whose_store_is_away_for_longer_than_its_limit_is_paused_and_says_how_far_behind_it_is(
    new_session: Callable[..., SessionFolder], address: str, server: Server, keep: Callable[..., Keeper]
) -> None:
    session = new_session(limits={"offline": 0.05})
    keeper = keep(session.path, address)
    keeper.ready()
    with Lease.acquire(session.path), Writer(session) as writer:
        writer.event(events.Started())
        until(lambda: there(address, session).head().seq == writer.history.seq)
        server.stop("immediate")
        try:
            (told,) = until(lambda: writer.commands_after(0))
            assert told.kind == "pause" and told.author.startswith("keeper (")
            since = until(lambda: behind_since(session.path, time.time()))
            assert behind_since(session.path, since + 12.0) == since
        finally:
            server.start()
        add(writer, 1)
        until(lambda: reached_at(session.path) > since)
        until(lambda: there(address, session).head().seq == writer.history.seq)
        server.stop("immediate")  # the next time that it is away is measured anew
        try:
            until(lambda: len(writer.commands_after(0)) == 2)
        finally:
            server.start()
        until(lambda: reached_at(session.path) > time.time() - 2)
        assert keeper.end() == (0, "")
        assert [told.kind for told in writer.commands_after(0)] == ["pause", "pause"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_store_that_is_away_for_five_minutes_loses_nothing_and_stops_nobody(
    session: SessionFolder, address: str, server: Server, keep: Callable[..., Keeper], tmp_path: Path
) -> None:
    keeper = keep(session.path, address)
    assert keeper.ready() == 1
    with Lease.acquire(session.path), Writer(session) as writer:
        writer.event(events.Started())

        def commits(seconds: float) -> list[float]:
            took, end = [], time.monotonic() + seconds
            while time.monotonic() < end:
                began = time.perf_counter()
                add(writer, writer.history.seq)
                took.append(time.perf_counter() - began)
                time.sleep(0.05)
            return sorted(took)

        beside = commits(60.0)
        server.stop("immediate")
        away = commits(300.0)
        server.start()
        back = time.monotonic()
        wanted = writer.history.seq

        def caught_up() -> bool:
            with contextlib.suppress(Exception):  # it may still be starting
                return there(address, session).head().seq == wanted
            return False

        until(caught_up)
        caught = time.monotonic() - back
        assert keeper.end() == (0, "")
        assert not writer.commands_after(0), "nobody was told to pause"
    copy = FolderPeer(tmp_path / session.id)
    sync(there(address, session), copy)
    assert everything(copy.folder.path) == everything(session.path)
    for name, took in (("beside the store", beside), ("while it was away", away)):
        print(f"\ncommits {name}: {len(took)}, p50 {1e3 * took[len(took) // 2]:.1f}, ", end="")
        print(f"p99 {1e3 * took[int(0.99 * len(took))]:.1f} ms")
    print(f"{wanted} rows, caught up {caught:.1f} s after it was back")


@pytest.mark.parametrize("free", [True, False], ids=["its heir has ended", "its heir runs it"])
def test_a_worker_that_was_taken_over_is_told_so(
    free: bool, session: SessionFolder, address: str, server: Server, keep: Callable[..., Keeper]
) -> None:
    with Lease.acquire(session.path), Writer(session) as writer:
        writer.event(events.Started())
        keeper = keep(session.path, address)
        keeper.ready()
        until(lambda: there(address, session).head().seq == writer.history.seq)
        keeper.child.send_signal(signal.SIGSTOP)  # as if its network were gone
        server.sql("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")
        heir = there(address, session)
        until(lambda: _claims(heir))
        seq = heir.head().seq
        add(writer, 1)
        keeper.child.send_signal(signal.SIGCONT)
        if free:
            heir.release()
        code, said = keeper.child.wait(PATIENCE), keeper.child.stderr.read()  # type: ignore[union-attr]
        assert code == 5 and "was taken over by" in said and "(incarnation 2)" in said
    assert heir.head().seq == seq


def _claims(peer: SharedPeer) -> bool:
    from rlgpt.store.errors import LeaseTaken

    try:
        return peer.claim() == 2
    except LeaseTaken:
        return False


def test_a_session_that_another_has_is_not_begun(
    session: SessionFolder, address: str, keep: Callable[..., Keeper]
) -> None:
    held = there(address, session)
    held.claim()
    code, said = keep(session.path, address).end()
    assert code == 4 and f"session {session.id} is already run" in said
    held.release()


def test_a_session_goes_on_where_another_machine_left_it(
    session: SessionFolder, address: str, keep: Callable[..., Keeper], tmp_path: Path
) -> None:
    copy = FolderPeer(tmp_path / session.id)
    sync(FolderPeer(session.path), copy)
    with Writer(session) as writer:
        writer.event(events.Started())
        keeper = keep(session.path, address)
        keeper.ready()
        add(writer, 1)
        keeper.end()
    second = keep(copy.folder.path, address)
    assert second.ready() == 2
    assert second.end()[0] == 0
    assert everything(copy.folder.path) == everything(session.path)


def test_a_new_session_begins_while_the_store_is_away_and_an_old_one_does_not(
    new_session: Callable[[], SessionFolder], address: str, server: Server, keep: Callable[..., Keeper]
) -> None:
    old, new = new_session(), new_session()
    keeper = keep(old.path, address)
    keeper.ready()
    keeper.end()
    server.stop("immediate")
    try:
        begun = keep(new.path, address)
        assert begun.ready() == 0
        code, said = keep(old.path, address).end()
        assert code == 4 and "only the store knows whether somebody else has" in said
    finally:
        server.start()
    until(lambda: there(address, new).head().seq == 1)
    assert begun.end()[0] == 0


def test_an_address_that_is_no_store_is_told_before_anything_begins(
    session: SessionFolder, server: Server, keep: Callable[..., Keeper]
) -> None:
    code, said = keep(session.path, server.new_database()).end()
    assert code == 4 and "is no store yet: its owner runs `rlgpt store init" in said


def test_the_last_rows_are_pushed_though_the_keeper_was_killed_before_them(
    session: SessionFolder, address: str
) -> None:
    with Lease.acquire(session.path), Writer(session) as writer:
        writer.event(events.Started())
        keeper = keeping.Keeper(session.path, address)
        os.kill(keeper.pid, signal.SIGKILL)
        until(lambda: not psutil.pid_exists(keeper.pid))
        writer.event(events.Ended("stopped", "done"))
    keeper.close()
    assert there(address, session).head().seq == writer.history.seq


def test_a_store_that_is_there_and_does_not_answer_is_one_that_is_away(
    new_session: Callable[..., SessionFolder], address: str, server: Server, keep: Callable[..., Keeper]
) -> None:
    session = new_session(limits={"offline": 0.05})
    with Lease.acquire(session.path), Writer(session) as writer:
        writer.event(events.Started())
        keeper = keep(session.path, address)
        keeper.ready()
        until(lambda: there(address, session).head().seq == writer.history.seq)
        pids = server.sql("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted").split()
        for pid in map(int, pids):
            os.kill(pid, signal.SIGSTOP)
        try:
            until(lambda: [kind for kind in commands(session) if kind == "pause"])
        finally:
            for pid in map(int, pids):
                os.kill(pid, signal.SIGCONT)


def commands(session: SessionFolder) -> list[str]:
    with contextlib.closing(sqlite3.connect(session.database)) as base:
        return [kind for (kind,) in base.execute("SELECT kind FROM command")]


def test_who_may_only_look_goes_on_looking_after_a_command(
    session: SessionFolder, address: str, server: Server, tmp_path: Path
) -> None:
    with Writer(session) as writer:
        writer.event(events.Started())
    with SharedStore(address).target(session.id) as target:
        sync(FolderPeer(session.path), target)
    server.sql("DROP ROLE IF EXISTS looker")
    server.sql("CREATE ROLE looker LOGIN IN ROLE rlgpt_reader")
    looking = SharedStore(address.replace("user=postgres", "user=looker"))
    copy = SessionFolder(tmp_path / session.id)
    with contextlib.closing(Mirror(looking.remote(session.id), copy.path)) as mirror:
        mirror.step()
        name = send(copy, parse_command("pause", {}))
        mirror.step()
    assert "does not let you do that" in refusal(copy.path, name)
    with contextlib.closing(Mirror(looking.remote(session.id), copy.path)) as mirror:
        mirror.step()

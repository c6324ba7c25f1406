"""A store in PostgreSQL: sessions come back byte for byte, one writer at a time, and nobody changes what is written."""

from __future__ import annotations

import dataclasses
import json
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from rlgpt.store import catalog, events
from rlgpt.store import tables as t
from rlgpt.store.commands import parse_command
from rlgpt.store.errors import Away, LeaseTaken, NotAllowed, StoreError
from rlgpt.store.folder import SessionFolder
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.inbox import send
from rlgpt.store.peers import Behind, Diverged, Fenced, digest, sync
from rlgpt.store.revision import REVISION
from rlgpt.store.shared import admin, schema
from rlgpt.store.shared.connection import connect
from rlgpt.store.shared.peer import SharedPeer
from rlgpt.store.shared.store import SharedStore
from rlgpt.store.writer import Writer
from tests.store.copies import BUNDLES, EVIDENCE, everything, files, unpacked
from tests.store.postgres import NEEDS_SERVER, Server

pytestmark = NEEDS_SERVER
Tell = Callable[[random.Random, int], list[list[t.Row]]]


@pytest.fixture
def store(address: str) -> Iterator[SharedStore]:
    opened = SharedStore(address)
    yield opened
    opened.close()


def push(store: SharedStore, folder: SessionFolder) -> int:
    with store.target(folder.id) as target:
        return sync(FolderPeer(folder.path), target, limit=100)


def grow(session: SessionFolder, rows: int) -> None:
    with Writer(session) as writer:
        for _ in range(rows):
            writer.event(events.Resumed(from_seq=1))


# ---- what comes out is what went in ---------------------------------------------------------------
def there_and_back(store: SharedStore, source: SessionFolder, back: Path) -> None:
    assert push(store, source)
    remote = store.remote(source.id)
    assert digest(remote) == digest(FolderPeer(source.path))
    copy = FolderPeer(back / source.id)
    sync(remote, copy)
    assert everything(copy.folder.path) == everything(source.path)
    assert files(copy.folder.path) == files(source.path)


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.stem)
def test_a_kept_session_comes_back_byte_for_byte(bundle: Path, store: SharedStore, tmp_path: Path) -> None:
    there_and_back(store, unpacked(bundle, tmp_path / "a"), tmp_path / "b")


@pytest.mark.parametrize("bundles", EVIDENCE)
def test_sessions_of_the_evidence_come_back_byte_for_byte(
    bundles: list[Path], store: SharedStore, tmp_path: Path
) -> None:
    for bundle in bundles:
        there_and_back(store, unpacked(bundle, tmp_path / "a"), tmp_path / "b")
        shutil.rmtree(tmp_path)


def test_a_session_that_grows_goes_prefix_by_prefix(
    new_session: Callable[[], SessionFolder], tell: Tell, store: SharedStore, tmp_path: Path
) -> None:
    rng = random.Random(11)
    for number in range(6):
        session, copy = new_session(), None
        for rows in tell(rng, 40):
            with Writer(session) as writer, writer.transaction() as tx:
                for row in rows:
                    tx.add(row)
                writer.text(f"text {number} {rng.random()}")
            if rng.random() < 0.2:
                send(session, parse_command("pause"))
                push(store, session)
                copy = copy or FolderPeer(tmp_path / "copies" / session.id)
                sync(store.remote(session.id), copy, limit=rng.randint(1, 30))
                seq = copy.head().seq
                assert everything(copy.folder.path, seq) == everything(session.path, seq)
        push(store, session)
        assert digest(store.remote(session.id)) == digest(FolderPeer(session.path))


def test_of_the_rollout_checkpoints_the_store_has_only_the_newest(session: SessionFolder, store: SharedStore) -> None:
    with Writer(session) as writer:
        run = {"iteration": 0, "revision": 1, "config_hash": "", "env_steps_planned": 9}
        writer.add(t.Iteration(sub_task=0, number=0))
        writer.add(t.TrainingRun(sub_task=0, run=1, **run))
        kept = [writer.artifact(b"a skill")]
        for update in range(1, 6):
            name = writer.artifact(b"weights %d" % update)
            kind = "boundary" if update == 2 else "rollout"
            kept += [name] if kind == "boundary" else []
            writer.add(t.Checkpoint(run=1, update=update, env_steps=update, kind=kind, artifact=name, size=9))
            push(store, session)
            assert set(store.remote(session.id).since(0, set()).artifacts) == {*kept, name}
    assert set(store.remote(session.id).names()) >= {*kept, name}


def test_what_postgresql_cannot_keep_is_refused_with_a_sentence(session: SessionFolder, store: SharedStore) -> None:
    """Sessions of an earlier rlgpt may hold U+0000."""
    import sqlite3

    base = sqlite3.connect(session.database)
    base.execute("INSERT INTO event VALUES (2, ?, 1, 1.0, 0.0, 'started', ?)", (session.id, '{"a": "b' + "\0" + '"}'))
    base.commit()
    base.close()
    with pytest.raises(StoreError, match="refused: "):
        push(store, session)
    assert store.sessions() == {}


# ---- one writer -----------------------------------------------------------------------------------
def claimed(address: str, session: SessionFolder) -> SharedPeer:
    peer = SharedPeer(connect(address), address, session.id)
    peer.claim()
    return peer


def test_of_several_claimants_exactly_one_wins(address: str, new_session: Callable[[], SessionFolder]) -> None:
    ids = [f"session-{number}" for number in range(100)]
    start = threading.Barrier(4)

    def claim_all(_: int) -> list[str]:
        start.wait()
        won = []
        for ident in ids:
            peer = SharedPeer(connection := connect(address), address, ident)
            try:
                peer.claim()
            except LeaseTaken:
                connection.close()
                continue
            won.append(ident)
            kept.append(connection)
        return won

    kept: list[object] = []
    with ThreadPoolExecutor(4) as threads:
        winners = list(threads.map(claim_all, range(4)))
    assert sorted(ident for won in winners for ident in won) == sorted(ids)


def test_no_row_of_a_worker_that_was_taken_over_is_accepted(
    finished: SessionFolder, address: str, tmp_path: Path
) -> None:
    """In all orders of what it and the new one do."""
    first = claimed(address, finished)
    sync(FolderPeer(finished.path), first)
    accepted = 0
    zombies = [(first, finished)]
    for number in range(100):
        _, session = zombies[-1]
        old = zombies[-1][0]
        with connect(address) as killer:  # the server found its connection dead and freed the lock
            killer.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")
        heir = SessionFolder(tmp_path / str(number) / finished.id)
        new = _claimed_soon(address, finished)
        sync(new, FolderPeer(heir.path))
        if number % 2:
            grow(heir, 1)
            sync(FolderPeer(heir.path), new)
        before = new.head()
        grow(session, 1)
        back = SharedPeer(connect(address), address, finished.id, _claim_of(old))
        with pytest.raises((Fenced, Behind, Diverged)):
            accepted += sync(FolderPeer(session.path), back)
        with pytest.raises(Fenced):
            back.tell(None)
        with pytest.raises((Fenced, LeaseTaken)):
            back.reclaim(old.incarnation)
        assert new.head() == before
        zombies.append((new, heir))
    assert accepted == 0


def _claim_of(peer: SharedPeer) -> object:
    from rlgpt.store.shared.peer import Claim

    return Claim(peer.incarnation)


def _claimed_soon(address: str, session: SessionFolder) -> SharedPeer:
    while True:
        try:
            return claimed(address, session)
        except LeaseTaken:
            continue


def test_an_append_after_a_lost_acknowledgement_is_not_taken_twice(finished: SessionFolder, address: str) -> None:
    peer = claimed(address, finished)
    batch = FolderPeer(finished.path).since(0, set())
    peer.append(batch)
    with pytest.raises(Behind):
        peer.append(batch)
    assert sync(FolderPeer(finished.path), peer) == 0
    assert digest(peer) == digest(FolderPeer(finished.path))


def test_of_two_that_push_a_session_none_is_told_to_stop_a_worker(
    finished: SessionFolder, store: SharedStore, address: str
) -> None:
    with store.target(finished.id), pytest.raises(LeaseTaken, match="or copied elsewhere: try again in a moment"):
        SharedStore(address).remote(finished.id).borrow()


def test_a_session_that_is_run_is_not_pushed_by_another(
    finished: SessionFolder, store: SharedStore, address: str
) -> None:
    held = claimed(address, finished)
    with pytest.raises(LeaseTaken, match="is already run"), store.target(finished.id):
        pass
    held.release()
    assert push(store, finished)


# ---- the list -------------------------------------------------------------------------------------
def test_a_list_reads_what_is_new_and_says_of_a_session_what_its_own_machine_says(
    finished: SessionFolder, store: SharedStore, address: str
) -> None:
    """Also where another rlgpt told the summary: with the settings in it, or words that this one does not know."""
    push(store, finished)
    store.describe(finished)
    ours = dataclasses.replace(catalog.summary(finished), store=store.place)
    assert ours.settings["task"] == "make_stone_pickaxe"
    assert store.summaries() == [ours]
    (first,) = store.summaries()
    assert store.summaries()[0] is first, "a summary that was not told again was read again"

    peer = claimed(address, finished)
    peer.tell(None, dataclasses.replace(ours, env_steps=7))
    (second,) = store.summaries()
    assert (second.env_steps, second.alive) == (7, True) and second.settings is first.settings
    peer.tell(None, dataclasses.replace(ours, env_steps=7))
    assert store.summaries()[0] is second, "nothing was new"
    peer.release()
    assert not store.summaries()[0].alive

    foreign = json.dumps({**dataclasses.asdict(ours), "of_a_later_rlgpt": 1, "env_steps": 8})
    store._base.execute("UPDATE head SET summary = %s, told_at = clock_timestamp()", (foreign,))
    assert store.summaries() == SharedStore(address).summaries() == [dataclasses.replace(ours, env_steps=8)]


@pytest.mark.parametrize(
    "summary",
    [
        {"dev_episodes": "many"},
        {"id": "../../etc", "started_at": "soon"},
        {"tags": 3},
        {"name": None},
        ["x"],
        "x",
        None,
    ],
)
def test_a_summary_that_cannot_be_takes_no_other_session_off_the_list(
    summary: object, new_session: Callable[[], SessionFolder], store: SharedStore, address: str
) -> None:
    """Whoever may write to the store may write any summary."""
    ids = []
    for session in (new_session(), new_session()):
        grow(session, 1)
        push(store, session)
        store.describe(session)
        ids.append(session.id)
    sql = "UPDATE head SET summary = %s, told_at = clock_timestamp() WHERE session_id = %s"
    store._base.execute(sql, (json.dumps(summary), ids[0]))
    damaged, sound = sorted(store.summaries(), key=lambda s: ids.index(s.id))
    assert [damaged.id, sound.id] == ids and "is damaged" in damaged.fault and not sound.fault


@pytest.mark.parametrize("ident", ["../../../etc", "/etc", ".", "", "a b", "x\ny", "-rf"])
def test_an_id_that_is_no_name_of_a_folder_is_no_session(
    ident: str, finished: SessionFolder, store: SharedStore
) -> None:
    """Whoever may write to the store may write any id: here it would be a path."""
    push(store, finished)
    store.describe(finished)
    for column in ("name", "session_id"):
        assert len(store.sessions()) == len(store.summaries()) == 1
        store._base.execute(f"UPDATE head SET {column} = %s", (ident,))
    assert store.sessions() == {} and store.summaries() == []


# ---- who may do what ------------------------------------------------------------------------------
@pytest.fixture
def roles(server: Server, address: str) -> Iterator[dict[str, str]]:
    database = address.partition("?")[0].rpartition("/")[2]
    made = {}
    for role in ("reader", "operator", "worker"):
        name = f"{role}_{database}"
        server.sql(f"CREATE ROLE {name} LOGIN IN ROLE rlgpt_{role}")
        made[role] = server.address(database, name)
    yield made


CHANGES = (
    "UPDATE event SET kind = 'x'",
    "DELETE FROM event",
    "TRUNCATE event",
    "DELETE FROM text",
    "UPDATE artifact SET body = ''",
    "UPDATE inbox SET author = 'me'",
)


def test_a_row_once_written_stays_whoever_asks(
    finished: SessionFolder, store: SharedStore, address: str, roles: dict[str, str]
) -> None:
    push(store, finished)
    store.remote(finished.id).send(_pause("me"))
    with Writer(finished) as writer:
        writer.text("a text")
        writer.event(events.Resumed(from_seq=1))
    push(store, finished)
    for place in (address, roles["worker"]):
        for change in CHANGES:
            with connect(place) as base, pytest.raises(psycopg.Error):
                base.execute(change)
    before = digest(store.remote(finished.id))
    assert before == digest(FolderPeer(finished.path))


def test_a_reader_reads_an_operator_sends_and_a_worker_writes(
    finished: SessionFolder, store: SharedStore, roles: dict[str, str], tmp_path: Path
) -> None:
    worker = SharedStore(roles["worker"])
    push(worker, finished)
    for role in ("reader", "operator"):
        place = SharedStore(roles[role])
        sync(place.remote(finished.id), FolderPeer(tmp_path / role / finished.id))
        with pytest.raises(StoreError, match="does not let you do that"), place.target(finished.id):
            pass
        place.close()
    with pytest.raises(StoreError, match="does not let you do that"):
        SharedStore(roles["reader"]).remote(finished.id).send(_pause("root@prod"))
    SharedStore(roles["operator"]).remote(finished.id).send(_pause("root@prod"))
    SharedStore(roles["operator"]).remote(finished.id).send(_pause("root@prod"))  # told again: not twice
    (sent,) = worker.remote(finished.id).inbox()
    assert sent["author"] == f"{_user(roles['operator'])} (root@prod)"
    worker.close()


def test_whom_the_owner_gave_no_role_is_told_so_and_not_that_there_is_no_store(address: str, server: Server) -> None:
    """PostgreSQL says of a schema that is closed to somebody that there are no tables in it."""
    server.sql("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN")
    hers = address.replace(f"user={_user(address)}", "user=stranger")
    with pytest.raises(NotAllowed, match="is closed to you: its owner grants the role rlgpt_reader"):
        SharedStore(hers).sessions()


def test_the_options_of_an_address_hold_beside_ours(address: str) -> None:
    base = connect(f"{address}&options=-c%20statement_timeout%3D7s")
    assert base.execute("SHOW statement_timeout").fetchone() == ("7s",)
    assert base.execute("SHOW search_path").fetchone() == ("rlgpt",)
    base.close()


def _user(address: str) -> str:
    return address.rpartition("user=")[2]


def _pause(author: str) -> dict[str, object]:
    return {
        "id": "c1", "session_id": "s", "at": 1.0, "author": author, "kind": "pause", "payload": {}, "revision": None,
    }  # fmt: skip


def test_only_the_owner_deletes_and_only_what_nobody_runs(
    finished: SessionFolder, store: SharedStore, address: str, roles: dict[str, str]
) -> None:
    push(store, finished)
    with pytest.raises(StoreError, match="does not let you do that"):
        admin.delete(roles["worker"], finished.id)
    held = claimed(address, finished)
    with pytest.raises(LeaseTaken):
        admin.delete(address, finished.id)
    held.release()
    admin.delete(address, finished.id)
    assert store.sessions() == {} and not store.remote(finished.id).names()
    with pytest.raises(StoreError, match="there is no session"):
        admin.delete(address, finished.id)
    push(store, finished)


# ---- looking after it -----------------------------------------------------------------------------
def test_what_a_store_holds_is_checked_and_measured(
    finished: SessionFolder, store: SharedStore, address: str, server: Server
) -> None:
    push(store, finished)
    (size,) = admin.sizes(address)
    assert size.session_id == finished.id and size.rows == FolderPeer(finished.path).head().seq
    assert size.files == len(b"weights") and admin.total(address) > 100_000
    assert admin.check(address, finished.id) == []
    database = address.partition("?")[0].rpartition("/")[2]
    server.sql("ALTER TABLE rlgpt.event DISABLE TRIGGER unchanged", database)
    server.sql("UPDATE rlgpt.event SET payload = '{\"run\": 99}', kind = 'training_ended'", database)
    (problem,) = admin.check(address, finished.id)
    assert "is damaged" in problem


def test_a_store_is_made_once(address: str, server: Server) -> None:
    with pytest.raises(StoreError, match="is a store already"):
        admin.init(address)
    assert "the newest there is" in admin.upgrade(address)
    empty = server.new_database()
    with pytest.raises(StoreError, match=r"is no store yet: `rlgpt store init postgresql:///"):
        admin.upgrade(empty)
    with pytest.raises(StoreError, match="is no store yet"):
        SharedStore(empty).sessions()
    with pytest.raises(StoreError, match="is no store yet"):
        admin.sizes(empty)


def test_of_two_that_make_a_store_at_once_the_second_finds_it_made(server: Server) -> None:
    place = server.new_database()
    with connect(place) as first, ThreadPoolExecutor() as pool:
        with first.transaction():
            first.execute(admin.ALONE)
            second = pool.submit(admin.init, place)
            for statement in schema.statements():
                first.execute(statement)
        with pytest.raises(StoreError, match="is a store already"):
            second.result()


def test_a_store_of_an_earlier_rlgpt_takes_new_sessions_after_its_upgrade(
    finished: SessionFolder, store: SharedStore, address: str, server: Server
) -> None:
    database = address.partition("?")[0].rpartition("/")[2]
    for column in ("score", "failures"):
        server.sql(f"ALTER TABLE rlgpt.evaluation DROP COLUMN {column}", database)
    with pytest.raises(StoreError, match=r"does not know evaluation.failures.*its owner runs `rlgpt store upgrade`"):
        push(store, finished)
    assert "and 2 new columns" in admin.upgrade(address)
    assert "the newest there is" in admin.upgrade(address)
    push(store, finished)
    assert digest(store.remote(finished.id)) == digest(FolderPeer(finished.path))


def test_a_session_that_a_newer_rlgpt_resumed_goes_on_in_the_store(store: SharedStore, tmp_path: Path) -> None:
    source = unpacked(next(b for b in BUNDLES if b.stem == "0002-finished"), tmp_path / "a")
    push(store, source)
    copy = FolderPeer(tmp_path / "b" / source.id)
    sync(store.remote(source.id), copy)
    assert store.remote(source.id).head().schema == copy.head().schema == "0002"
    grow(source, 1)  # its writer brings it to this schema
    push(store, source)
    assert sync(store.remote(source.id), copy) == 1
    assert store.remote(source.id).head().schema == copy.head().schema == REVISION
    assert digest(store.remote(source.id)) == digest(FolderPeer(source.path))
    assert everything(copy.folder.path) == everything(source.path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda a: a.replace("postgresql:///", "postgresql:///no_such_"), "does not exist"),
        (lambda a: a.partition("?")[0] + "?host=/nowhere", "cannot be reached"),
        (lambda a: a + "&nonsense=1", "is no address of a store"),
    ],
)
def test_an_address_that_leads_nowhere_is_told(address: str, change: Callable[[str], str], sentence: str) -> None:
    with pytest.raises(StoreError, match=sentence):
        connect(change(address))


def test_a_server_that_goes_is_away(server: Server, address: str, finished: SessionFolder) -> None:
    store = SharedStore(address)
    push(store, finished)
    server.stop("immediate")
    try:
        with pytest.raises(Away):
            store.sessions()
        with pytest.raises(Away):
            connect(address)
    finally:
        server.start()
    again = SharedStore(address)
    assert digest(again.remote(finished.id)) == digest(FolderPeer(finished.path))


@pytest.mark.timeout(120)
def test_who_owns_a_database_and_may_make_no_roles_is_told_who_may() -> None:
    """On a server of its own: roles are those of the whole server."""
    server = Server()
    try:
        server.sql("CREATE ROLE alice LOGIN")
        server.sql("CREATE DATABASE hers OWNER alice")
        hers = server.address("hers", user="alice")
        with pytest.raises(StoreError, match=r"may not make the roles rlgpt_reader, .* CREATEROLE"):
            admin.init(hers)
        for role in (schema.READER, schema.OPERATOR, schema.WORKER):
            server.sql(f"CREATE ROLE {role}")
        admin.init(hers)
        assert admin.version(hers)
    finally:
        server.remove()


def test_no_command_is_passed_over_though_others_are_sent_at_the_same_time(store: SharedStore, address: str) -> None:
    keeper = store.remote("s")
    with connect(address) as slow:
        with slow.transaction():  # it has its place, and is not there yet
            SharedPeer(slow, address, "s").send(_pause("slow") | {"id": "first"})
            store.remote("s").send(_pause("fast") | {"id": "second"})
            known = {command["n"] for command in keeper.inbox()}
            assert len(known) == 1
        assert [command["id"] for command in keeper.inbox(known)] == ["first"]

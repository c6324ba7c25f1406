"""`rlgpt store push|pull|move`: sessions in the stores of others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rlgpt.store import catalog, events
from rlgpt.store.address import MARK
from rlgpt.store.folder import SessionFolder
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.lease import Lease
from rlgpt.store.mirror import settle_if_left
from rlgpt.store.peers import digest
from rlgpt.store.placing import place, placed_on
from rlgpt.store.writer import Writer
from tests.commands.conftest import Answer, make, no_file_longer_than

Rlgpt = Callable[..., Answer]


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return tmp_path / "other home"


def there(other: Path, session: SessionFolder) -> SessionFolder:
    return SessionFolder(other / "sessions" / session.id)


def test_a_session_goes_to_another_home_and_comes_back(rlgpt: Rlgpt, finished: SessionFolder, other: Path) -> None:
    catalog.set_tags(finished, ["good"])
    kept = digest(FolderPeer(finished.path))
    pushed = rlgpt("store", "push", "wood", "--to", other)
    assert pushed.code == 0 and f"{finished.id}: copied," in pushed.out
    assert digest(FolderPeer(there(other, finished).path)) == kept
    assert f"{finished.id}: copied, 0 new rows" in rlgpt("store", "push", "--to", other).out
    moved = rlgpt("store", "move", "--to", other)
    assert moved.code == 0 and not finished.path.exists()
    pulled = rlgpt("store", "pull", "wood", "--from", other, "--json").document
    assert [one["id"] for one in pulled["sessions"]] == [finished.id]
    assert digest(FolderPeer(finished.path)) == kept and catalog.tags(finished) == ("good",)
    assert rlgpt("show", finished.id).code == 0


def test_a_push_takes_away_the_tags_that_were_taken_away(rlgpt: Rlgpt, finished: SessionFolder, other: Path) -> None:
    for tags in (["good"], ["good", "old"], []):
        catalog.set_tags(finished, tags)
        assert rlgpt("store", "push", "--to", other).code == 0
        assert catalog.tags(there(other, finished)) == tuple(tags)


def test_a_pull_takes_away_the_tags_that_were_taken_away(rlgpt: Rlgpt, finished: SessionFolder, other: Path) -> None:
    assert rlgpt("store", "push", "--to", other).code == 0
    for tags in (["good"], ["good", "old"], []):
        catalog.set_tags(there(other, finished), tags)
        assert rlgpt("store", "pull", "--from", other).code == 0
        assert catalog.tags(finished) == tuple(tags)


@pytest.mark.parametrize("words", [(), ("--follow",)])
def test_a_pull_leaves_a_session_where_it_is_placed(
    rlgpt: Rlgpt, finished: SessionFolder, other: Path, words: tuple[str, ...]
) -> None:
    assert rlgpt("store", "push", "--to", other).code == 0
    with Writer(there(other, finished)) as writer:
        writer.event(events.Resumed(from_seq=1))
    place(finished.path, "10.0.0.1:6379")
    before = digest(FolderPeer(finished.path))
    answer = rlgpt("store", "pull", finished.id, "--from", other, *words)
    assert answer.code == 4 and "is placed on the Ray cluster 10.0.0.1:6379" in answer.err
    assert placed_on(finished.path) == "10.0.0.1:6379" and digest(FolderPeer(finished.path)) == before


def test_a_mirror_is_settled_only_where_nobody_has_it(finished: SessionFolder) -> None:
    mark = finished.path / MARK
    mark.write_text('{"of": "elsewhere"}')
    with Lease.acquire(finished.path):  # who follows it, or has just placed it, has not written its mark yet
        settle_if_left(finished.path)
        assert mark.exists()
    settle_if_left(finished.path)
    assert not mark.exists()
    place(finished.path, "10.0.0.1:6379")
    settle_if_left(finished.path)
    assert placed_on(finished.path) == "10.0.0.1:6379"


def test_a_pull_without_an_id_takes_all(rlgpt: Rlgpt, finished: SessionFolder, other: Path) -> None:
    second = make("second")
    assert rlgpt("store", "move", finished.id, "--to", other).code == 0
    assert rlgpt("store", "push", second.id, "--to", other).code == 0
    pulled = rlgpt("store", "pull", "--from", other)
    assert pulled.code == 0 and f"{second.id}: copied, 0 new rows" in pulled.out
    assert f"{finished.id}: copied," in pulled.out and finished.path.exists()


def test_a_move_keeps_what_is_not_equal_on_both_sides(
    rlgpt: Rlgpt, finished: SessionFolder, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlgpt.console.commands.elsewhere.digest", lambda peer: peer.place)
    answer = rlgpt("store", "move", finished.id, "--to", other)
    assert answer.code == 4 and "is kept here: its copy at" in answer.err and finished.path.exists()


def test_a_move_with_keep_compares_and_deletes_nothing(rlgpt: Rlgpt, finished: SessionFolder, other: Path) -> None:
    assert f"{finished.id}: compared," in rlgpt("store", "move", "--keep", "--to", other).out
    assert finished.path.exists() and there(other, finished).path.exists()


def test_a_running_session_is_pushed_but_not_moved(
    rlgpt: Rlgpt, running: tuple[SessionFolder, Writer], other: Path
) -> None:
    session, _ = running
    assert rlgpt("store", "push", "--to", other).code == 0
    answer = rlgpt("store", "move", "--to", other)
    assert answer.code == 4 and "is already run" in answer.err and session.path.exists()


def test_what_refuses_one_session_does_not_keep_the_others(rlgpt: Rlgpt, finished: SessionFolder, other: Path) -> None:
    second = make("second")
    rlgpt("store", "push", "--to", other)
    with Writer(there(other, finished)) as writer:
        writer.event(events.Resumed(from_seq=1))
    with Writer(second) as writer:
        writer.event(events.Started())
    answer = rlgpt("store", "push", "--to", other)
    assert answer.code == 4 and "ahead of it" in answer.err and f"{second.id}: copied, 1 new row" in answer.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("push",), "say which store"),
        (("push", "--to", "ftp://x"), "is no place for sessions"),
        (("push", "--to", "postgresql://ann:secret@db/rlgpt"), "holds a password: leave it out"),
        (("push", "--to", "postgresql://db/rlgpt?password=secret"), "holds a password: leave it out"),
        (("push", "--to", "postgresql://ann:se#secret@db/rlgpt"), "holds a password: leave it out"),
        (("push", "--to", "postgresql://ann:secret?x@db/rlgpt"), "holds a password: leave it out"),
        (("push", "--to", "postgresql://ann:secret/x@db/rlgpt"), "holds a password: leave it out"),
        (("push", "--to", "postgresql+psycopg://ann:secret@db/rlgpt"), "postgresql+psycopg:// is no place"),
        (("size", "--in", "mysql://ann:secret@db/rlgpt"), "mysql:// is no place for sessions"),
        (("size", "--in", "host=db password = secret"), "holds a password: write postgresql://HOST/DATABASE"),
        (("init", "host=db password=secret"), "holds a password: write postgresql://HOST/DATABASE"),
        (("pull", "wood", "--from", "nowhere"), "there are no sessions in"),
    ],
)
def test_a_place_that_is_none_is_refused_with_a_sentence(rlgpt: Rlgpt, words: tuple[str, ...], sentence: str) -> None:
    answer = rlgpt("store", *words)
    assert answer.code != 0 and sentence in answer.err and "secret" not in answer.err + answer.out


def test_this_store_is_not_pushed_to_itself(rlgpt: Rlgpt, finished: SessionFolder, home: Path) -> None:
    answer = rlgpt("store", "push", "--to", home)
    assert answer.code == 4 and "is this store itself" in answer.err


def test_the_store_of_the_settings_is_meant_where_none_is_named(
    rlgpt: Rlgpt, finished: SessionFolder, other: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "rlgpt.toml").write_text(f'store = "{other}"\nseed = 3\n')
    assert rlgpt("store", "push").code == 0 and there(other, finished).path.exists()
    monkeypatch.setenv("RLGPT_STORE", str(other.with_name("third")))
    assert rlgpt("store", "push").code == 0
    assert (other.with_name("third") / "sessions" / finished.id).exists()


def test_a_store_in_the_settings_is_no_setting_of_a_session(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rlgpt.store.settings import settle

    home.mkdir()
    (home / "rlgpt.toml").write_text('store = "/somewhere"\nseed = 3\n')
    monkeypatch.setenv("RLGPT_STORE", "/elsewhere")
    assert settle({"task": "collect_wood"}).seed == 3


def test_a_mirror_is_followed_until_its_worker_has_ended(
    rlgpt: Rlgpt, running: tuple[SessionFolder, Writer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    session, writer = running
    home = session.path.parents[1]
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "watching"))
    mirror = SessionFolder(tmp_path / "watching" / "sessions" / session.id)
    ending = threading.Timer(1.0, lambda: writer.event(events.Ended("finished", "all is done")))

    monkeypatch.setattr("rlgpt.store.folder_peer.FolderPeer.worker", _until_ended(writer))
    ending.start()
    answer = rlgpt("store", "pull", session.id, "--from", home, "--follow")
    assert answer.code == 0, answer.err
    assert digest(FolderPeer(mirror.path)) == digest(FolderPeer(session.path))
    refused = rlgpt("store", "push", session.id, "--to", home)
    assert refused.code == 0  # it is a session of its own again


def _until_ended(writer: Writer) -> Callable[[FolderPeer], object]:
    from rlgpt.store.lease import owner
    from rlgpt.store.peers import RemoteWorker

    def remote_worker(peer: FolderPeer) -> object:
        lock = owner(peer.folder.path)
        return RemoteWorker(lock, {}) if lock and writer.history.status != "ended" else None

    return remote_worker


def test_a_session_without_locks_is_deleted_where_nothing_more_can_be_written(
    rlgpt: Rlgpt, finished: SessionFolder
) -> None:
    for lock in finished.path.glob("*.lock"):  # as of one that was imported, pulled, or forked and not started
        lock.unlink()
    with no_file_longer_than(0):
        answer = rlgpt("store", "delete", finished.id, "--yes")
    assert answer.code == 0 and not finished.path.exists(), answer.err

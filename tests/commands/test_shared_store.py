"""`rlgpt store` with a database that a team shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlgpt.store import catalog
from rlgpt.store.folder import SessionFolder
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.peers import digest
from tests.commands.conftest import Answer, make
from tests.store.postgres import Server, programs

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(programs() is None, reason="PostgreSQL's server is not installed (Debian: postgresql)"),
]
Rlgpt = Callable[..., Answer]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.remove()


@pytest.fixture
def address(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    made = server.new_database()
    monkeypatch.setenv("RLGPT_STORE", made)
    return made


def test_a_team_makes_a_store_and_moves_sessions_through_it(
    rlgpt: Rlgpt, finished: SessionFolder, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "`rlgpt store init" in rlgpt("store", "push").err
    assert rlgpt("store", "init").code == 0
    assert "is a store already" in rlgpt("store", "init").err
    assert "the newest there is" in rlgpt("store", "upgrade").out
    catalog.set_tags(finished, ["good"])
    kept = digest(FolderPeer(finished.path))
    moved = rlgpt("store", "move")
    assert moved.code == 0 and f"{finished.id}: moved" in moved.out and not finished.path.exists()
    size = rlgpt("store", "size", "--in", address)
    assert size.code == 0 and finished.id in size.out and "1 session," in size.out
    assert "1 session checked, no problems" in rlgpt("store", "check", "--in", address).out
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "colleague"))
    assert rlgpt("store", "pull", "wood").code == 0
    there = SessionFolder(tmp_path / "colleague" / "sessions" / finished.id)
    assert digest(FolderPeer(there.path)) == kept and catalog.tags(there) == ("good",)
    assert "cannot be undone" in rlgpt("store", "delete", "wood", "--in", address).err
    assert rlgpt("store", "delete", "wood", "--in", address, "--yes").code == 0
    assert "there is no session 'wood' in postgresql:///" in rlgpt("store", "pull", "wood").err
    assert there.path.exists()


def test_many_sessions_move_at_once(rlgpt: Rlgpt, address: str) -> None:
    rlgpt("store", "init")
    sessions = [make(f"session {number}") for number in range(20)]
    answer = rlgpt("store", "move", "--json").document
    assert [one["id"] for one in answer["sessions"]] == sorted(session.id for session in sessions)
    assert not any(one["error"] for one in answer["sessions"]) and not catalog.summaries()

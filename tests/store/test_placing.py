"""A session that a Ray cluster runs stays a session of this store, and is not deleted while it may go on there."""

from __future__ import annotations

import pytest

from rlgpt.console.view.sessions import entries, header
from rlgpt.console.view.text import plain
from rlgpt.store import catalog, events, upkeep
from rlgpt.store.address import source_of
from rlgpt.store.errors import StoreError
from rlgpt.store.folder import SessionFolder
from rlgpt.store.lease import Lease, Owner
from rlgpt.store.mirror import settle
from rlgpt.store.placing import place, placed_on
from rlgpt.store.reach import fetched
from rlgpt.store.writer import Writer


def test_what_is_placed_is_told_until_it_is_settled(session: SessionFolder) -> None:
    assert placed_on(session.path) == ""
    place(session.path, "head:6379")
    assert (placed_on(session.path), source_of(session.path)) == ("head:6379", "Ray cluster head:6379")
    settle(session.path)
    assert placed_on(session.path) == source_of(session.path) == ""


def test_it_is_not_looked_for_in_the_store_of_a_team(session: SessionFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLGPT_STORE", "postgresql://nowhere.invalid/rlgpt")
    place(session.path, "head:6379")
    assert fetched(session.id) == (session, False)


def test_it_is_deleted_only_when_it_is_over(session: SessionFolder) -> None:
    place(session.path, "head:6379")
    with pytest.raises(StoreError, match="may go on at the Ray cluster head:6379"), upkeep.at_rest(session):
        pass
    with Writer(session) as writer:
        writer.event(events.Ended("stopped", "by hand"))
    with upkeep.at_rest(session):
        upkeep.remove(session)
    assert not session.path.exists()


def test_a_list_names_the_machine_of_a_worker_elsewhere(session: SessionFolder) -> None:
    with Lease.acquire(session.path, holder=Owner(7, "node-7", 0.0)):
        (found,) = catalog.summaries()
        assert found.alive and found.node == "node-7"
        (entry,) = entries([found], 160, 0.0)
        assert plain(entry.lines[0]).split()[2] == "node-7" and "node" in plain(header(160, "name", True, True))
    with Lease.acquire(session.path):
        (found,) = catalog.summaries()
        assert found.alive and found.node == ""
        assert "node" not in plain(header(160, "name", True))

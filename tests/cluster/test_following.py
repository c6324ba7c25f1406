"""Who follows a session says when it has ended, whatever ended it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

import pytest

from rlgpt.store import creation
from rlgpt.store.epilogue import append_event
from rlgpt.store.events import Ended, Event
from rlgpt.store.folder import SessionFolder
from rlgpt.store.lease import Lease
from rlgpt.store.placing import place, placed_on
from rlgpt.store.reader import Reader
from rlgpt.store.settings import Settings
from rlgpt.training.cluster.connect import NoCluster
from rlgpt.training.cluster.nodes import Nodes
from rlgpt.training.cluster.placed import Placed
from rlgpt.training.cluster.seat_peer import SeatLost, SeatPeer
from rlgpt.training.supervisor import TAKEN
from tests.patience import PATIENCE


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SessionFolder:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    return creation.create(Settings(task="collect_wood"), task_info={}, world_version="1", versions={})


def followed(session: SessionFolder, error: Exception) -> Placed:
    def nodes() -> Nodes:
        raise error

    placed = Placed(session, "head:6379", nodes)
    placed.start()
    deadline = time.monotonic() + 10 * PATIENCE
    while placed.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return placed


def test_a_cluster_that_does_not_answer_is_told_and_adds_no_row(session: SessionFolder) -> None:
    """Its seat may live: a row here would part the two."""
    assert followed(session, NoCluster("no Ray cluster answers at head:6379")).poll() == 1
    assert session.log.read_text() == "no Ray cluster answers at head:6379\n"
    with Reader(session) as reader:
        assert reader.last_seq() == 1
    assert not Lease.held(session.path)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_nobody_expected_ends_the_following_too(session: SessionFolder) -> None:
    assert followed(session, RuntimeError("unknown")).poll() == 1
    assert not Lease.held(session.path)


def test_a_session_that_runs_here_is_not_placed(session: SessionFolder) -> None:
    with Lease.acquire(session.path):
        assert followed(session, AssertionError("asked")).poll() == TAKEN


class Lost(Placed):
    """Its seat is lost once the session's rows are here; another is never asked for."""

    def __init__(self, session: SessionFolder, last: Event) -> None:
        super().__init__(session, "head:6379", lambda: cast(Nodes, None))
        self._event = last

    def _running_seat(self, nodes: Nodes) -> SeatPeer | None:
        return SeatPeer(None, None, "node")

    def _follow(self, seat: SeatPeer, lease: Lease) -> int:
        append_event(self._folder.path, self._event)
        raise SeatLost("the node is gone")

    def _new_seat(self, nodes: Nodes) -> SeatPeer | None:
        raise RuntimeError("another seat was asked for")


@pytest.mark.parametrize("result", ["succeeded", "finished", "stopped", "failed"])
def test_a_seat_that_is_lost_behind_the_end_of_its_session_is_not_placed_again(
    session: SessionFolder, result: str
) -> None:
    """Between the last row and the word that the supervisor has ended lie seconds."""
    placed = Lost(session, Ended(result, "it is over"))
    placed.run()
    with Reader(session) as reader:
        assert (placed.code, reader.history_at().result) == (0, result)
        assert [row["kind"] for row in reader.rows("event")] == ["ended"], "nothing stands behind the end"
    assert bool(placed_on(session.path)) == (result in ("stopped", "failed"))


def test_a_session_that_came_home_before_its_follower_was_killed_is_one_of_this_machine(
    session: SessionFolder,
) -> None:
    class Gone(Lost):
        def _running_seat(self, nodes: Nodes) -> SeatPeer | None:
            return None

    append_event(session.path, Ended("finished", "it is over"))
    place(session.path, "head:6379")
    placed = Gone(session, Ended("finished", "twice"))
    placed.run()
    assert placed.code == 0 and not placed_on(session.path)


def test_a_stopped_session_that_is_resumed_is_placed_again_when_its_first_seat_is_lost(session: SessionFolder) -> None:
    """Its end is of an earlier call."""

    class Again(Lost):
        seats = 0

        def _running_seat(self, nodes: Nodes) -> SeatPeer | None:
            return None

        def _new_seat(self, nodes: Nodes) -> SeatPeer | None:
            self.seats += 1
            if self.seats == 2:
                raise NoCluster("two seats were asked for")
            self._given = 2  # the rows that it was given, the last of which is the end
            return SeatPeer(None, None, "node")

        def _follow(self, seat: SeatPeer, lease: Lease) -> int:
            raise SeatLost("the node is gone")

    append_event(session.path, Ended("stopped", "by its operator"))
    placed = Again(session, Ended("stopped", "unused"))
    placed.run()
    assert placed.seats == 2 and "two seats were asked for" in session.log.read_text()

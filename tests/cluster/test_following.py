"""Who follows a session says when it has ended, whatever ended it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rlgpt.store import creation
from rlgpt.store.folder import SessionFolder
from rlgpt.store.lease import Lease
from rlgpt.store.reader import Reader
from rlgpt.store.settings import Settings
from rlgpt.training.cluster.connect import NoCluster
from rlgpt.training.cluster.nodes import Nodes
from rlgpt.training.cluster.placed import Placed
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

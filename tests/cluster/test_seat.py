"""A seat without Ray: an ordinary object of a process that stands for Ray's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlgpt.store.folder import SessionFolder
from rlgpt.store.reader import Reader
from tests.end_to_end.conftest import Make, make
from tests.patience import PATIENCE

__all__ = ["make"]
SCRIPT = """
import sys, time
from pathlib import Path
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.peers import bring
from rlgpt.training.cluster.seat import Seat

here, id = Path(sys.argv[1]), sys.argv[2]
seat = Seat(id + ".1", id, abandoned=20.0)
bring(FolderPeer(here), seat, 0, set())
seat.start()
while seat.worker() is None or "waiting" not in str(seat.since(0, set(), 10**6)):
    time.sleep(0.2)
print("waits for its operator", flush=True)
while seat.ending() is None:
    time.sleep(0.2)
print(*seat.ending().words, sep="\\n", flush=True)
time.sleep(10_000)  # the seat ends this process
"""


@pytest.mark.timeout(900)
def test_a_session_that_nobody_follows_is_stopped_and_then_its_seat_ends(make: Make, tmp_path: Path) -> None:
    session = make("collect_wood", start=False, review=True)
    environment = os.environ | session.environment | {"RLGPT_HOME": str(tmp_path / "node")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, str(session.folder.path), session.folder.id],
        env=environment, stdout=subprocess.PIPE, text=True, timeout=150 * PATIENCE, check=True,
    )  # fmt: skip
    waits, *words = done.stdout.splitlines()
    assert waits == "waits for its operator" and "nobody has followed this session for 20 s: it stops" in words
    (there,) = (tmp_path / "node").glob("seats/*/sessions/*")
    with Reader(SessionFolder(there)) as reader:
        assert reader.history_at().result == "stopped"

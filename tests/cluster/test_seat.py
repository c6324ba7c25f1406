"""A seat without Ray: an ordinary object of a process that stands for Ray's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from rlgpt.store.errors import StoreError
from rlgpt.store.folder import SessionFolder
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.peers import bring
from rlgpt.store.reader import Reader
from rlgpt.training.cluster.seat import Seat
from rlgpt.training.cluster.seat_peer import SeatPeer, SourcePeer
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


class LosesAnswers:
    """In Ray's place: every call is done, and the answer of its first one is lost."""

    class exceptions:
        class RayError(Exception): ...

        class RayTaskError(RayError):
            cause: Exception

        class ActorDiedError(RayError): ...

        class GetTimeoutError(RayError): ...

    def __init__(self, seat: Seat) -> None:
        self.calls: list[str] = []
        self._seat = seat

    def __getattr__(self, question: str) -> SimpleNamespace:
        return SimpleNamespace(remote=lambda *arguments: (question, arguments))

    def get(self, asked: tuple[str, tuple[object, ...]], timeout: float) -> object:
        question, arguments = asked
        self.calls.append(question)
        try:
            answer = getattr(self._seat, question)(*arguments)
        except StoreError as error:
            failed = self.exceptions.RayTaskError()
            failed.cause = error
            raise failed from error
        if self.calls.count(question) == 1:
            raise self.exceptions.RayError("the actor is unavailable")
        return answer


@pytest.mark.timeout(900)
def test_a_question_whose_answer_was_lost_does_nothing_twice(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, source = make("collect_wood", start=False), make("collect_wood", start=False)
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "node"))
    seat = Seat(f"{session.folder.id}.1", session.folder.id)
    ray = LosesAnswers(seat)
    peer = SeatPeer(ray, ray, "node")
    for place, folder in ((peer, session.folder), (SourcePeer(peer, source.folder.id), source.folder)):
        bring(FolderPeer(folder.path), place, 0, set())
    assert peer.head() == FolderPeer(session.folder.path).head()
    try:
        peer.ask("start", "")
        assert ray.calls.count("start") == 2
        begun = [words for words in map(_words, psutil.process_iter()) if {*words} >= {str(seat._folder), "--leash"}]
        assert len(begun) == 1
    finally:
        assert seat._supervisor is not None and seat._supervisor.stdin is not None
        seat._supervisor.stdin.close()  # the leash
        seat._supervisor.wait(60 * PATIENCE)


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []

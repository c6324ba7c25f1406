"""What happens to a session in the moment in which its worker ends, and in places where nothing can be written."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from rlgpt.console.commands import children, operate
from rlgpt.store import events
from rlgpt.store.epilogue import append_event
from rlgpt.store.errors import StoreError
from rlgpt.store.folder import SessionFolder
from rlgpt.store.lease import Lease
from rlgpt.store.placing import place
from rlgpt.store.reader import Reader
from rlgpt.store.stores import open_store
from rlgpt.store.upkeep import backup
from rlgpt.store.writer import Writer
from rlgpt.training import supervisor

from .conftest import Answer, make, write_plan

Cli = Callable[..., Answer]
HOLDER = """
import sys, time
from pathlib import Path
from rlgpt.store.lease import Lease
with Lease.acquire(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def signals() -> Iterator[None]:
    """A supervisor in this process sets handlers."""
    before = {number: signal.getsignal(number) for number in supervisor.STOPPING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ended(status: str) -> SessionFolder:
    session = make()
    with Writer(session) as writer:
        write_plan(writer)
        if status:
            writer.event(events.Ended(status=status, reason="for this test"))
    return session


def result_of(session: SessionFolder) -> str:
    with Reader(session) as reader:
        return str(reader.history_at().result)


@pytest.mark.parametrize("code", [-signal.SIGTERM, -signal.SIGSEGV, 1, 0])
def test_how_a_worker_leaves_takes_nothing_back_that_it_wrote(
    monkeypatch: pytest.MonkeyPatch, signals: None, code: int
) -> None:
    session = ended("")

    class Leaving:
        """A worker that writes its end and then meets a signal."""

        def __init__(self, folder: Path, slot: Lease) -> None:
            append_event(folder, events.Ended("succeeded", "the target is reached"))

        def wait(self) -> tuple[int, int]:
            if code == -signal.SIGTERM:
                os.kill(os.getpid(), signal.SIGTERM)
            return code, 0

        def stop(self) -> None:
            pass

        def last_lines(self) -> list[str]:
            return []

    monkeypatch.setattr(supervisor, "_Worker", Leaving)
    assert supervisor.supervise(session.path) == 0
    with Reader(session) as reader:
        kinds = [row["kind"] for row in reader.rows("event")]
    assert result_of(session) == "succeeded" and kinds[-1] == "ended" and kinds.count("ended") == 1


def test_a_database_that_is_damaged_before_the_first_worker_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    session = ended("")
    session.database.write_bytes(b"")
    assert supervisor.supervise(session.path) == 1
    assert capsys.readouterr().err == f"{session.database} is empty, not the database of a session\n"


@pytest.mark.parametrize(("status", "after"), [("succeeded", "succeeded"), ("", "stopped")])
def test_what_ended_by_itself_is_not_stopped_by_who_ends_its_processes(rlgpt: Cli, status: str, after: str) -> None:
    session = ended(status)
    words = [sys.executable, "-P", "-c", HOLDER, str(session.path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        assert rlgpt("stop", session.id, "--now").code == 0
        assert holder.wait(timeout=60) == -signal.SIGKILL
    assert result_of(session) == after


@pytest.mark.parametrize(("status", "code", "workers"), [("stopped", 0, 1), ("succeeded", 4, 0)])
def test_who_resumes_waits_for_the_worker_that_leaves(
    rlgpt: Cli, monkeypatch: pytest.MonkeyPatch, status: str, code: int, workers: int
) -> None:
    session = ended(status)
    started: list[Path] = []
    monkeypatch.setattr(children, "start_worker", started.append)
    monkeypatch.setattr(operate, "PATIENCE", 3.0)
    leaving = Lease.acquire(session.path)
    timer = threading.Timer(0.5, leaving.release)
    timer.start()
    assert rlgpt("resume", session.id).code == code
    timer.join()
    assert started == [session.path] * workers


@pytest.mark.skipif(not find_spec("ray"), reason="Ray is not installed (rlgpt[ray])")
def test_a_session_whose_cluster_is_gone_is_not_said_to_be_resumed(rlgpt: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    session = ended("stopped")
    place(session.path, "127.0.0.1:1")
    started: list[Path] = []
    monkeypatch.setattr(children, "start_worker", started.append)
    answer = rlgpt("resume", session.id)
    assert answer.code != 0 and "no Ray cluster answers at 127.0.0.1:1" in answer.err and not started


@pytest.mark.parametrize(("status", "said"), [("stopped", "is being resumed"), ("succeeded", "has ended (succeeded)")])
def test_a_session_whose_worker_is_not_up_yet_is_not_said_to_have_ended(
    rlgpt: Cli, monkeypatch: pytest.MonkeyPatch, status: str, said: str
) -> None:
    """On a busy machine it takes longer to say so than anybody waits."""
    session = ended(status)
    monkeypatch.setattr(operate, "PATIENCE", 0.1)
    with Lease.acquire(session.path):
        answer = rlgpt("pause", session.id)
    assert answer.code == 4 and said in answer.err
    assert f"has ended ({status})" in rlgpt("pause", session.id).err


@pytest.mark.parametrize("index", ["kept", "lost"])
def test_rows_beside_the_database_are_not_left_out_where_nothing_can_be_written(tmp_path: Path, index: str) -> None:
    """A copy of a running session on a medium that is read-only, seen as somebody whom file modes bind."""
    session, copy = make(), tmp_path / "copy"
    with Writer(session) as writer:
        write_plan(writer)
        shutil.copytree(session.path, copy)
    if index == "lost":
        (copy / "session.db-shm").unlink()
    copy.chmod(0o555)
    look = "import sys; from pathlib import Path; from rlgpt.store import database\n"
    look += "base = database.connect(Path(sys.argv[1]))\n"
    look += "print(base.execute('SELECT count(*) FROM plan').fetchone()[0])"
    bound = ["setpriv", "--bounding-set", "-dac_override", "--inh-caps", "-dac_override"] if os.getuid() == 0 else []
    seen = subprocess.run(
        [*bound, sys.executable, "-P", "-c", look, copy / "session.db"], capture_output=True, text=True, check=False
    )
    copy.chmod(0o755)
    if index == "kept":
        assert seen.stdout == "1\n", seen.stderr
    else:
        assert "lie beside its database without an index" in seen.stderr


def test_no_copy_goes_among_the_sessions_of_the_store(rlgpt: Cli, finished: SessionFolder, home: Path) -> None:
    def files() -> list[Path]:
        return sorted(path for path in home.rglob("*") if path.suffix != ".db")

    before = files()
    for inside in (home / "sessions", finished.path, finished.path / "copies"):
        with pytest.raises(StoreError, match="lies among the sessions of this store"):
            backup(finished, inside / "x")
        with pytest.raises(StoreError, match="lies among the sessions of this store"):
            open_store(str(inside))
    assert rlgpt("store", "backup", home / "sessions" / "x", finished.id).code == 4
    assert files() == before


def test_a_worker_s_output_is_printed_as_it_is(rlgpt: Cli, finished: SessionFolder) -> None:
    for word in ("--json", "--follow"):
        assert rlgpt("logs", finished.id, "--worker", word).code == 2


def test_followed_logs_end_with_their_reader(running: tuple[SessionFolder, Writer]) -> None:
    session, _ = running
    words = [sys.executable, "-P", "-m", "rlgpt.console.cli", "logs", "--follow", session.id]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as logs:
        assert logs.stdout is not None and logs.stdout.readline()
        logs.stdout.close()
        assert logs.wait(timeout=60) == 0

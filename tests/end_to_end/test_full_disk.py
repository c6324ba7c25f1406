"""A disk that fills up: one sentence, nothing lost, and with new room the session comes to the same end."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlgpt.store.folder import SESSIONS_STOP_BELOW
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.story import STORY, TASK, same_as_unbroken, training
from tests.end_to_end.typed import rlgpt

STOPPED, UNAVAILABLE = 7, 5


class SmallDisk:
    """A file system in memory at `place`."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def mount(self, octets: int, again: bool = False) -> None:
        size = f"size={octets}"
        words = ["-o", f"remount,{size}"] if again else ["-t", "tmpfs", "-o", size, "tmpfs"]
        subprocess.run(["mount", *words, str(self.place)], check=True, capture_output=True)

    def fill(self) -> None:
        """Not a byte is left."""
        with (self.place / "ballast").open("wb", buffering=0) as ballast:
            block = b"\0" * 65536
            while block:
                try:
                    ballast.write(block)
                except OSError:
                    block = block[: len(block) // 2]

    def empty(self) -> None:
        (self.place / "ballast").unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """The store's disk: just enough for a session to start."""
    place = tmp_path / "home"
    place.mkdir()
    small = SmallDisk(place)
    try:
        small.mount(SESSIONS_STOP_BELOW + 1_900_000)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"This machine does not let the tests mount a small disk: {error}")
    yield small
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def sound(session: Running, home: Path) -> None:
    said = rlgpt(home, "store", "check", session.folder.id)
    assert said.code == 0, said.out + said.err


def test_a_session_that_fills_its_disk_stops_and_goes_on_to_the_same_end_with_room(disk: SmallDisk, make: Make) -> None:
    session = make(TASK, **STORY)
    history = session.finish(200)
    assert (history.status, history.result) == ("ended", "stopped"), history.reason
    said = rlgpt(disk.place, "wait", session.folder.id)
    assert said.code == STOPPED and "is nearly full: make room (`rlgpt store prune`)" in said.out
    sound(session, disk.place)
    (disk.place / "ballast").write_bytes(b"\0" * 3_000_000)
    said = rlgpt(disk.place, "resume", session.folder.id)
    assert said.code == UNAVAILABLE and "MB are free" in said.sentence
    disk.mount(SESSIONS_STOP_BELOW + 100_000_000, again=True)
    assert rlgpt(disk.place, "resume", session.folder.id).code == 0
    rlgpt(disk.place, "wait", session.folder.id)
    same_as_unbroken(make, session, but="frame")  # the storage law keeps none on a disk that small
    sound(session, disk.place)


@pytest.mark.slow
def test_a_disk_without_a_byte_left_costs_at_most_one_step(disk: SmallDisk, make: Make) -> None:
    disk.mount(SESSIONS_STOP_BELOW + 100_000_000, again=True)
    session = make(TASK, **STORY)
    before = session.until(training, 150)
    disk.fill()
    history = session.finish(100)
    assert history.seq >= before.seq
    said = rlgpt(disk.place, "wait", session.folder.id)
    assert said.code not in (0, 1) and "full" in said.out + said.err
    sound(session, disk.place)
    disk.empty()
    assert rlgpt(disk.place, "resume", session.folder.id).code == 0
    rlgpt(disk.place, "wait", session.folder.id)
    same_as_unbroken(make, session, but="frame")  # the storage law keeps none on a disk that small
    sound(session, disk.place)

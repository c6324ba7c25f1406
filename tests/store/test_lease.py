"""Leases and training slots."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlgpt.console.machine import training_slots
from rlgpt.store.catalog import summaries
from rlgpt.store.errors import BadPlace, DiskFull, NoSession
from rlgpt.store.folder import SessionFolder
from rlgpt.store.home import home
from rlgpt.store.lease import SLOT_DESCRIPTOR, Lease, LeaseTaken, TrainingSlot, owner, training_slot


def test_a_lease_is_held_until_it_is_released(session: SessionFolder) -> None:
    assert not Lease.held(session.path)
    with Lease.acquire(session.path) as lease:
        assert Lease.held(session.path) and lease.alive
        with pytest.raises(LeaseTaken, match=f"session {session.id} is already run by process"):
            Lease.acquire(session.path, patience=0)
    assert not Lease.held(session.path) and not lease.alive


def test_asking_who_holds_a_lease_never_keeps_it_from_a_worker(session: SessionFolder) -> None:
    asking = True

    def ask() -> None:
        while asking:
            owner(session.path)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for _ in range(50):
            Lease.acquire(session.path).release()
    finally:
        asking = False
        thread.join()


def test_a_question_that_takes_long_is_waited_for(session: SessionFolder) -> None:
    """On a busy machine whoever asks may stand still while it has its shared lock."""
    Lease.acquire(session.path).release()
    acquired: list[Lease] = []
    with (session.path / "worker.lock").open() as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        thread = threading.Thread(target=lambda: acquired.append(Lease.acquire(session.path, patience=0)))
        thread.start()
        thread.join(0.3)
        assert thread.is_alive() and not acquired, "the question was taken for an owner"
    thread.join()
    assert acquired[0].alive
    acquired[0].release()


def test_a_folder_without_a_lock_file_is_not_held(session: SessionFolder) -> None:
    assert owner(session.path) is None
    assert not (session.path / "worker.lock").exists()


def test_the_lease_of_a_session_that_was_moved_away_meanwhile_is_refused_in_a_sentence(session: SessionFolder) -> None:
    session.path.rename(session.path.with_name("elsewhere"))
    with pytest.raises(NoSession, match="no longer there"):
        Lease.acquire(session.path)


def test_no_more_sessions_train_at_once_than_the_setting_says(new_session) -> None:  # type: ignore[no-untyped-def]
    sessions = [new_session(limits={"host_slots": 2}) for _ in range(3)]
    waited = threading.Event()
    entered = threading.Event()
    with training_slot(sessions[0].path, waited.set) as one, training_slot(sessions[1].path, waited.set) as two:
        assert one.alive and two.alive and not waited.is_set()

        def third() -> None:
            with training_slot(sessions[2].path, waited.set):
                entered.set()

        thread = threading.Thread(target=third)
        thread.start()
        assert waited.wait(60) and not entered.is_set()
    assert entered.wait(60)
    thread.join()


def test_an_error_inside_a_slot_is_not_swallowed(session: SessionFolder) -> None:
    with pytest.raises(LeaseTaken, match="mine"), training_slot(session.path, lambda: None):
        raise LeaseTaken("mine")
    with training_slot(session.path, lambda: None) as slot:
        assert slot.alive


def test_a_supervisor_needs_nothing_but_the_standard_library_for_it() -> None:
    code = "import sys, rlgpt.store.lease, rlgpt.store.epilogue; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"sqlmodel", "sqlalchemy", "pydantic", "numpy", "zstandard"} & set(found)


def test_a_wait_for_a_slot_ends_with_what_its_look_raises(new_session) -> None:  # type: ignore[no-untyped-def]
    first, second = (new_session(limits={"host_slots": 1}) for _ in range(2))
    waited: list[str] = []

    def look() -> None:
        raise LookupError("asked to leave")

    with (
        training_slot(first.path, lambda: None, look),
        pytest.raises(LookupError, match="asked to leave"),
        training_slot(second.path, lambda: waited.append("once"), look),
    ):
        pytest.fail("there was no slot")
    assert waited == ["once"]
    with training_slot(second.path, lambda: None, look) as slot:
        assert slot.alive


def test_a_slot_that_is_handed_over_is_given_back_and_taken_again(new_session, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    first, second = (new_session(limits={"host_slots": 1}) for _ in range(2))
    with training_slot(first.path, lambda: None) as lease:
        monkeypatch.setenv(SLOT_DESCRIPTOR, str(os.dup(lease.fileno())))
        slot = TrainingSlot.inherited(first.path)
    assert SLOT_DESCRIPTOR not in os.environ, "a child would take it for its own"
    others: list[Lease] = []

    def is_free() -> bool:
        with contextlib.suppress(Full), training_slot(second.path, _full) as got:
            others.append(got)
            return True
        return False

    assert slot.take() and not is_free(), "the one that handed it over has let go"
    slot.give_back()
    slot.give_back()
    assert is_free()
    with training_slot(second.path, lambda: None):
        assert not slot.take()
    assert slot.take() and not is_free()
    slot.give_back()
    assert TrainingSlot(first.path).take(), "without a supervisor none is needed"
    assert is_free()


class Full(Exception):
    """There is no free slot."""


def _full() -> None:
    raise Full


@pytest.fixture
def bar(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make files another user's, also for root, whom no mode keeps out."""

    def of_root(*names: str) -> None:
        real = os.open

        def opened(path: Any, *args: Any, **more: Any) -> int:
            if Path(path).name in names:
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *args, **more)

        monkeypatch.setattr("rlgpt.store.lease.os.open", opened)

    return of_root


def test_a_slot_of_another_user_is_passed_over(session: SessionFolder, bar: Callable[..., None]) -> None:
    (home() / "slots").mkdir(parents=True)
    (home() / "slots" / "slot-0.lock").touch()
    bar("slot-0.lock")
    with training_slot(session.path, lambda: pytest.fail("it waits")):
        assert training_slots() == 1


def test_where_all_slots_are_of_another_user_nobody_waits(session: SessionFolder, bar: Callable[..., None]) -> None:
    bar("slot-0.lock", "slot-1.lock")
    slot = training_slot(session.path, lambda: pytest.fail("it waits"))
    with pytest.raises(BadPlace, match=r"slot-0\.lock: Permission denied"), slot:
        pass


def test_a_lock_of_another_user_is_an_error_of_the_store(session: SessionFolder, bar: Callable[..., None]) -> None:
    bar("worker.lock")
    with pytest.raises(BadPlace, match="Permission denied"):
        owner(session.path)
    with pytest.raises(BadPlace, match="Permission denied"):
        Lease.acquire(session.path)
    assert "Permission denied" in summaries()[0].fault


def refuse(monkeypatch: pytest.MonkeyPatch, call: str, number: int) -> None:
    def refused(*_args: object, **_more: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(f"rlgpt.store.lease.os.{call}", refused)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_on_a_full_disk_a_lock_is_held_without_a_word(
    session: SessionFolder, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    refuse(monkeypatch, "pwrite", number)
    with Lease.acquire(session.path):
        held = owner(session.path)
        assert held is not None and held.pid == 0
        with pytest.raises(LeaseTaken, match="is already run; attach to it"):
            Lease.acquire(session.path, patience=0)
    assert owner(session.path) is None


def test_a_lock_that_cannot_be_written_is_let_go_again(session: SessionFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as failing:
        refuse(failing, "pwrite", errno.EIO)
        with pytest.raises(BadPlace, match=r"worker\.lock: Input/output error"):
            Lease.acquire(session.path)
    with Lease.acquire(session.path, patience=0) as lease:
        assert lease.alive


def test_where_there_is_no_room_for_a_lock_file_it_is_a_sentence(
    session: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, "open", errno.ENOSPC)
    with pytest.raises(DiskFull, match=r"no room for one more file, worker\.lock"):
        Lease.acquire(session.path)

"""Where a session runs changes nothing but the time: on a node, on two after another, followed or not."""

from __future__ import annotations

import contextlib

import pytest

from rlgpt.store.lease import Lease, owner
from rlgpt.store.placing import placed_on
from rlgpt.training.cluster.connect import NAMESPACE, connect
from tests.cluster.conftest import Adding, Away, home_again, nothing_left, until
from tests.end_to_end.conftest import Make
from tests.end_to_end.consoles import attached, command
from tests.end_to_end.story import STORY, TASK, same_as_unbroken, training
from tests.patience import PATIENCE
from tests.ray_cluster import NEEDS_RAY, Machines

pytestmark = NEEDS_RAY

LONG = {"budget": {"env_steps": 5_000_000}, "method": {"whole_budget": True}}
"""PPO runs that no test waits for."""


def test_where_no_node_computes_the_session_stops_with_the_reason(away: Make) -> None:
    session = away(TASK, **STORY)
    assert isinstance(session, Away)
    history = session.finish(60 * PATIENCE)
    assert history.result == "stopped" and "it has no node with a CPU to lend" in history.reason
    assert placed_on(session.folder.path) and not Lease.held(session.folder.path)


@pytest.mark.slow  # where the story is over before a follower or a node is lost it fails
@pytest.mark.timeout(900)
def test_neither_a_lost_follower_nor_a_lost_node_changes_anything_but_the_time(
    machines: Machines, machine: Adding, away: Make, make: Make
) -> None:
    first = machine()
    session = away(TASK, **STORY)
    assert isinstance(session, Away)
    session.until(lambda history: history.phase.name == "Trial", 60 * PATIENCE)
    worker = owner(session.folder.path)
    session.leave()
    assert not Lease.held(session.folder.path) and session.there(), "the seat goes on"
    session.start()
    session.until(training, 150 * PATIENCE)
    assert owner(session.folder.path) == worker, "the same seat is found again"
    second = machine()
    running = session.there()
    machines.lose(first)
    nothing_left(session, running)
    session.finish(300 * PATIENCE)
    assert session.history().incarnation == 2
    deaths = [row["payload"] for row in session.rows("event") if row["kind"] == "trainer_died"]
    assert [death["restart"] for death in deaths] == [True] and "is gone" in deaths[0]["last_lines"][0]
    same_as_unbroken(make, session)
    home_again(session)
    machines.lose(second)


@pytest.mark.timeout(900)
def test_an_operator_here_steers_what_runs_there(machines: Machines, machine: Adding, away: Make) -> None:
    node = machine()
    session = away(TASK, **LONG)
    assert isinstance(session, Away)
    session.until(training, 150 * PATIENCE)
    with attached(session) as console:
        assert command(session, "pause", session.folder.id)["kind"] == "pause"
        session.until(lambda history: history.status == "paused", 60 * PATIENCE)
        console.until("paused")
        command(session, "resume", session.folder.id)
        session.until(lambda history: history.status == "running", 60 * PATIENCE)
    running = session.there()
    command(session, "stop", session.folder.id)
    assert session.finish(60 * PATIENCE).result == "stopped"
    nothing_left(session, running)
    assert placed_on(session.folder.path), "a resume goes on there"
    assert not [seat for seat in machine.seats() if seat.name.startswith(session.folder.id)], "it left something there"
    machines.lose(node)


@pytest.mark.timeout(900)
def test_what_runs_there_is_ended_at_once_whether_somebody_follows_it_or_not(
    machines: Machines, machine: Adding, away: Make
) -> None:
    node = machine()
    session = away(TASK, **STORY, review=True)
    assert isinstance(session, Away) and session.supervisor is not None

    def waits() -> bool:
        """For its operator, not for a node."""
        history = session.history()
        return history.status == "waiting" and history.waiting_for.startswith("approval") and bool(session.there())

    for followed in (True, False):
        until(waits, 150 * PATIENCE)
        running = session.there()
        if not followed:
            session.leave()
            assert "is not followed: `rlgpt resume" in command(session, "stop", session.folder.id)["error"]
        command(session, "stop", session.folder.id, "--now")
        nothing_left(session, running)
        assert session.supervisor.wait(60 * PATIENCE) == 0
        history = session.history()
        assert history.result == "stopped" and "ended at once by" in history.reason
        assert placed_on(session.folder.path) and not Lease.held(session.folder.path)
        session.start()  # as a resume does: it is told to go on, and not to end again
    until(waits, 150 * PATIENCE)
    command(session, "stop", session.folder.id, "--now")
    machines.lose(node)


@pytest.mark.timeout(1800)
def test_a_session_whose_seats_are_lost_again_and_again_is_given_up(
    machines: Machines, machine: Adding, away: Make
) -> None:
    """As a worker that dies again and again is: after four losses without completed work."""
    node = machine()
    session = away(TASK, **STORY, review=True)
    assert isinstance(session, Away) and session.supervisor is not None
    ray = connect(machines.address)
    lost: set[str] = set()

    def lose() -> bool:
        """A seat that runs its worker; whether the follower has given up."""
        assert session.supervisor is not None
        for name in {name for name in ray.util.list_named_actors() if name.startswith(session.folder.id)} - lost:
            with contextlib.suppress(ValueError, ray.exceptions.RayError):  # it is not there yet, or any more
                seat = ray.get_actor(name, namespace=NAMESPACE)
                if ray.get(seat.worker.remote(), timeout=20) is not None:
                    ray.kill(seat, no_restart=True)
                    lost.add(name)
        return session.supervisor.poll() is not None

    until(lose, 1000 * PATIENCE)
    assert session.supervisor.returncode == 1
    history = session.history()
    assert history.result == "failed" and "its seat was lost 4 times without getting further" in history.reason
    deaths = [row["payload"]["restart"] for row in session.rows("event") if row["kind"] == "trainer_died"]
    assert lost and deaths[-4:] == [True, True, True, False]
    machines.lose(node)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_killed_follower_begins_no_session_twice(machines: Machines, machine: Adding, away: Make, make: Make) -> None:
    node = machine()
    session = away(TASK, **STORY)
    assert isinstance(session, Away) and session.supervisor is not None
    session.until(training, 150 * PATIENCE)
    session.kill()
    session.start()
    session.finish(300 * PATIENCE)
    assert session.history().incarnation == 1
    same_as_unbroken(make, session)
    home_again(session)
    machines.lose(node)

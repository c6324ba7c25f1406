"""A node that is lost at any moment of a session changes nothing but the time."""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.cluster.conftest import Adding, Away, home_again, nothing_left, until
from tests.end_to_end.conftest import Make
from tests.end_to_end.story import STORY, TASK, same_as_unbroken, unbroken
from tests.patience import PATIENCE
from tests.ray_cluster import NEEDS_RAY, Machines

pytestmark = NEEDS_RAY


class Loss(NamedTuple):
    """What a lost node did to its session."""

    phase: str
    """Of the session, when its node was lost."""
    ended: int
    """Processes of the session there."""
    seconds: float
    """Until the last of them was gone."""
    again: float | None
    """Seconds from the loss until the worker on another node had begun; None where the session was over."""
    rows: int
    """That were compared with the unbroken session's."""


@pytest.fixture(scope="module")
def losses() -> Iterator[list[Loss]]:
    """Of all moments; told when the last one is over (`pytest -s`)."""
    every: list[Loss] = []
    yield every
    if len(every) < 2:
        return
    again = sorted(loss.again for loss in every if loss.again is not None)
    phases = ", ".join(f"{count} in {phase}" for phase, count in Counter(loss.phase for loss in every).items())
    print(
        f"\n{len(every)} nodes lost ({phases}): {sum(loss.rows for loss in every)} rows compared, all equal; "
        f"{sum(loss.ended for loss in every)} processes of theirs, none left, the last gone after "
        f"{max(loss.seconds for loss in every):.1f} s; on another node after {statistics.median(again):.1f} s "
        f"(median), {again[-1]:.1f} s at most"
    )


@pytest.fixture(scope="module")
def alive() -> list[Any]:
    """The machines that live."""
    return []


@pytest.mark.timeout(7200)
@pytest.mark.slow
@pytest.mark.parametrize("moment", range(20))
def test_a_node_lost_at_a_random_moment_changes_nothing_but_the_time(
    machines: Machines, machine: Adding, alive: list[Any], away: Make, make: Make, losses: list[Loss], moment: int
) -> None:
    """The moments are those of the unbroken session's clock, one at random in each twentieth of it."""
    clock = unbroken(make)["clock"]
    begun, over = clock[0][1], clock[-1][1]
    chosen = begun + (over - begun) * (moment + random.Random(moment).random()) / 20
    row, written = max(event for event in clock if event[1] <= chosen)
    while len(alive) < 2:
        alive.append(machine())
    session = away(TASK, **STORY)
    assert isinstance(session, Away) and session.supervisor is not None
    home = session.supervisor.poll

    def reached() -> bool:
        return any(event["seq"] >= row for event in session.rows("event")) and bool(session.there())

    until(lambda: reached() or home() is not None, 300 * PATIENCE)
    time.sleep(chosen - written)  # into what that event began
    history, running, lost = session.history(), session.there(), time.time()
    unlucky = machine.of(session) or alive[0]
    alive.remove(unlucky)
    machines.lose(unlucky)
    if running:
        nothing_left(session, running)
    seconds = time.time() - lost
    session.finish(300 * PATIENCE)
    rows = same_as_unbroken(make, session)
    home_again(session)
    resumed = [event["at"] for event in session.rows("event") if event["kind"] == "resumed"]
    phase = "its end" if history.status == "ended" else history.phase.name
    losses.append(Loss(phase, len(running), seconds, resumed[0] - lost if resumed else None, rows))

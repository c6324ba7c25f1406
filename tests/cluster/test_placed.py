"""Where a session runs changes nothing but the time: on a node, on two after another, followed or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psutil
import pytest

from rlgpt.store.address import source_of
from rlgpt.store.lease import Lease
from tests.cluster.conftest import PATIENCE
from tests.end_to_end.conftest import Make
from tests.end_to_end.story import STORY, TASK, same_as_unbroken, training
from tests.ray_cluster import NEEDS_RAY, Machines

pytestmark = NEEDS_RAY

Add = Callable[[], Any]


@pytest.mark.timeout(600)
def test_a_lost_node_changes_nothing_but_the_time(machines: Machines, machine: Add, away: Make, make: Make) -> None:
    first = machine()
    session = away(TASK, **STORY)
    session.until(training, PATIENCE)
    second = machine()
    old = session.there()
    machines.lose(first)
    gone, alive = psutil.wait_procs(old, timeout=5)
    assert gone and not alive, f"still there: {alive}"
    session.finish(400)
    assert session.history().incarnation == 2
    same_as_unbroken(make, session)
    assert session.rows("event")
    assert not Lease.held(session.folder.path) and not source_of(session.folder.path)
    machines.lose(second)

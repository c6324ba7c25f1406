"""Live is replay at the end of the timeline: what a console showed then is what a replay shows at that row."""

from __future__ import annotations

import random

import pytest

from rlgpt.store.commands import parse_command
from rlgpt.store.inbox import send
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.following import Follower, replayed
from tests.end_to_end.story import STORY, TASK, training

CURSORS = 200


def check(session: Running, follower: Follower, most: int) -> int:
    """Compare at random cursors of those that were seen live; how many."""
    seen = sorted(follower.logged)
    cursors = random.Random(most).sample(seen, min(most, len(seen)))
    wrong = [at for at, hashed in replayed(session.folder.path, cursors) if follower.logged[at] != hashed]
    assert not wrong, f"{len(wrong)} of {len(cursors)} look otherwise when replayed, such as {sorted(wrong)[:5]}"
    return len(cursors)


def test_a_short_session_replays_as_it_was_seen(make: Make) -> None:
    session = make("make_wood_pickaxe", start=False)
    with Follower(session.folder.path) as follower:
        session.start().finish()
    assert check(session, follower, CURSORS) > 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["whole", "resumed", "overridden"])
def test_at_200_random_cursors_a_replay_shows_what_was_seen_live(make: Make, kind: str) -> None:
    session = make(TASK, **STORY, start=False)
    with Follower(session.folder.path) as follower:
        session.start()
        if kind == "resumed":
            session.until(training, 300)
            session.trainer().kill()
        if kind == "overridden":
            plan = session.until(training, 300).plan
            assert plan is not None
            edit = {"op": "set", "name": next(i.name for i in plan.items if i.mode == "code"), "mode": "rl"}
            send(session.folder, parse_command("override", {"edits": [edit], "apply": "now"}), plan.revision)
        history = session.finish(600)
    assert history.result in ("finished", "succeeded"), history.reason
    assert (history.incarnation > 1) == (kind == "resumed")
    assert any(plan.author == "operator" for plan in history.plans.values()) == (kind == "overridden")
    assert check(session, follower, CURSORS) == CURSORS

"""Short ways to ask a host."""

from __future__ import annotations

from collections.abc import Sequence

from rlgpt.training.host.api import FOLLOW_PLAN, Action, Answer, Ask, Host, Kind, PlanItem, Programs
from tests.host.world import packed

WHOLE = packed(0, whole=True)


def source(*lines: str, name: str = "act") -> str:
    return "\n".join([f"def {name}(view):", *("    " + line for line in lines)])


def admitted(host: Host, text: str, kind: Kind = "action") -> str:
    """The hash of a source that must be admitted."""
    admission = host.admit(kind, text, [[WHOLE]])
    assert admission.admitted, admission
    return admission.source_hash


def load(
    host: Host,
    *actions: str,
    plan: Sequence[tuple[str, str]] = (),
    predicates: Sequence[str] = (),
    rewards: Sequence[str] = (),
) -> Programs:
    """Admit and load sources; `plan` is (done_when, source)."""
    for predicate in (*predicates, *(test for test, _ in plan)):
        admitted(host, predicate, "done_when")
    programs = Programs(
        actions=tuple(Action(admitted(host, text)) for text in actions),
        plan=tuple(PlanItem(test, Action(admitted(host, text))) for test, text in plan),
        predicates=tuple(predicates),
        rewards=tuple(admitted(host, text, "reward") for text in rewards),
    )
    host.load(programs)
    return programs


def begin(host: Host, *actions: int, at: int = 0) -> list[Answer]:
    """Open an action in each of the first lanes, at the start of an episode."""
    view = packed(at, whole=True)
    return host.tick([Ask(lane, view, open=action, episode_start=True) for lane, action in enumerate(actions)])


def follow(host: Host, at: int = 0) -> Answer:
    return host.tick([Ask(0, packed(at, whole=True), open=FOLLOW_PLAN, episode_start=True)])[0]


def go_on(host: Host, at: int, coins: int = 0) -> Answer:
    """Resume the call of lane 0."""
    return host.tick([Ask(0, packed(at, coins), resume=True)])[0]


STAY, LEFT, RIGHT = (0,), (1,), (2,)
WALK = source("while view.at < END:", '    view = yield "right"', name="walk")
BACK = source("for _ in range(2):", '    yield "left"', name="back")
COUNT = """
def count(view):
    steps = 0
    while True:
        steps += 1
        view = yield "left" if steps % 3 else "right"
"""
"""Yields left, left, right, ... whatever it sees: any lost or doubled step shows."""


def counted(steps: int) -> tuple[int, ...]:
    """The `steps`-th command of COUNT."""
    return LEFT if steps % 3 else RIGHT

"""Which of policy and code is better: by the episodes that only one of them won, or seed by seed where the result is a
score."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from rlgpt.agents.loop import Limits
from rlgpt.store.row_types import EpisodeRow
from rlgpt.training.steps.comparison import Comparison, measure
from rlgpt.training.worlds import registry
from tests.agents.histories import Told

MILESTONES = ["wood", "stone", "iron", "coal"]


def measured(policy: list[int], code: list[int], kind: str = "score", won: tuple[int, int] = (0, 0)) -> Comparison:
    """Of an iteration whose policy and code alone reached so many milestones on the same seeds, in turn."""
    told = Told(kind=kind, milestones=MILESTONES).iteration().plan("policy", dig="code").code("dig").trial("dig")
    told.config().train().evaluate(won[0], len(policy), run=1).evaluate(won[1], len(code), run=1, variant="plan")

    def rows(table: type[EpisodeRow], where: dict[str, Any]) -> list[dict[str, Any]]:
        assert (table, where["split"]) == (EpisodeRow, "dev")
        counts = policy if where["owner"] == 1 else code
        return [{"seed": n, "milestones": [*MILESTONES[:count], "unasked"]} for n, count in enumerate(counts)]

    live: Any = SimpleNamespace(
        history=told.history, limits=Limits(), reader=SimpleNamespace(rows=rows), world=registry.get("crafter")
    )
    return measure(live)


def test_a_score_is_compared_seed_by_seed() -> None:
    spread = [1, 4] * 5  # seeds differ far more than policy and code do
    found = measured([n if n == 4 else n + 1 for n in spread], spread)
    assert found.better == "policy" and found.difference is not None
    mean, low, high = found.difference
    every, half = 101**0.25, 51**0.25  # Crafter's score of milestones that all, or half of the episodes reach
    assert mean == pytest.approx((every**2 * half**2 - every * half**3) / 100) and 0 < low < mean < high
    better = measured([2, 3, 2, 3, 2, 4, 2, 3, 2, 3], [1, 2, 1, 2, 1, 2, 1, 2, 1, 2])
    assert better.better == "policy" and better.difference is not None and better.difference[1] > 0
    assert measured([1, 2, 1, 2, 1, 2], [2, 3, 2, 3, 2, 4]).better == "code"
    assert measured([1, 3, 1, 3, 1, 3], [3, 1, 3, 1, 3, 1]).better == "undecided"


def test_too_few_episodes_and_tasks_that_are_won_go_by_the_intervals_of_their_shares() -> None:
    assert measured([4] * 5, [1] * 5).difference is None
    won = measured([1] * 20, [1] * 20, kind="goal", won=(18, 3))
    assert (won.better, won.difference) == ("policy", None)
    assert measured([1] * 20, [1] * 20, kind="goal", won=(9, 10)).better == "undecided"


@pytest.mark.parametrize(
    ("policy", "code", "better"),
    [
        (range(10, 16), (), "policy"),  # by luck 6 of 6 have 1 in 64
        (range(10, 15), (), "undecided"),
        (range(10, 19), (5,), "policy"),
        (range(10, 17), (5,), "undecided"),
        ((), range(6), "code"),
        ((), (), "undecided"),
    ],
)
def test_where_it_is_known_who_won_which_those_that_one_won_alone_decide(
    policy: Iterable[int], code: Iterable[int], better: str
) -> None:
    """Their shares would not: both win ten more."""
    told = Told().iteration().plan("policy", dig="code").code("dig").trial("dig").config().train()
    for variant, alone in (("full", policy), ("plan", code)):
        won = [*alone, *range(20, 30)]
        told.evaluate(len(won), 30, run=1, variant=variant, failures={"won": won})
    live: Any = SimpleNamespace(history=told.history, limits=Limits(), world=registry.get("crafter"))
    assert measure(live).better == better

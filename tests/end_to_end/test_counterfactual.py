"""Does PPO earn its place? A session whose plan lacks one step, against the same session without learning, without
options, and against chance. `make test-slow TESTS=tests/end_to_end/test_counterfactual.py`; about ten minutes.

The operator leaves `place_table` to RL, so no code alone can reach the stone pickaxe: the script's steps before and
after it are actions of the policy, the step itself is learnt from primitives, and what comes after it is written and
tried once the policy gets there.
"""

from __future__ import annotations

import numpy as np
import pytest

from rlgpt.store.commands import parse_command
from rlgpt.store.history import History
from rlgpt.store.inbox import send
from tests.end_to_end.conftest import Make

TASK = "make_stone_pickaxe"
SEEDS = 5
EPISODES = 40
BUDGET = 90_000
T_OF_FIVE = 2.776
"""Two-sided 95% quantile of Student's t with 4 degrees of freedom."""


def rates(history: History) -> dict[str, float]:
    """Test success by variant."""
    return {e.variant: e.measured.value for i in history.iterations for e in i.evaluations if e.split == "test"}


def as_it_is(make: Make, seed: int) -> dict[str, float]:
    session = make(
        TASK, seed=seed, review=True, budget={"env_steps": BUDGET}, method={"controls": ["plan", "prior", "random"]},
        loop={"iterations": 1, "dev_first": 20, "dev_more": 0, "test_episodes": EPISODES},
    )  # fmt: skip
    seen = 0
    while True:
        history = session.until(lambda h: h.status == "ended" or newer(h, seen), 900)  # noqa: B023
        plan = history.pending_plan
        if history.status == "ended" or plan is None:
            return rates(session.finish())
        if seen:
            send(session.folder, parse_command("approve", {}), plan.revision)
        else:
            edit = {"op": "set", "name": "place_table", "mode": "rl", "pinned": True}
            send(session.folder, parse_command("override", {"edits": [edit], "apply": "now"}), plan.revision)
        seen = plan.revision


def newer(history: History, revision: int) -> bool:
    return history.pending_plan is not None and history.pending_plan.revision > revision


def without_options(make: Make, seed: int) -> dict[str, float]:
    session = make(
        TASK, seed=seed, budget={"env_steps": BUDGET}, method={"arm": "rl"},
        loop={"iterations": 0, "dev_first": 2, "dev_more": 0, "test_episodes": EPISODES},
    )  # fmt: skip
    return rates(session.finish(900))


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_learning_and_options_each_earn_their_place(make: Make) -> None:
    whole = [as_it_is(make, seed) for seed in range(SEEDS)]
    bare = [without_options(make, seed) for seed in range(SEEDS)]
    lost = {
        "no learning": [own["full"] - own["prior"] for own in whole],
        "chance": [own["full"] - own["random"] for own in whole],
        "code alone": [own["full"] - own["plan"] for own in whole],
        "no options": [own["full"] - other["full"] for own, other in zip(whole, bare, strict=True)],
    }
    for what, differences in lost.items():
        mean, error = float(np.mean(differences)), float(np.std(differences, ddof=1)) / SEEDS**0.5
        print(f"{what:12} {mean:+.2f} [{mean - T_OF_FIVE * error:+.2f}, {mean + T_OF_FIVE * error:+.2f}] {differences}")
        assert mean - T_OF_FIVE * error > 0, f"the session as it is does not beat {what}: {differences}"

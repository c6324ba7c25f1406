"""Branches: from a decision's state two actions are played on, and the difference of their returns is its advantage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rlgpt.training.host.api import Action, PlanItem, source_hash
from rlgpt.training.options.lane import Lane
from rlgpt.training.options.observer import Observer
from rlgpt.training.options.policies import draw, probability
from rlgpt.training.options.slots import ActionSpace
from rlgpt.training.ppo.branches import Branching
from rlgpt.training.ppo.ppo import OptionPPO
from rlgpt.training.ppo.run import train
from rlgpt.training.ppo.setup import ConfigError, build_setup
from rlgpt.training.worlds.crafter.world import make_world
from rlgpt.training.worlds.optional_parts import Reseeds, offers
from rlgpt.training.worlds.protocol import StepResult
from tests.options.toys import GET_KEY, WALK, ChangedWorld, code, configuration, host_of, term

PLAN = (PlanItem("view.key", Action(source_hash(GET_KEY))),)
SOURCES = {source_hash(GET_KEY): GET_KEY}


class Rows(Observer):
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def on_update(self, metrics: dict[str, Any]) -> None:
        self.rows.append(metrics)


def _right_pays(env: Any, command: Any, result: StepResult) -> StepResult:
    return StepResult(1.0 if command == (1,) else 0.0, result.terminated, False)


def _train(branches: dict[str, int], world: ChangedWorld | None = None, observer: Observer | None = None) -> Any:
    world = world or ChangedWorld(bend=_right_pays)
    config = configuration(
        reward=[term("world")], options=["walk", "follow_plan"], env_steps=256, branches=branches,
        hyper={"learning_rate": 0.0},
    )  # fmt: skip
    return train(
        world, "take_key", config, [code(WALK)], host_of(world), seed=2, device="cpu", plan=PLAN, sources=SOURCES,
        observer=observer,
    )  # fmt: skip


def test_the_better_action_has_the_greater_return_and_the_advantage_stands_in_its_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = 0
    measure = Branching.advantages

    def measured(branching: Branching, *arguments: Any) -> tuple[list[float], int]:
        nonlocal seen
        found, env_steps = measure(branching, *arguments)
        for point, difference in zip(branching.points, found, strict=True):
            assert point.taken != point.other
            paid = [int(action == (1,)) for action in (point.taken, point.other)]
            if max(point.taken[0], point.other[0]) < 3:  # of two primitives, a step to the right is paid
                assert difference == pytest.approx(paid[0] - paid[1], abs=0.5)
                seen += 1
        return found, env_steps

    def checked(ppo: OptionPPO, keep_going: Callable[[], bool]) -> Any:
        branching = ppo.branching
        assert branching is not None and len(branching.points) == min(60, ppo.buffer.size)
        starts = np.cumsum([0, *(len(column.rewards) for column in ppo.columns)])
        for point in branching.points:
            row = starts[point.lane] + point.row
            assert tuple(ppo.buffer.actions[row]) == point.taken
        return update(ppo, keep_going)

    update = OptionPPO.train
    monkeypatch.setattr(Branching, "advantages", measured)
    monkeypatch.setattr(OptionPPO, "train", checked)
    _train({"decisions": 60, "repeats": 2, "env_steps": 1})
    assert seen > 10


def test_an_advantage_is_the_difference_times_the_probability_of_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Branching, "advantages", lambda self, *arguments: ([7.0] * len(self.points), 0))
    found: list[tuple[float, float]] = []
    update = OptionPPO.train

    def checked(ppo: OptionPPO, keep_going: Callable[[], bool]) -> Any:
        branching = ppo.branching
        assert branching is not None
        starts = np.cumsum([0, *(len(column.rewards) for column in ppo.columns)])
        rows = [int(starts[point.lane]) + point.row for point in branching.points]
        found.extend((float(ppo.buffer.advantages[row]), float(ppo.buffer.log_probs[row])) for row in rows)
        estimated = ppo.buffer.returns - ppo.buffer.values
        assert np.flatnonzero(np.abs(ppo.buffer.advantages - estimated) > 1e-3).tolist() == sorted(rows)
        return update(ppo, keep_going)

    monkeypatch.setattr(OptionPPO, "train", checked)
    _train({"decisions": 5})
    assert found and all(advantage == pytest.approx(7 * (1 - np.exp(log))) for advantage, log in found)


def test_what_is_played_is_charged() -> None:
    without, beside = Rows(), Rows()
    _train({}, observer=without)
    _train({"decisions": 4, "repeats": 3, "env_steps": 2}, observer=beside)
    more = beside.rows[0]["env_steps"] - without.rows[0]["env_steps"]
    assert 4 * 2 * 3 <= more <= 4 * 2 * 3 * (16 + 2)
    assert beside.rows[-1]["env_steps"] >= 256 > beside.rows[-2]["env_steps"]


def test_sampled_decisions_are_spread_over_the_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    begin = Branching.begin

    def begun(branching: Branching, *seed: int) -> None:
        rows.extend(point.row for point in branching.points)
        begin(branching, *seed)

    monkeypatch.setattr(Branching, "begin", begun)
    _train({"decisions": 10, "repeats": 1, "env_steps": 1})
    assert len(rows) >= 10 and min(rows) < 10 < max(rows)


def _before_the_first_decision() -> tuple[Branching, Lane, ActionSpace]:
    config = configuration(options=["walk"], branches={"decisions": 4, "repeats": 1, "env_steps": 1})
    setup = build_setup(ChangedWorld(), "take_key", config, [code(WALK)], [], {}, [], {})
    lane = setup.lane(0)
    lane.env.reset(0)
    return Branching(setup, config.branches, 0.99), lane, setup.space


def test_of_the_decisions_that_have_an_alternative_each_is_as_likely_to_be_kept() -> None:
    """Also where those before them have none."""
    branching, lane, space = _before_the_first_decision()
    open_, closed = np.zeros(space.total, np.bool_), np.zeros(space.total, np.bool_)
    open_[:2] = closed[0] = True
    kept: Counter[int] = Counter()
    for repeat in range(2000):
        branching.begin(repeat)
        for row in range(30):
            lane.mask = closed if row < 20 else open_
            branching.consider(lane, np.zeros(space.total, np.float32), (0,), row)
        kept.update(point.row for point in branching.points)
    assert set(kept) == set(range(20, 30))
    assert all(0.36 < kept[row] / 2000 < 0.44 for row in kept), kept


def test_a_network_that_has_diverged_is_not_asked_for_ever_for_another_action() -> None:
    branching, lane, space = _before_the_first_decision()
    lane.mask = np.ones(space.total, np.bool_)
    logits = np.full(space.total, np.nan, np.float32)
    branching.begin(0)
    branching.consider(lane, logits, draw(logits, lane.mask, space, np.random.default_rng(0)), 0)
    assert branching.points == []


def test_the_probability_of_an_action_is_how_often_it_is_drawn() -> None:
    """Two heads, the second inactive under an option."""
    space = ActionSpace((3, 2), 0, np.ones(3, np.bool_))
    logits = np.linspace(-1, 1, space.total, dtype=np.float32)
    mask = space.static_mask()
    mask[:5] = [True, False, True, True, True]
    random = np.random.default_rng(0)
    drawn = Counter(draw(logits, mask, space, random) for _ in range(20_000))
    assert len(drawn) == 6
    for action, count in drawn.items():
        assert probability(logits, mask, space, action) == pytest.approx(count / 20_000, abs=0.015)
    assert sum(probability(logits, mask, space, action) for action in drawn) == pytest.approx(1)


def test_a_world_that_cannot_be_restored_has_no_branches() -> None:
    world = ChangedWorld()
    world.restorable = False
    with pytest.raises(ConfigError, match="Branches need a world that can be restored"):
        _train({"decisions": 4}, world)


def test_crafter_can_be_given_other_chances() -> None:
    env = make_world().make("survive_night")
    env.reset(5)
    state = env.save()

    def future(seed: int | None) -> bytes:
        env.restore(state)
        if seed is not None:
            assert offers(env, Reseeds)
            env.reseed(seed)
        for _ in range(60):
            env.step((0,))
        return env.save()

    assert future(None) == future(None)
    assert future(1) == future(1) != future(2)

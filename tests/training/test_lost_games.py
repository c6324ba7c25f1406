"""A game may be lost at any env step: its world breaks the episode off, and wants a reset before the next step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rlgpt.training.host.api import Action, PlanItem, source_hash
from rlgpt.training.options.probe import STATES, walk_views
from rlgpt.training.ppo.run import train
from rlgpt.training.rollouts.dry_views import DRY_EPISODES, dry_views
from rlgpt.training.rollouts.evaluation import REPEATS, FollowPlan, evaluate
from rlgpt.training.rollouts.trials import PrefixItem, try_item
from rlgpt.training.seeds import episode_seed
from rlgpt.training.service.__main__ import answer
from rlgpt.training.session.creation import UNAVAILABLE
from rlgpt.training.worlds import conformance
from rlgpt.training.worlds.protocol import NativeAction, StepResult, WorldFailed
from tests.options.toys import BACK, GET_KEY, OPEN_DOOR, WALK, code, configuration, host_of
from tests.worlds.corridor import CorridorEnv, CorridorWorld

SEEDS = [episode_seed(1, "trial", index) for index in range(10)]
SOURCES = {source_hash(source): source for source in (GET_KEY, OPEN_DOOR)}


class LosingEnv(CorridorEnv):
    lost = False

    def reset(self, seed: int) -> None:
        super().reset(seed)
        self.lost = False

    def step(self, command: NativeAction) -> StepResult:
        world: LosingWorld = self._world  # type: ignore[assignment]
        if self.lost:
            raise WorldFailed("the episode was lost; reset starts another one")
        world.taken += 1
        if world.taken in world.lost_at:
            self.lost = True
            return StepResult(0.0, False, True)
        return super().step(command)


class LosingWorld(CorridorWorld):
    """Loses the game in these of all its env steps, counted from 1."""

    def __init__(self, lost_at: Sequence[int]) -> None:
        super().__init__()
        self.lost_at, self.taken = frozenset(lost_at), 0

    def make(self, task: str, *, features: Sequence[str] | None = None, pixels: bool = False) -> LosingEnv:
        return LosingEnv(self, self.tasks[task], features or self.default_features)


@pytest.mark.parametrize("lost_at", [*range(1, 41), range(1, 6), range(1, 200, 3)])
def test_dry_views_and_walks_go_on(lost_at: Any) -> None:
    steps = (lost_at,) if isinstance(lost_at, int) else tuple(lost_at)
    sequences = dry_views(LosingWorld(steps), "take_coin", 0)
    assert len(sequences) == DRY_EPISODES and all(sequences)
    assert len(walk_views(LosingWorld(steps), "take_coin", 0)) == STATES


@pytest.mark.parametrize("lost_at", range(1, 41))
def test_a_lost_game_is_no_failure_of_the_code_on_trial(lost_at: int) -> None:
    world = LosingWorld([lost_at])
    result = try_item(
        world, "take_coin", prefix=(PrefixItem("view.key", Action(source_hash(GET_KEY))),),
        action=Action(source_hash(OPEN_DOOR)), done_when="view.opened", sources=SOURCES, host=host_of(world),
        seeds=SEEDS, max_steps=20,
    )  # fmt: skip
    assert (result.outcome, result.episodes, result.successes) == ("accepted", 5, 5)
    cut = [trial for trial in result.trials if trial["end"] == "truncated"]
    assert len(cut) == (lost_at <= world.taken) and result.prefixes == 5 + len(cut)


def test_trials_that_are_all_broken_off_say_so_and_blame_nobody() -> None:
    world = LosingWorld(range(1, 1000))
    result = try_item(
        world, "take_coin", prefix=(), action=Action(source_hash(GET_KEY)), done_when="view.key", sources=SOURCES,
        host=host_of(world), seeds=SEEDS, max_steps=20,
    )  # fmt: skip
    assert result.outcome == "unreached" and "the world broke 10 of them off" in result.error
    assert result.evidence == {"good": None, "bad": None, "lost": []}


@pytest.mark.parametrize("lost_at", range(1, 41))
def test_an_evaluation_plays_the_seed_of_a_lost_game_again(lost_at: int) -> None:
    def played(world: CorridorWorld) -> Any:
        plan = [PlanItem("view.key", Action(source_hash(GET_KEY)))]
        return evaluate(world, "take_key", FollowPlan(world, plan, SOURCES), host_of(world), SEEDS, variant="plan")

    assert played(LosingWorld([lost_at])) == played(CorridorWorld())


def test_an_episode_that_is_always_broken_off_counts_as_it_is() -> None:
    world = LosingWorld(range(1, 1000))
    plan = FollowPlan(world, [PlanItem("view.key", Action(source_hash(GET_KEY)))], SOURCES)
    result = evaluate(world, "take_key", plan, host_of(world), SEEDS[:2], variant="plan", first=7)
    assert [(e.index, e.end, e.success) for e in result.episodes] == [(7, "truncated", False), (8, "truncated", False)]
    assert world.taken == 2 * (1 + REPEATS)


@pytest.mark.parametrize("lost_at", [(1,), (5,), (100, 101, 102), range(1, 200, 7)])
def test_training_goes_on(lost_at: Sequence[int]) -> None:
    world = LosingWorld(lost_at)
    config = configuration(options=["walk", "back"])
    result = train(world, "take_coin", config, [code(WALK), code(BACK)], host_of(world), seed=1, device="cpu")
    assert result.state == "finished" and result.env_steps >= 256


def test_the_conformance_check_tells_of_it_and_keeps_its_other_findings() -> None:
    findings = {finding.what: finding for finding in conformance.check(LosingWorld([30]))}
    assert not any("reset starts another" in finding.why for finding in findings.values())
    always = {finding.what: finding for finding in conformance.check(LosingWorld(range(1, 10**5)))}
    assert not always["time limits terminate"].ok
    assert "broken off" in always["time limits terminate"].why


def test_try_tells_of_a_lost_game(tmp_path: Path) -> None:
    file = tmp_path / "walk.py"
    file.write_text(WALK)
    asked = {"ask": "try_action", "file": str(file), "task": "take_coin", "mode": "trusted"}
    told = answer(json.dumps(asked | {"world": f"{__name__}:losing_third"}))["ok"]
    assert (told["outcome"], told["env_steps"]) == ("episode", 2)
    assert "broke the episode off" in told["message"]
    told = answer(json.dumps(asked | {"world": f"{__name__}:losing_all"}))
    assert told == {"error": "no game can be started", "exit_code": UNAVAILABLE}


def losing_third() -> CorridorWorld:
    """Loses a game in the second step after the dry views, which take 36."""
    return LosingWorld([DRY_EPISODES * 12 + 2])


def losing_all() -> CorridorWorld:
    class None_(LosingWorld):
        def make(self, task: str, *, features: Sequence[str] | None = None, pixels: bool = False) -> LosingEnv:
            raise WorldFailed("no game can be started")

    return None_([])

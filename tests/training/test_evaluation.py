"""Episodes of a fixed policy: what they depend on and what they add up to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rlgpt.store import tables
from rlgpt.store.intervals import wilson
from rlgpt.training.host.api import Action, PlanItem, source_hash
from rlgpt.training.options.dead_loops import DeadLoopWatch
from rlgpt.training.options.film import MOST, Camera, Film
from rlgpt.training.options.lane import Lane
from rlgpt.training.options.observer import Observer, Signal
from rlgpt.training.options.rewards import RewardStream
from rlgpt.training.options.slots import noop_of
from rlgpt.training.ppo.run import train
from rlgpt.training.ppo.trained import TrainedPolicy, load_policy
from rlgpt.training.rollouts.evaluation import EvaluationResult, FollowPlan, evaluate
from rlgpt.training.seeds import episode_seed
from tests.options.toys import FOREVER, GET_KEY, OPEN_DOOR, USE, WALK, ChangedWorld, code, configuration, host_of

WORLD = ChangedWorld()
SEEDS = [episode_seed(1, "dev", index) for index in range(12)]
SOURCES = {source_hash(source): source for source in (GET_KEY, OPEN_DOOR, FOREVER)}
PREDICATES = {"key": "view.key", "door": "view.opened"}


def _item(done_when: str, source: str) -> PlanItem:
    return PlanItem(done_when, Action(source_hash(source)))


PLAN = [_item("view.key", GET_KEY), _item("view.opened", OPEN_DOOR)]


@pytest.fixture(scope="module")
def policy() -> TrainedPolicy:
    config = configuration(options=["walk", "use_it"], env_steps=512)
    result = train(WORLD, "take_coin", config, [code(WALK), code(USE)], host_of(WORLD), seed=1, device="cpu")
    return load_policy(result.checkpoint, WORLD)


def _evaluate(policy: Any, **more: Any) -> EvaluationResult:
    return evaluate(WORLD, "take_coin", policy, host_of(WORLD), SEEDS, **more)


def test_the_result_does_not_depend_on_the_number_of_lanes(policy: TrainedPolicy) -> None:
    results = [_evaluate(policy, n_envs=n, predicates=PREDICATES, record_actions=True) for n in (1, 3, 12)]
    assert results[0] == results[1] == results[2]
    assert [e.seed for e in results[0].episodes] == SEEDS


def test_two_halves_are_the_whole(policy: TrainedPolicy) -> None:
    whole = _evaluate(policy)
    halves = [
        evaluate(WORLD, "take_coin", policy, host_of(WORLD), SEEDS[:6]),
        evaluate(WORLD, "take_coin", policy, host_of(WORLD), SEEDS[6:], first=6),
    ]
    assert whole.episodes == halves[0].episodes + halves[1].episodes


def test_variants_mask_what_they_say(policy: TrainedPolicy) -> None:
    usage = {v: set(_evaluate(policy, variant=v).option_usage) for v in ("full", "options_off", "primitives_off")}
    assert usage == {
        "full": {"primitive", "walk", "use_it"}, "options_off": {"primitive"}, "primitives_off": {"walk", "use_it"}
    }  # fmt: skip


def test_greedy_is_deterministic_and_random_ignores_the_policy(policy: TrainedPolicy) -> None:
    other = TrainedPolicy(policy.space, policy.observation, policy.terms, policy._actor)
    assert _evaluate(policy, variant="greedy") == _evaluate(other, variant="greedy")
    noise = np.random.default_rng(0).normal(size=policy._actor._layers[-1][1].shape).astype(np.float32)
    weight, bias = policy._actor._layers[-1]
    before = _evaluate(policy, variant="random")
    policy._actor._layers[-1] = (weight, bias + 5 * noise)
    assert _evaluate(policy, variant="random") == before
    assert _evaluate(policy, variant="greedy") != _evaluate(policy)
    assert _evaluate(policy, greedy=True).episodes == _evaluate(policy, variant="greedy").episodes
    policy._actor._layers[-1] = (weight, bias)


def test_follow_plan_alone_executes_the_plan() -> None:
    plan = FollowPlan(WORLD, PLAN, SOURCES)
    result = evaluate(WORLD, "open_door", plan, host_of(WORLD), SEEDS, variant="plan", predicates=PREDICATES)
    assert result.successes == 12 and result.funnel == {"key": 12, "door": 12}
    assert all(set(e.usage) == {"item_0", "item_1"} for e in result.episodes)


def test_a_sub_action_that_is_done_is_left_at_once() -> None:
    """Its code would go on for ever."""
    plan = [_item("view.position >= 1", FOREVER), *PLAN]
    result = evaluate(WORLD, "open_door", FollowPlan(WORLD, plan, SOURCES), host_of(WORLD), SEEDS, variant="plan")
    assert result.successes == 12
    assert result.end_reasons["item_0"] == {"return": 12}


def test_recorded_commands_replay_the_episode(policy: TrainedPolicy) -> None:
    result = _evaluate(policy, record_actions=True)
    for episode in result.episodes:
        env = WORLD.make("take_coin")
        env.reset(episode.seed)
        assert episode.commands is not None
        for (command,) in np.frombuffer(episode.commands, "<i2").reshape(-1, 1):
            env.step((int(command),))
        assert tuple(sorted(env.milestones())) == episode.milestones
        assert env.steps == episode.env_steps


def test_the_sums_are_those_of_the_episodes(policy: TrainedPolicy) -> None:
    result = _evaluate(policy, predicates=PREDICATES)
    episodes = result.episodes
    assert result.successes == sum(e.success for e in episodes)
    assert result.env_steps == sum(e.env_steps for e in episodes)
    assert (result.ci_low, result.ci_high) == wilson(result.successes, 12)
    assert result.funnel["key"] == sum("take_key" in e.milestones for e in episodes)
    assert result.return_mean == pytest.approx(sum(e.return_ for e in episodes) / 12)
    assert result.rewards["task"] == result.successes


def test_the_evaluation_row_finds_its_columns(policy: TrainedPolicy) -> None:
    given = {"sub_task", "iteration", "revision", "number", "split", "first", "run", "policy"}
    given |= {"score", "score_low", "score_high", "failures"}  # the world's, and what the step adds
    columns = set(tables.Evaluation.model_fields) - set(tables.Row.model_fields) - given
    assert columns - {"episodes"} <= set(vars(_evaluate(policy)))


def test_the_horizon_may_be_shortened(policy: TrainedPolicy) -> None:
    assert max(e.env_steps for e in _evaluate(policy, horizon=7).episodes) <= 7


def test_survival_is_success_at_the_horizon() -> None:
    survivor = FollowPlan(WORLD, [_item("False", FOREVER)], SOURCES)
    result = evaluate(WORLD, "survive", survivor, host_of(WORLD), SEEDS, variant="plan")
    assert result.successes == 12 and {e.env_steps for e in result.episodes} == {10}


def test_survival_of_a_shorter_episode_is_none() -> None:
    """A configuration may train with a shorter horizon than the task's."""
    survivor = FollowPlan(WORLD, [_item("False", FOREVER)], SOURCES)
    result = evaluate(WORLD, "survive", survivor, host_of(WORLD), SEEDS, variant="plan", horizon=5)
    assert result.successes == 0 and {(e.end, e.env_steps) for e in result.episodes} == {("time", 5)}


def test_a_policy_whose_every_action_was_taken_away_waits() -> None:
    """In a world with several heads too, where the others would play on."""
    world = ChangedWorld(two_heads=True)
    config = configuration(primitives=["left", "right"], env_steps=0)
    trained = train(world, "take_coin", config, [], host_of(world), seed=1, device="cpu")
    policy = load_policy(trained.checkpoint, world)
    result = evaluate(
        world, "take_coin", policy, host_of(world), SEEDS, variant="primitives_off", record_actions=True
    )
    neutral = np.array(world.native_action([noop_of(world), 0]), "<i2").tobytes()
    for episode in result.episodes:
        assert episode.commands == neutral * episode.env_steps


def test_a_stop_keeps_only_whole_episodes(policy: TrainedPolicy) -> None:
    class Stop(Observer):
        polls = 0

        def poll(self) -> Signal:
            self.polls += 1
            return "stop" if self.polls > 70 else "go"

    result = _evaluate(policy, observer=Stop(), n_envs=1)
    whole = _evaluate(policy, n_envs=1)
    assert not result.complete and 0 < len(result.episodes) < 12
    assert result.episodes == whole.episodes[: len(result.episodes)]


class Filming(Observer):
    films = True


def test_episodes_are_filmed_only_where_that_is_asked_for(policy: TrainedPolicy) -> None:
    assert _evaluate(policy).moments == []


@pytest.mark.parametrize("n_envs", [1, 5])
def test_of_each_way_to_end_the_first_episode_is_filmed_whole(policy: TrainedPolicy, n_envs: int) -> None:
    result = _evaluate(policy, observer=Filming(), n_envs=n_envs, predicates={"key": "view.key"})
    films = {index: [m for m in result.moments if m.episode == index] for index in {m.episode for m in result.moments}}
    won = [e.index for e in result.episodes if e.success]
    lost = [e.index for e in result.episodes if not e.success]
    assert min(won, default=None) in {*films, None} and min(lost, default=None) in {*films, None} and films
    for index, moments in films.items():
        episode = next(e for e in result.episodes if e.index == index)
        steps, every = [m.step for m in moments], list(range(episode.env_steps + 1))
        assert steps == every if len(every) <= MOST else (steps[0] == 0 and steps[-MOST // 2 :] == every[-MOST // 2 :])
        assert moments[0].primitive == moments[0].decision == "" and moments[0].total == 0
        assert moments[-1].total == pytest.approx(episode.return_)
        assert {m.primitive for m in moments[1:]} <= {"left", "right", "use", "wait"}
        assert all(len(m.frame) == 8 for m in moments)
    assert result.moments == _evaluate(policy, observer=Filming(), predicates={"key": "view.key"}).moments


def test_a_long_film_keeps_every_step_of_its_end(policy: TrainedPolicy) -> None:
    film = Film(Camera(WORLD, policy.space), 3)
    env = WORLD.make("take_coin")
    env.reset(1)
    film.start(env)
    lane = Lane(0, env, RewardStream(policy.terms, WORLD), DeadLoopWatch(1), 1, action=(0,))
    for _ in range(10 * MOST):
        env.steps += 1
        film.step(lane, (0,))
    steps = [m.step for m in film.end(2.5)]
    assert len(steps) <= MOST and steps[0] == 0 and steps == sorted(set(steps))
    assert steps[-MOST // 2 :] == list(range(10 * MOST - MOST // 2 + 1, 10 * MOST + 1))
    assert film.moments[-1].total == 2.5


def test_what_an_option_took_and_whether_it_did_its_work_is_counted(policy: TrainedPolicy) -> None:
    result = _evaluate(policy, predicates={"walk": "view.position >= 2"})
    assert sum(result.option_steps.values()) == sum(e.env_steps for e in result.episodes)
    assert set(result.option_steps) == set(result.option_usage)
    assert set(result.option_done) <= {"walk"} and result.option_done.get("walk", 0) <= result.option_usage["walk"]
    for episode in result.episodes:
        assert result.reached(episode) in ([], ["walk"])
        assert episode.last in ("", "walk", "use_it")


def test_too_many_predicates_are_refused(policy: TrainedPolicy) -> None:
    with pytest.raises(ValueError, match="65 predicates"):
        _evaluate(policy, predicates={str(i): f"view.position > {i}" for i in range(65)})

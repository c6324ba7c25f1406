"""Each reward term on the corridor, where every distance is known."""

from __future__ import annotations

import re
from random import Random

import pytest

from rlgpt.training.options.rewards import RewardError, RewardStream
from tests.options.toys import ChangedWorld, term

LEFT, RIGHT, USE = (0,), (1,), (2,)
SEED = next(seed for seed in range(50) if Random(seed).choice((1, 2, 3)) == 3)
"""The key lies at 3."""


def _play(terms: list[object], commands: list[tuple[int, ...]], task: str = "take_coin") -> list[float]:
    world = ChangedWorld()
    env = world.make(task)
    env.reset(SEED)
    stream = RewardStream(terms, world)  # type: ignore[arg-type]
    stream.start(env)
    got = []
    for command in commands:
        result = env.step(command)
        got.append(stream.step(env, result.reward, result.terminated and env.succeeded(), True))
    return got


def test_distance_pays_only_for_coming_nearer_than_ever() -> None:
    got = _play([term("distance", argument="key")], [RIGHT, LEFT, RIGHT, RIGHT, RIGHT, RIGHT])
    assert got == [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]


def test_distance_starts_anew_when_something_was_obtained() -> None:
    """After the key is taken the coin's nearest distance is forgotten and paid again from where one stands."""
    got = _play([term("distance", argument="coin")], [RIGHT, RIGHT, RIGHT, LEFT, RIGHT, USE, RIGHT])
    assert got == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0]


def test_an_unseen_target_changes_nothing() -> None:
    got = _play([term("distance", argument="key")], [RIGHT, RIGHT, RIGHT, USE, LEFT, RIGHT])
    assert got == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("far", [float("inf"), float("nan")])
def test_a_target_that_is_infinitely_far_is_unseen(far: float) -> None:
    """The nearest distance is observed: one number that is none would be every weight of the network."""
    env = ChangedWorld().make("take_coin")
    env.reset(SEED)
    stream = RewardStream([term("distance", argument="key")], ChangedWorld())
    seen, env.distance = env.distance, lambda name: far  # type: ignore[method-assign]
    stream.start(env)
    assert (stream.observe(), stream.step(env, 0.0, False, False), stream.observe()) == ([1.0], 0.0, [1.0])
    env.distance = seen  # type: ignore[method-assign]
    stream.step(env, 0.0, False, False)
    assert 0.0 < stream.observe()[0] < 1.0


def test_the_nearest_distance_is_observed() -> None:
    world = ChangedWorld()
    env = world.make("take_coin")
    env.reset(SEED)
    stream = RewardStream([term("distance", argument="key"), term("milestone", argument="take_key")], world)
    stream.start(env)
    assert [feature.name for feature in stream.features()] == ["nearest_key", "reached_take_key"]
    assert stream.observe() == [3 / 11, 0.0]
    for command in (RIGHT, RIGHT, RIGHT, USE):
        stream.step(env, env.step(command).reward, False, True)
    assert stream.observe() == [1.0, 1.0]


def test_a_milestone_pays_once() -> None:
    got = _play([term("milestone", 2.0, "take_key")], [RIGHT, RIGHT, RIGHT, USE, USE, LEFT])
    assert got == [0.0, 0.0, 0.0, 2.0, 0.0, 0.0]


def test_task_world_and_step_add_up_by_their_weights() -> None:
    terms = [term("task", 10.0), term("world", 2.0), term("step", -0.5)]
    assert _play(terms, [RIGHT, RIGHT, RIGHT, USE], "take_key") == [-0.5, -0.5, -0.5, 10 + 2 - 0.5]


def test_totals_are_kept_per_term() -> None:
    world = ChangedWorld()
    env = world.make("take_key")
    env.reset(SEED)
    stream = RewardStream([term("world"), term("step", -1.0)], world)
    stream.start(env)
    for command in (RIGHT, RIGHT, RIGHT, USE):
        stream.step(env, env.step(command).reward, False, True)
    assert dict(zip(stream.names, stream.totals, strict=True)) == {"world": 1.0, "step": -4.0}


@pytest.mark.parametrize("reward", [float("nan"), float("-inf"), 1e300, -1e16])
def test_what_no_network_can_learn_from_is_one_sentence(reward: float) -> None:
    world = ChangedWorld()
    env = world.make("take_key")
    stream = RewardStream([term("step"), term("world")], world)
    stream.start(env)
    with pytest.raises(RewardError, match=re.escape(f"The reward term world gave {reward + 1} at step 0")):
        stream.step(env, reward, False, True)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (term("milestone", argument="fly"), "no milestone 'fly'"),
        (term("distance", argument="moon"), "no distance to 'moon'"),
    ],
)
def test_unknown_arguments_are_refused(bad: object, sentence: str) -> None:
    world = ChangedWorld()
    with pytest.raises(RewardError, match=sentence):
        RewardStream([bad], world)  # type: ignore[list-item]


def test_one_generated_term_at_most() -> None:
    world = ChangedWorld()
    with pytest.raises(RewardError, match="at most one generated"):
        RewardStream([term("generated", argument="a"), term("generated", argument="b")], world)

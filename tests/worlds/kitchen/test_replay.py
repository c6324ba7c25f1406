"""Recorded commands of an episode give the same success in a plain MuJoCo simulation of stock's own model file."""

import pytest

from tests.worlds.kitchen.test_world import MISSING

pytest.importorskip("mujoco", reason=MISSING)
pytest.importorskip("gymnasium_robotics", reason=MISSING)

from rlgpt.training.worlds import registry
from tests.worlds.kitchen.play import plan_of, play
from tests.worlds.kitchen.replay import replay


@pytest.mark.parametrize("task", ["slide_cabinet", "microwave", "light_switch_blind2", "top_burner"])
def test_recorded_commands_give_the_same_success(task):
    env = registry.get("kitchen").make(task)
    outcomes = set()
    for seed in range(700_000, 700_003):
        played = play(env, seed, plan_of(task, 2))
        assert replay(env, seed, played.commands) == played.success
        outcomes.add(played.success)
    assert True in outcomes


def test_of_a_chain_each_object_must_have_been_at_its_goal():
    env = registry.get("kitchen").make("kitchen_complete")
    outcomes = set()
    for seed in (700_002, 700_003):
        played = play(env, seed, plan_of("kitchen_complete"))
        assert replay(env, seed, played.commands) == played.success
        outcomes.add(played.success)
    assert outcomes == {True, False}


def test_an_episode_cut_short_has_no_success():
    env = registry.get("kitchen").make("slide_cabinet")
    played = play(env, 700_000, plan_of("slide_cabinet"))
    assert played.success
    assert not replay(env, 700_000, played.commands[:-6])

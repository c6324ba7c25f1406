"""The toy world that other tests use keeps the protocol's promises."""

import importlib

import pytest

from rlgpt.training.worlds import registry
from rlgpt.training.worlds.protocol import Env, UnknownTask, World

WORLDS = ("tests.worlds.corridor:make_world", "tests.worlds.corridor:make_two_heads")


@pytest.mark.parametrize("name", WORLDS)
def test_it_is_a_world(name):
    world = registry.get(name)
    env = world.make("take_coin")
    assert isinstance(world, World) and isinstance(env, Env)
    assert env.observe().shape == (sum(world.features[f].size for f in world.default_features),)
    assert env.action_masks().shape == (sum(world.action_nvec),)
    host = importlib.import_module(world.host_module)
    assert world.native_action_size == host.NATIVE_ACTION_SIZE
    assert host.decoder().view(env.view(True)).position == 0
    with pytest.raises(UnknownTask):
        world.make("fly")


@pytest.mark.parametrize(("name", "use"), zip(WORLDS, ((2,), (0, 1)), strict=True))
def test_the_coin_is_taken_only_through_the_door(name, use):
    env = registry.get(name).make("take_coin")
    right = (1,) if len(use) == 1 else (2, 0)
    for seed in range(6):
        env.reset(seed)
        for _ in range(10):
            env.step(right)
        assert env.distance("coin") > 0 and env.milestones() == frozenset()
        env.reset(seed)
        done, reward = False, 0.0
        while not done:
            cell = env.view(True)[4]
            result = env.step(use if cell and not done else right)
            reward, done = reward + result.reward, result.terminated
        assert env.succeeded() and reward == 3.0


def test_an_unknown_world_is_one_sentence():
    with pytest.raises(registry.UnknownWorld, match=r"no world called 'nowhere'.*crafter"):
        registry.get("nowhere")
    with pytest.raises(registry.UnknownWorld, match="cannot be loaded"):
        registry.get("tests.worlds.corridor:nothing")


def test_restore_repeats_the_future():
    env = registry.get(WORLDS[0]).make("score")
    env.reset(4)
    for action in (1, 1, 2):
        env.step((action,))
    state = env.save()
    first = [(*env.step((a,)), env.view(False)) for a in (1, 1, 2, 0)]
    env.restore(state)
    assert first == [(*env.step((a,)), env.view(False)) for a in (1, 1, 2, 0)]

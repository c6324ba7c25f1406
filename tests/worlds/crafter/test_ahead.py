"""Worlds made ahead are the worlds that are made when asked for; more than a few are not kept."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from opensimplex import OpenSimplex

from rlgpt.training.worlds.crafter import ahead, noise, terrain
from rlgpt.training.worlds.crafter.ahead import NewWorld, WorldsAhead, new_world
from rlgpt.training.worlds.crafter.layout import AREA
from rlgpt.training.worlds.crafter.world import make_world
from rlgpt.training.worlds.optional_parts import MakesAhead, expect, offers


def same(one: NewWorld, other: NewWorld) -> bool:
    return all(np.array_equal(left, right) for left, right in zip(one, other, strict=True))


def test_an_expected_world_is_the_one_that_is_made_when_asked_for() -> None:
    worlds = WorldsAhead()
    worlds.expect(range(20))
    for seed in (19, 0, 7, 7, 25):  # waiting in line, first, in the middle, no longer there, never expected
        assert same(worlds.take(seed), new_world(seed))


def test_a_world_is_made_twice_rather_than_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread may be starved: its world is the one in hand, and the episode begins all the same."""
    on_the_thread, go_on = threading.Event(), threading.Event()

    def slow(seed: int) -> NewWorld:
        if threading.current_thread() is not threading.main_thread():
            on_the_thread.set()
            assert go_on.wait(60)
        return new_world(seed)

    monkeypatch.setattr(ahead, "COMPILED", True)
    monkeypatch.setattr(ahead, "new_world", slow)
    worlds = WorldsAhead()
    worlds.expect([3])
    assert on_the_thread.wait(60)
    try:
        assert same(worlds.take(3), new_world(3))
    finally:
        go_on.set()


def test_no_more_worlds_are_kept_than_episodes_can_begin_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "MAX_WORLDS", 4)
    worlds = WorldsAhead()
    worlds.expect(range(10))
    assert list(worlds._worlds) == ([6, 7, 8, 9] if ahead.COMPILED else [])


def test_episodes_are_the_same_whether_their_world_was_expected_or_not() -> None:
    told, untold = make_world(), make_world()
    assert offers(told, MakesAhead)
    here, there = told.make("collect_wood"), untold.make("collect_wood")
    for seed in range(5):
        expect(told, [seed])
        here.reset(seed)
        there.reset(seed)
        for action in range(1, 17):
            assert here.step((action,)) == there.step((action,))
        assert here.save() == there.save()


@pytest.mark.parametrize("seed", [0, 1, 5, 2**31 - 2])
def test_streams_are_numpys_and_noise_is_opensimplexs_bit_for_bit(seed: int) -> None:
    state = np.zeros(700, np.int64)
    terrain.seed_stream(state, seed)
    stream = np.random.RandomState(seed).get_state(legacy=False)["state"]
    assert state[:624].tolist() == stream["key"].tolist() and state[624] == stream["pos"]
    theirs = OpenSimplex(seed)
    mine = noise.make_layers(seed)
    points = {
        noise.START: lambda x, y: (x / 3, y / 3, 8),
        noise.WATER_LEVEL: lambda x, y: (x / 15, y / 15, 3),
        noise.WATER_DETAIL: lambda x, y: (x / 5, y / 5, 3),
        noise.MOUNTAIN: lambda x, y: (x / 15, y / 15, 0),
        noise.MOUNTAIN_DETAIL: lambda x, y: (x / 5, y / 5, 0),
        noise.CAVE: lambda x, y: (x / 7, y / 7, 6),
        noise.TUNNEL_X: lambda x, y: (2 * x / 3, y / 5 / 3, 7),
        noise.TUNNEL_Y: lambda x, y: (x / 5 / 3, 2 * y / 3, 7),
        noise.COAL_SEAM: lambda x, y: (x / 8, y / 8, 1),
        noise.IRON_SEAM: lambda x, y: (x / 6, y / 6, 2),
        noise.LAVA_LAKE: lambda x, y: (x / 5, y / 5, 6),
        noise.BEACH: lambda x, y: (x / 9, y / 9, 4),
        noise.FOREST: lambda x, y: (x / 7, y / 7, 5),
    }
    assert sorted(points) == list(range(noise.LAYERS))
    for layer, point in points.items():
        told = [[theirs.noise3(*point(x, y)) for y in range(AREA)] for x in range(AREA)]
        assert mine[:, :, layer].tolist() == told

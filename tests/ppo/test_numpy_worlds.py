"""A world may count and measure with numpy's numbers: its training is saved and goes on as with Python's."""

from __future__ import annotations

import numpy as np
import pytest

from rlgpt.agents.contracts import RewardTerm
from rlgpt.training.options.rewards import RewardStream
from rlgpt.training.ppo.checkpoints import pack, unpack
from tests.worlds.corridor import CorridorEnv, CorridorWorld

TERMS = (RewardTerm(term="world", weight=0.1), RewardTerm(term="distance", argument="key", weight=0.5))


def test_rewards_in_single_precision_add_up_as_python_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    world = CorridorWorld()
    env = world.make("take_key")
    env.reset(1)
    monkeypatch.setattr(CorridorEnv, "distance", lambda env, target: np.float32(3.0))
    stream = RewardStream(TERMS, world)
    stream.start(env)
    assert type(stream.step(env, np.float32(1.0), False, False)) is float
    assert unpack(pack({"stream": stream.save()}, {})).fields["stream"] == stream.save()


def test_whole_numbers_of_numpy_are_saved() -> None:
    fields = unpack(pack({"watch": [[np.int64(7)], np.int32(2)]}, {})).fields
    assert fields["watch"] == [[7], 2]
    with pytest.raises(TypeError, match="set is no plain data"):
        pack({"watch": {1}}, {})

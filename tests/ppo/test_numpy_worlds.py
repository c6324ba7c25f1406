"""A world may count and measure with numpy's numbers: its training is saved and goes on as with Python's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rlgpt.agents.contracts import RewardTerm
from rlgpt.training.host.api import Action, source_hash
from rlgpt.training.options.rewards import RewardStream
from rlgpt.training.ppo.checkpoints import pack, unpack
from rlgpt.training.rollouts.partial_trial import PartialTrial
from rlgpt.training.rollouts.trials import try_item
from rlgpt.training.worlds.optional_parts import Ending
from tests.options.toys import BACK, ChangedWorld, host_of
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


def test_vitals_of_numpy_are_kept_with_a_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vitals = {"health": np.float32(0.5), "food": np.int64(3)}
    monkeypatch.setattr(CorridorEnv, "ending", lambda env: Ending("", vitals), raising=False)
    world = ChangedWorld()
    result = try_item(
        world, "take_coin", prefix=(), action=Action(source_hash(BACK)), done_when="view.key", seeds=range(5),
        sources={source_hash(BACK): BACK}, host=host_of(world), max_steps=20, partial=PartialTrial(tmp_path, "one"),
    )  # fmt: skip
    lost = result.evidence["lost"][0]["vitals"]
    assert lost == {"health": 0.5, "food": 3} and [type(each) for each in lost.values()] == [float, int]

"""A policy on pixels: the same engine, SB3's convolutions, scalars as shares of 255."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rlgpt.training.options.observer import Observer
from rlgpt.training.ppo.run import TrainResult, train
from rlgpt.training.ppo.trained import load_policy
from rlgpt.training.rollouts.evaluation import evaluate
from rlgpt.training.seeds import episode_seed
from rlgpt.training.worlds import registry
from tests.options.toys import WALK, ChangedEnv, ChangedWorld, code, configuration, host_of, term
from tests.ppo.devices import DEVICES

SHAPE = (40, 48, 3)


class _PictureEnv(ChangedEnv):
    def pixels(self) -> NDArray[np.uint8]:
        picture = np.zeros(SHAPE, np.uint8)
        picture[:, 6 * self._position : 6 * self._position + 6] = 255
        return picture


class _PictureWorld(ChangedWorld):
    pixel_shape = SHAPE

    def make(self, task: str, *, features: Sequence[str] | None = None, pixels: bool = False) -> _PictureEnv:
        assert pixels and features is None
        return _PictureEnv(self, self.tasks[task], self.default_features)


class _Checkpoints(Observer):
    def __init__(self) -> None:
        self.blobs: list[bytes] = []

    def on_checkpoint(self, blob: bytes, update: int, env_steps: int, kind: str) -> None:
        self.blobs.append(blob)


@pytest.mark.parametrize("device", ["auto", *DEVICES])
def test_training_evaluation_and_resume_work_on_pixels(device: str) -> None:
    world = _PictureWorld()
    config = configuration(
        observation=["pixels"], options=["walk"], env_steps=384, hyper={"n_steps": 32, "n_epochs": 1}
    )

    def trained(**more: Any) -> TrainResult:
        return train(world, "take_key", config, [code(WALK)], host_of(world), seed=1, device=device, **more)

    kept = _Checkpoints()
    result = trained(observer=kept)
    assert len(kept.blobs) >= 2
    assert trained(resume=kept.blobs[0]).checkpoint == result.checkpoint
    policy = load_policy(result.checkpoint, world)
    assert policy.observation is not None
    assert policy.observation.dtype == np.uint8 and policy.observation.size == 40 * 48 * 3 + 1
    seeds = [episode_seed(1, "dev", i) for i in range(4)]
    one, all_ = (evaluate(world, "take_key", policy, host_of(world), seeds, n_envs=n) for n in (1, 4))
    assert one == all_
    assert ("pixels" if device == "auto" else f"{device} was asked for") in result.start.explanation


def test_the_picture_and_the_scalars_reach_the_policy() -> None:
    world = _PictureWorld()
    config = configuration(observation=["pixels"], env_steps=0)
    policy = load_policy(train(world, "take_key", config, [], host_of(world), seed=1).checkpoint, world)
    assert policy.observation is not None
    rows = np.zeros((3, policy.observation.size), np.uint8)
    rows[1, : 40 * 48] = 255
    rows[2, -1] = 255
    logits = policy._actor.logits(rows)
    assert not np.array_equal(logits[0], logits[1]) and not np.array_equal(logits[0], logits[2])


@pytest.mark.parametrize("device", DEVICES)
def test_training_that_is_cut_off_at_night_goes_on_alike(device: str) -> None:
    """Crafter's picture of a night has noise."""
    world = registry.get("crafter")
    config = configuration(
        observation=["pixels"], options=[], primitives=["noop"], horizon=1000, env_steps=240, reward=[term("task")],
        hyper={"n_envs": 1, "n_steps": 80, "batch_size": 80, "n_epochs": 1},
    )  # fmt: skip

    def trained(**more: Any) -> TrainResult:
        host = host_of(world)
        return train(world, "crafter_score", config, [], host, seed=1, device=device, checkpoint_every=1, **more)

    kept = _Checkpoints()
    result = trained(observer=kept)
    assert len(kept.blobs) >= 2
    for checkpoint in kept.blobs[:-1]:  # after 80 and 160 env steps; the night begins before the 200th
        assert trained(resume=checkpoint).checkpoint == result.checkpoint

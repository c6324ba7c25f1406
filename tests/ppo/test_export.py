from pathlib import Path

import pytest
import torch as th
from stable_baselines3 import PPO

from rlgpt.training.checkpoints import CheckpointError
from rlgpt.training.ppo.export import export_sb3
from rlgpt.training.ppo.train import train
from rlgpt.training.ppo.trained import load_learner
from tests.options.toys import WALK, ChangedWorld, code, configuration, host_of


def test_stable_baselines3_reads_what_is_exported(tmp_path: Path) -> None:
    world = ChangedWorld()
    config = configuration(options=["walk"])
    blob = train(world, "take_key", config, [code(WALK)], host_of(world), seed=1, device="cpu").checkpoint
    export_sb3(blob, world, tmp_path / "policy.zip")
    read, ours = PPO.load(tmp_path / "policy.zip", device="cpu"), load_learner(blob, world)
    rows = th.rand(5, ours.policy.layout.size).round()
    assert th.equal(read.policy.logits(rows), ours.policy.logits(rows))
    assert read.gamma == ours.gamma


def test_only_a_checkpoint_of_this_world_is_exported(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        export_sb3(b"nothing", ChangedWorld(), tmp_path / "policy.zip")

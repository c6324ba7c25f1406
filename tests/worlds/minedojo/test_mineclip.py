"""MineCLIP where it is present: a stand-in with the interface and the layout of the published package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from rlgpt.training.worlds.minedojo import host_side, mineclip
from tests.worlds.minedojo.conftest import Played

MODEL = """
import torch

class MineCLIP(torch.nn.Module):
    def __init__(self, arch, *, resolution, pool_type, image_feature_dim, mlp_adapter_spec, hidden_dim):
        super().__init__()
        assert tuple(resolution) == (160, 256)
        self.scale = torch.nn.Parameter(torch.tensor(1.0))
    def encode_text(self, prompts):
        return torch.eye(512)[:len(prompts)]
    def forward_image_features(self, videos):
        assert videos.shape[2:] == (3, 160, 256)
        return self.scale * torch.eye(512)[0].expand(*videos.shape[:2], 512) * videos.float().mean((2, 3, 4))[..., None]
    def forward_video_features(self, features):
        assert features.shape == (1, 16, 512)
        return features.mean(1)
    def forward_reward_head(self, video, text_tokens):
        logits = video @ text_tokens.T
        return logits, logits.T
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    inner = tmp_path / "mineclip" / "mineclip"
    inner.mkdir(parents=True)
    (inner.parent / "__init__.py").write_text("import minedojo_that_is_not_here")
    (inner / "__init__.py").write_text(MODEL)
    torch.save({"state_dict": {"model.scale": torch.tensor(0.5)}}, tmp_path / "attn.pth")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv(mineclip.WEIGHTS, str(tmp_path / "attn.pth"))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "mineclip"]:
        del sys.modules[name]


def test_the_reward_is_the_prompts_probability_over_chance_once_16_frames_are_there(package: None) -> None:
    clip = mineclip.Embedding("milk a cow", mineclip.negatives("milk a cow", [f"do {i}" for i in range(99)]))
    assert not clip.vector().any() and clip.reward() == 0.0
    for _ in range(15):
        clip.add(np.full((160, 256, 3), 6, np.uint8))
    assert clip.vector()[0] == 3.0 and clip.reward() == 0.0
    clip.add(np.full((160, 256, 3), 6, np.uint8))
    likely = np.exp(3.0) / (np.exp(3.0) + 31)
    assert clip.reward() == pytest.approx(likely - 1 / 32)
    clip.clear()
    assert clip.reward() == 0.0


def test_negative_prompts_are_31_others() -> None:
    chosen = mineclip.negatives("Milk a cow.", ["milk a cow", *(f"do {i:03}" for i in range(500)), "do 000", ""])
    assert len(set(chosen)) == len(chosen) == 31 and "milk a cow" not in chosen
    assert chosen[0] == "do 000" and chosen[-1] > "do 450"


def test_the_feature_and_its_reward_are_played(package: None, double_world: Callable[..., Played]) -> None:
    world = double_world(reward="paper").world
    assert "mineclip" in world.features
    env = world.make("harvest_milk_with_empty_bucket_and_cow", features=["compass", "mineclip"])
    env.reset(0)
    rewards = [env.step(host_side.NOOP).reward for _ in range(16)]
    assert env.observe().shape == (4 + mineclip.SIZE,) and env.observe()[4] > 0
    assert rewards[0] == -1.0 and -1.0 < rewards[-1] < 0.0
    env.close()

"""MineCLIP as a feature and a reward, offered only where its package and weights are.

Fan et al. 2022 (MineDojo, section 5); the released RL-GPT trainer gives max(P(prompt) - 1/32, 0) over the last 16
frames and 31 negative prompts. The package `mineclip` and the weights are installed by the user:
`RLGPT_MINECLIP_WEIGHTS` names the `attn.pth` file.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WEIGHTS = "RLGPT_MINECLIP_WEIGHTS"
FRAMES, SIZE = 16, 512
"""Frames of a video, and length of its embedding."""
NEGATIVES = 31
RESOLUTION = (160, 256)
"""Height and width of a frame in pixels."""
ARCHITECTURE = {
    "arch": "vit_base_p16_fz.v2.t2", "hidden_dim": 512, "image_feature_dim": 512, "mlp_adapter_spec": "v0-2.t0",
    "pool_type": "attn.d2.nh8.glusw", "resolution": list(RESOLUTION),
}  # fmt: skip
"""Constructor arguments of the published `attn` checkpoint."""


class MineClipMissing(RuntimeError):
    """The argument is the sentence for the operator."""


def available() -> str:
    """'' when the feature can be offered, else the sentence that says what is missing."""
    if importlib.util.find_spec("mineclip") is None:
        return "MineCLIP is not offered: its package is not installed (`pip install git+https://github.com/MineDojo/MineCLIP`)."
    weights = os.environ.get(WEIGHTS, "")
    if not weights or not Path(weights).is_file():
        return f"MineCLIP is not offered: {WEIGHTS} does not name the downloaded attn.pth."
    return ""


def negatives(prompt: str, prompts: Sequence[str]) -> tuple[str, ...]:
    """31 of the other prompts in alphabetical order, evenly spaced; fewer where there are fewer."""
    others = sorted({other for other in prompts if other and other.lower() != prompt.rstrip(".").lower()})
    return tuple(others[at * len(others) // NEGATIVES] for at in range(min(NEGATIVES, len(others))))


def _model_class() -> Any:
    """The class MineCLIP, imported without running the package's `__init__`, which also imports environments that need
    minedojo and gym in this process."""
    if "mineclip" not in sys.modules:
        spec = importlib.util.find_spec("mineclip")
        assert spec is not None
        sys.modules["mineclip"] = importlib.util.module_from_spec(spec)
    return importlib.import_module("mineclip.mineclip").MineCLIP


class Embedding:
    """The embedding of the newest frame, and a reward from the probability that the last 16 frames show the prompt
    rather than one of the negatives. Raises `MineClipMissing`."""

    def __init__(self, prompt: str, negatives: Sequence[str]) -> None:
        missing = available()
        if missing:
            raise MineClipMissing(missing)
        self._torch: Any = importlib.import_module("torch")
        device = "cuda" if self._torch.cuda.is_available() else "cpu"
        self._model: Any = _model_class()(**ARCHITECTURE).to(device).eval()
        weights = self._torch.load(os.environ[WEIGHTS], map_location=device, weights_only=True)
        self._model.load_state_dict({
            name.removeprefix("model."): value for name, value in weights.get("state_dict", weights).items()
        })  # fmt: skip
        self._device = device
        self._frames: deque[Any] = deque(maxlen=FRAMES)
        with self._torch.no_grad():
            self._texts: Any = self._model.encode_text([prompt, *negatives])

    def clear(self) -> None:
        self._frames.clear()

    def add(self, frame: NDArray[np.uint8]) -> None:
        """Append one (160, 256, 3) frame; a step costs one image encoding."""
        with self._torch.no_grad():
            image = self._torch.as_tensor(np.array(frame), device=self._device).permute(2, 0, 1)[None, None]
            self._frames.append(self._model.forward_image_features(image)[0, 0])

    def vector(self) -> NDArray[np.float32]:
        """(512,) embedding of the newest frame, zeros before the first."""
        if not self._frames:
            return np.zeros(SIZE, dtype=np.float32)
        embedding: NDArray[np.float32] = self._frames[-1].float().cpu().numpy()
        return embedding

    def reward(self) -> float:
        """max(P(prompt) - 1/n, 0) once 16 frames are there, else 0."""
        if len(self._frames) < FRAMES:
            return 0.0
        with self._torch.no_grad():
            video = self._model.forward_video_features(self._torch.stack(list(self._frames))[None])
            logits, _ = self._model.forward_reward_head(video, text_tokens=self._texts)
            share = self._torch.softmax(logits[0], dim=0)[0].item()
        return max(0.0, float(share) - 1.0 / len(self._texts))

"""What a frame of MineCLIP costs: `python -P benchmarks/mineclip_frames.py [--frames 200] [--random] [--device cpu]`.

Embedding one frame, and the reward of the last 16, with the published package, as the MineDojo world uses them. The
package and its weights are installed by the user (docs/minedojo.md). --random takes random weights, and bytes for
tokens, where the published weights and tokenizer cannot be downloaded: the same arithmetic, another result.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch as th

from rlgpt.training.worlds.minedojo import mineclip

PROMPTS = [f"do the thing with the number {index}" for index in range(mineclip.NEGATIVES + 1)]


class ByteTokenizer:
    """The interface that MineCLIP uses of transformers' tokenizer."""

    bos_token_id, eos_token_id = 49406, 49407

    def __call__(self, texts: list[str], add_special_tokens: bool) -> dict[str, list[list[int]]]:
        return {"input_ids": [list(text.encode()) for text in texts]}


def use_random_weights(folder: Path) -> None:
    th.manual_seed(0)
    model = mineclip._model_class()(**mineclip.ARCHITECTURE)
    importlib.import_module("mineclip.mineclip.tokenization").get_tokenizer = lambda *_: ByteTokenizer()
    th.save(model.state_dict(), folder / "attn.pth")
    os.environ[mineclip.WEIGHTS] = str(folder / "attn.pth")


def timed(call: Any, *arguments: Any) -> float:
    began = time.perf_counter()
    call(*arguments)
    if th.cuda.is_available():
        th.cuda.synchronize()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--random", action="store_true")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu"])
    arguments = parser.parse_args()
    if arguments.device == "cpu":
        th.cuda.is_available = lambda: False
    with tempfile.TemporaryDirectory() as folder:
        if arguments.random:
            use_random_weights(Path(folder))
        clip = mineclip.Embedding(PROMPTS[0], PROMPTS[1:])
    draw = np.random.default_rng(0)
    frames = draw.integers(0, 256, (mineclip.FRAMES, *mineclip.RESOLUTION, 3), np.uint8)
    adds, vectors, rewards = [], [], []
    for index in range(mineclip.FRAMES + arguments.frames):
        spent = timed(clip.add, frames[index % len(frames)]), timed(clip.vector), timed(clip.reward)
        if index >= mineclip.FRAMES:
            for kept, seconds in zip((adds, vectors, rewards), spent, strict=True):
                kept.append(1000 * seconds)
    where = th.cuda.get_device_name(0) if th.cuda.is_available() else "cpu"
    print(f"{where}, torch {th.__version__}, {arguments.frames} frames")
    print("the last vector begins with", " ".join(f"{value:.4f}" for value in clip.vector()[:6]))
    for name, found in (("a frame's embedding", adds), ("its vector", vectors), ("the reward", rewards)):
        low, *_, high = sorted(found)
        print(f"{name:20s} {statistics.median(found):8.2f} ms   [{low:.2f}, {high:.2f}]")


if __name__ == "__main__":
    main()

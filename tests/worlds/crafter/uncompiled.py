"""Scenes played against stock, and a digest of what was felt in them: the same compiled or not.

As a program it needs RLGPT_NUMBA=0: `python -m tests.worlds.crafter.uncompiled SCENES STEPS`."""

from __future__ import annotations

import hashlib
import sys

import numpy as np

from rlgpt.training.worlds.crafter import compiled, senses
from rlgpt.training.worlds.crafter.words import DO
from tests.worlds.crafter.scenes import late_game, stock_like
from tests.worlds.crafter.test_rules import fresh, random_actions, step_both


def played(scenes: int, steps: int) -> str:
    """Digest of features, senses and progress keys at the end of each scene."""
    digest = hashlib.blake2b(digest_size=8)
    features = np.zeros(senses.FEATURES_SIZE, np.float32)
    step_both(*fresh(3), random_actions(3, steps), "fresh")
    for seed in range(scenes):
        ours = late_game(seed)
        busy = np.where(np.random.RandomState(seed).rand(steps) < 0.4, DO, random_actions(seed, steps))
        step_both(stock_like(ours), ours, busy, seed)
        senses.describe(ours.state, ours.memory, ours.senses, features)
        key = senses.progress_key(ours.state, ours.senses)
        digest.update(features.tobytes() + ours.senses.tobytes() + ours.planes.tobytes() + str(key).encode())
    return digest.hexdigest()


if __name__ == "__main__":
    assert not compiled.COMPILED
    print(played(int(sys.argv[1]), int(sys.argv[2])))

"""The views on which a source is run dry before it is admitted.

They are recorded on `trial` seeds under random legal primitives: the same views for the same session.
"""

from __future__ import annotations

import numpy as np

from rlgpt.training.seeds import episode_seed, stream_seed
from rlgpt.training.worlds.packed import packed_view
from rlgpt.training.worlds.protocol import World

DRY_EPISODES = 3
DRY_STEPS = 12


def dry_views(world: World, task: str, seed: int) -> list[list[bytes]]:
    """A few short view sequences; the first view of each is whole."""
    env = world.make(task)
    sequences: list[list[bytes]] = []
    try:
        for index in range(DRY_EPISODES):
            rng = np.random.default_rng(stream_seed(seed, "dry", index))
            env.reset(episode_seed(seed, "trial", index))
            views = [packed_view(env, True)]
            for _ in range(DRY_STEPS):
                legal = np.flatnonzero(env.action_masks()[: world.action_nvec[0]])
                action = [int(rng.choice(legal)), *(0 for _ in world.action_nvec[1:])]
                result = env.step(world.native_action(action))
                if result.terminated or result.truncated:
                    break
                views.append(packed_view(env, False))
            sequences.append(views)
    finally:
        env.close()
    return sequences

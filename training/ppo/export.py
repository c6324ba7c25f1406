"""A policy for other people's tools: the archive that stable-baselines3 writes.

Only ever written, never read by us: loading such an archive unpickles.
"""

from __future__ import annotations

from pathlib import Path

from rlgpt.training.ppo.trained import load_learner
from rlgpt.training.worlds.protocol import World

OURS = ("actor", "columns", "space", "interrupted", "after_tick", "shuffle", "rollout_buffer_class", "_clip")


def export_sb3(blob: bytes, world: World, path: Path) -> None:
    """Write the checkpoint's policy and optimizer as a stable-baselines3 zip; `PPO.load` reads it where rlgpt
    is installed. Raises CheckpointError for bytes that are not a checkpoint of this world."""
    load_learner(blob, world).save(path, exclude=OURS)

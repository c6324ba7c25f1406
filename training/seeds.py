"""Draws episode seeds from four disjoint ranges.

The two top bits of a 31-bit seed name the split, the rest is drawn from (session seed, index).
"""

from __future__ import annotations

import hashlib
from typing import Literal, get_args

Split = Literal["train", "trial", "dev", "test"]
SPLITS: tuple[str, ...] = get_args(Split)
_BITS = 29


def episode_seed(session_seed: int, split: Split, index: int) -> int:
    """Seed in [0, 2**31) of episode `index` of `split`; the same everywhere and always."""
    digest = hashlib.blake2b(f"{session_seed}/{split}/{index}".encode(), digest_size=8).digest()
    return SPLITS.index(split) << _BITS | int.from_bytes(digest, "big") & (1 << _BITS) - 1


def stream_seed(session_seed: int, *names: object) -> int:
    """A 32-bit seed for any other random stream of the session (torch, sampling, bootstrap)."""
    text = "/".join(map(str, (session_seed, *names)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big")

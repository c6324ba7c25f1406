"""The coverage curve's sets: which sub-actions of a chain are left without code. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

SETS = 2
"""Random sets of each size from two on."""
SEED = 16
"""Of their draw: the same sets for every session seed and on every machine."""


def missing_sets(count: int) -> Iterator[tuple[int, ...]]:
    """Places in a chain of `count`: none, each single one, then at most SETS random sets of every larger size but
    `count` itself. With all of them left out nothing is coded, which is the arm `rl`."""
    yield ()
    yield from ((place,) for place in range(count))
    random = np.random.default_rng(SEED)
    for size in range(2, count):
        every = list(combinations(range(count), size))
        chosen = random.choice(len(every), min(SETS, len(every)), replace=False)
        yield from (every[index] for index in sorted(chosen.tolist()))

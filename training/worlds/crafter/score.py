"""Crafter's score (Hafner 2021, section 4): a geometric mean over achievements that rewards breadth.

`score_train` takes the success rates of all training episodes of the first million env steps, `score_test` those of a
final policy on test seeds. Both have the same formula and are never compared with each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def score(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """In [0, 1], where the paper has percent. `rates`: share of the episodes that unlocked each achievement, along the
    last axis."""
    return np.asarray(np.expm1(np.log1p(100 * rates).mean(axis=-1)) / 100)

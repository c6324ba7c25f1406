"""Crafter's score (Hafner 2021, section 4): a geometric mean over achievements that rewards breadth.

`score_train` takes the success rates of all training episodes of the first million env steps, `score_test`
those of a final policy on test seeds. The formula is one; the two numbers are never mixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log


def score(reached: Mapping[str, int], episodes: int, achievements: Sequence[str]) -> float:
    """In percent, [0, 100]. `reached` counts episodes per achievement; missing ones count 0."""
    if episodes < 1 or not achievements:
        raise ValueError("a score needs at least one episode and one achievement")
    rates = (100 * reached.get(name, 0) / episodes for name in achievements)
    return exp(sum(log(1 + rate) for rate in rates) / len(achievements)) - 1

"""What a session will cost with a language model, from what past sessions of this store cost. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from rlgpt.console.view.numbers import count, money

if TYPE_CHECKING:
    from rlgpt.store.catalog import Summary

CALLS_PER_ITERATION = 12
TOKENS_PER_CALL = (4_000, 700)
"""Prompt and reply, where no session of this store says better: a plan, four sub-actions with one repair each, their
critiques and the RL configuration."""
SPREAD = 3.0
"""The upper figure: every attempt and refinement is used."""


@dataclass(frozen=True)
class Estimate:
    tokens: int
    cost: float | None
    """USD, None when the price is unknown."""
    most: float | None
    basis: str
    """Where the numbers come from, as a sentence."""


def estimate(model: str, iterations: int, price: tuple[float, float] | None, past: Iterable[Summary]) -> Estimate:
    """`price`: USD per million tokens in and out."""
    measured = [s.tokens / (s.iteration + 1) for s in past if s.model == model and s.iteration is not None and s.tokens]
    if measured:
        tokens = round(median(measured) * (iterations + 1))
        share = TOKENS_PER_CALL[1] / sum(TOKENS_PER_CALL)
        basis = f"median of {len(measured)} past sessions with {model}"
    else:
        tokens = CALLS_PER_ITERATION * sum(TOKENS_PER_CALL) * (iterations + 1)
        share = TOKENS_PER_CALL[1] / sum(TOKENS_PER_CALL)
        basis = f"no past session with {model}: assumes {CALLS_PER_ITERATION} calls an iteration"
    if price is None:
        return Estimate(tokens, None, None, basis)
    cost = tokens * ((1 - share) * price[0] + share * price[1]) / 1e6
    return Estimate(tokens, cost, cost * SPREAD, basis)


def sentence(found: Estimate, limit: float | None) -> str:
    """One line for the dialog."""
    if found.cost is None or found.most is None:
        text = f"about {count(found.tokens)} tokens; the price of this model is unknown"
        return f"{text}, so only the token budget guards it ({found.basis})"
    text = f"about {money(found.cost)}, at most about {money(found.most)}, {count(found.tokens)} tokens ({found.basis})"
    if limit is not None and found.most > limit:
        text += f"; the budget of {money(limit)} may end it early"
    return text

"""What a session will cost with a language model, from what past sessions of this store cost. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from rlgpt.console.view.numbers import count, many, money
from rlgpt.store.calls import TOKENS_PER_CALL, most_calls, usual_calls

if TYPE_CHECKING:
    from rlgpt.store.catalog import Summary

INNER, DEPTH = 3, 2
"""Attempts at a sub-action and refinements of a plan: the defaults of the loop's settings."""


@dataclass(frozen=True)
class Estimate:
    tokens: int
    cost: float | None
    """USD, None when the price is unknown."""
    basis: str
    """Where the numbers come from."""
    most_calls: int
    """Of one iteration."""


def estimate(
    model: str,
    iterations: int,
    price: tuple[float, float] | None,
    past: Iterable[Summary],
    critic: str = "model",
) -> Estimate:
    """`price`: USD per million tokens in and out."""
    measured = [s.tokens / (s.iteration + 1) for s in past if s.model == model and s.iteration is not None and s.tokens]
    if measured:
        tokens = round(median(measured) * (iterations + 1))
        basis = f"median of {many(len(measured), 'past session')} with {model}"
    else:
        calls = usual_calls(INNER, critic)
        tokens = calls * sum(TOKENS_PER_CALL) * (iterations + 1)
        basis = f"no past session with {model}: assumes {calls} calls an iteration"
    most = most_calls(INNER, DEPTH, critic)
    if price is None:
        return Estimate(tokens, None, basis, most)
    share = TOKENS_PER_CALL[1] / sum(TOKENS_PER_CALL)
    return Estimate(tokens, tokens * ((1 - share) * price[0] + share * price[1]) / 1e6, basis, most)


def sentence(expected: Estimate, cost_limit: float | None, token_limit: float | None) -> str:
    """A sentence on what the session may cost, and on the budgets, which limit it; an estimate does not."""
    tokens = f"{count(expected.tokens)} tokens"
    if expected.cost is None:
        about = f"about {tokens}; the price of this model is unknown"
        limit, ends = token_limit, f"the budget of {count(token_limit)} tokens"
    else:
        about = f"about {money(expected.cost)}, {tokens}"
        limit, ends = cost_limit, f"the budget of {money(cost_limit or 0.0)}"
    guard = f"only {ends} ends it" if limit is not None else "without a budget nothing ends it earlier"
    return f"{about} ({expected.basis}). An iteration may take {expected.most_calls} calls; {guard}"

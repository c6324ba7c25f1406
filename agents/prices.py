"""List prices of models, USD per million tokens. A price in the settings goes first; no price is `unknown`."""

from __future__ import annotations

import re
from typing import NamedTuple


class Price(NamedTuple):
    tokens_in: float
    tokens_out: float

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """USD."""
        return (tokens_in * self.tokens_in + tokens_out * self.tokens_out) / 1e6


LISTED: dict[str, Price] = {
    "gpt-4o": Price(2.5, 10.0),
    "gpt-4o-mini": Price(0.15, 0.6),
    "gpt-4.1": Price(2.0, 8.0),
    "gpt-4.1-mini": Price(0.4, 1.6),
    "gpt-4.1-nano": Price(0.1, 0.4),
    "gpt-5": Price(1.25, 10.0),
    "gpt-5-mini": Price(0.25, 2.0),
    "gpt-5-nano": Price(0.05, 0.4),
    "o3": Price(2.0, 8.0),
    "o4-mini": Price(1.1, 4.4),
}
"""As listed by their maker in 2025; `price_in` and `price_out` per role in the settings replace them."""

_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$")


def listed(model: str) -> Price | None:
    """The list price of a model, dated snapshots included; None if it is not in the table."""
    return LISTED.get(_DATED.sub("", model))

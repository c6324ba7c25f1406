"""List prices of models, USD per million tokens. A price in the settings goes first; no price is `unknown`."""

from __future__ import annotations

import re
from typing import NamedTuple


class Price(NamedTuple):
    tokens_in: float
    tokens_out: float
    cached: float | None = None
    """Of prompt tokens that the server had in its cache; None: as the others."""

    def of(self, tokens_in: int, tokens_out: int, cached: int = 0) -> float:
        """USD. `cached`: how many of `tokens_in` came from the server's cache."""
        cheap = self.tokens_in if self.cached is None else self.cached
        return ((tokens_in - cached) * self.tokens_in + cached * cheap + tokens_out * self.tokens_out) / 1e6


LISTED: dict[str, Price] = {
    "gpt-4o": Price(2.5, 10.0, 1.25),
    "gpt-4o-2024-05-13": Price(5.0, 15.0),
    "gpt-4o-mini": Price(0.15, 0.6, 0.075),
    "gpt-4.1": Price(2.0, 8.0, 0.5),
    "gpt-4.1-mini": Price(0.4, 1.6, 0.1),
    "gpt-4.1-nano": Price(0.1, 0.4, 0.025),
    "gpt-5": Price(1.25, 10.0, 0.125),
    "gpt-5-mini": Price(0.25, 2.0, 0.025),
    "gpt-5-nano": Price(0.05, 0.4, 0.005),
    "o3": Price(2.0, 8.0, 0.5),
    "o4-mini": Price(1.1, 4.4, 0.275),
}
"""Prices of prompt and reply as https://deploybase.ai/articles/openai-pricing quotes OpenAI's page of March 2026; that
of gpt-4o-2024-05-13, which is dearer than later snapshots, as https://llmcloudhub.com/openai/gpt-4o-2024-05-13 has it
(May 2026). The prices of cached tokens were not checked against any page. `price_in`, `price_out` and `price_cached` in
the settings, global or per role, replace them."""

_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$")


def listed(model: str) -> Price | None:
    """The list price of a model, dated snapshots included; None if it is not in the table."""
    return LISTED.get(model) or LISTED.get(_DATED.sub("", model))

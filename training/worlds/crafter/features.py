"""The named features of the policy's observation, and their places in the vector of `senses.describe`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.worlds.crafter import names
from rlgpt.training.worlds.protocol import Feature

_ITEMS = ", ".join(names.INVENTORY)

FEATURES: dict[str, Feature] = {
    feature.name: feature
    for feature in (
        Feature(
            "window",
            names.WIDTH * names.HEIGHT,
            "the 9x7 cells around the agent, row by row: " + ", ".join(names.CATEGORIES),
            0,
            len(names.CATEGORIES) - 1,
            len(names.CATEGORIES),
        ),
        Feature("inventory", 12, f"counts / 9 of {_ITEMS}"),
        Feature("vitals", 4, "health, food, drink and energy, each / 9"),
        Feature("facing", 4, "one-hot: left, right, up, down"),
        Feature("sleeping", 1, "1 while asleep"),
        Feature("daylight", 1, "0 dark to 1 bright"),
        Feature("time_left", 1, "share of the horizon that is left"),
        Feature("near", 2, "whether a table, a furnace is close enough to craft"),
        Feature(
            "remembered",
            3 * (len(names.REMEMBERED) - 1),
            "for each material, and plants, the nearest cell seen so far: dx / d, dy / d and closeness "
            "8 / (8 + d), d its L1 distance; zeros if never seen; " + ", ".join(names.REMEMBERED[1:]),
            -1.0,
        ),
        Feature("creatures", 15, "the same for the nearest cow, zombie, skeleton, arrow, plant in sight", -1.0),
        Feature("milestones", 22, "achievements unlocked in this episode"),
    )
}
DEFAULT = tuple(FEATURES)


def columns(selected: Sequence[str]) -> NDArray[np.intp] | None:
    """Indices of the selected features in the full vector, None for all of them in order.

    Raises ValueError (a sentence) for an unknown or empty selection.
    """
    unknown = [name for name in selected if name not in FEATURES]
    if unknown or not selected:
        raise ValueError(
            f"Crafter's features are {', '.join(FEATURES)}; not {', '.join(map(repr, unknown)) or 'none'}."
        )
    if tuple(selected) == DEFAULT:
        return None
    ends = dict(zip(FEATURES, np.cumsum([feature.size for feature in FEATURES.values()]), strict=True))
    return np.concatenate([np.arange(ends[name] - FEATURES[name].size, ends[name]) for name in selected])

"""What of a world's features comes to the network."""

from __future__ import annotations

import numpy as np
import torch as th
from gymnasium import spaces

from rlgpt.training.options.observation import Observation
from rlgpt.training.ppo.policy import NamedFeatures
from rlgpt.training.worlds.protocol import Feature

SIGNED, SHARE = Feature("offset", 2, "", -1.0), Feature("time_left", 1, "")
KIND = Feature("kind", 1, "", 0, 2, categories=3)


def _seen(layout: Observation, row: list[float]) -> list[float]:
    space = spaces.Box(-np.inf, np.inf, (layout.size,))
    features = NamedFeatures(space, layout)
    values: list[float] = ((th.tensor([row]).index_select(1, features.scalars) - features.low) * features.scale)[
        0
    ].tolist()
    assert features.trunk is not None or features(th.tensor([row]))[0].tolist() == values
    return values


def test_without_categories_scalars_come_as_they_are_so_that_no_offset_is_0() -> None:
    assert _seen(Observation((SIGNED,), (SHARE,)), [-1.0, 0.0, 0.5]) == [-1.0, 0.0, 0.5]


def test_beside_categories_they_are_scaled_to_0_to_1() -> None:
    assert _seen(Observation((KIND, SIGNED), (SHARE,)), [2.0, -1.0, 0.0, 0.5]) == [0.0, 0.5, 0.5]


def test_a_feature_that_ends_at_0_keeps_its_0_and_its_order() -> None:
    below = Feature("below", 1, "", -2.0, 0.0)
    assert _seen(Observation((below,), (SHARE,)), [-2.0, 0.5]) == [-1.0, 0.5]
    assert _seen(Observation((KIND, below), (SHARE,)), [2.0, -1.0, 0.5]) == [0.5, 0.5]

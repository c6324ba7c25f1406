"""Crafter's score, as the paper defines it, and who may ask for it."""

from __future__ import annotations

import numpy as np
import pytest

from rlgpt.training.worlds import registry
from rlgpt.training.worlds.crafter.score import score
from rlgpt.training.worlds.optional_parts import Scores, offers, score_of


def test_the_score_is_the_geometric_mean_of_the_paper() -> None:
    assert score(np.zeros(2)) == 0.0
    assert score(np.ones(2)) == pytest.approx(1.0)
    assert score(np.array([1.0, 0.0])) == pytest.approx((101**0.5 - 1) / 100)
    samples = score(np.array([[1.0, 1.0], [0.5, 0.5]]))
    assert samples == pytest.approx([1.0, 0.5])


def test_only_a_task_of_kind_score_has_one_and_only_with_episodes() -> None:
    world = registry.get("crafter")
    assert offers(world, Scores)
    every = dict.fromkeys(world.tasks["crafter_score"].milestones, 5)
    assert score_of(world, world.tasks["crafter_score"], every, 5) == 1.0, "a share of more than 1 has no interval"
    assert score_of(world, world.tasks["crafter_score"], {}, 0) is None
    assert score_of(world, world.tasks["collect_wood"], every, 5) is None

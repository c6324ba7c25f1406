"""Successes are real: the recorded primitive actions reach the same achievement in the game as published."""

from __future__ import annotations

import numpy as np
import pytest
import zstandard

from tests.end_to_end.conftest import Make, Running
from tests.worlds.crafter.stock import StockEnv


def repeat(session: Running, goal: str) -> list[str]:
    """Play every tested success again in the game as published; returns the variant of each."""
    tested = [row for row in session.rows("episode") if row["split"] == "test"]
    won = [row for row in tested if row["success"]]
    for row in won:
        actions = np.frombuffer(zstandard.decompress(row["actions"]), "<i2")
        assert len(actions) == row["env_steps"]
        stock = StockEnv(row["seed"])
        stock.reset()
        for action in actions[:-1]:
            stock.step(int(action))
        assert stock._player.achievements[goal] == 0
        stock.step(int(actions[-1]))
        assert stock._player.achievements[goal] == 1
    return [row["variant"] for row in won]


def test_every_tested_success_of_code_repeats_in_stock_crafter(make: Make) -> None:
    session = make("make_stone_pickaxe", loop={"test_episodes": 5, "iterations": 0})
    session.finish()
    assert repeat(session, "make_stone_pickaxe").count("full") >= 3


@pytest.mark.slow
def test_every_tested_success_of_a_trained_policy_repeats_in_stock_crafter(make: Make) -> None:
    method = {"arm": "rl", "whole_budget": True}
    session = make(
        "collect_wood", loop={"iterations": 0, "test_episodes": 20}, method=method, budget={"env_steps": 20_000}
    )
    assert session.finish(600).runs, "nothing was trained"
    assert repeat(session, "collect_wood").count("full") >= 3

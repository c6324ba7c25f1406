"""Successes are real: the recorded primitive actions reach the same achievement in the game as published."""

from __future__ import annotations

import numpy as np
import pytest
import zstandard

from tests.end_to_end.conftest import Make
from tests.worlds.crafter.stock import StockEnv


@pytest.mark.timeout(300)
def test_every_tested_success_repeats_in_stock_crafter(make: Make) -> None:
    session = make("make_stone_pickaxe", loop={"test_episodes": 5, "iterations": 0})
    session.finish()
    tested = [row for row in session.rows("episode") if row["split"] == "test" and row["variant"] == "full"]
    won = [row for row in tested if row["success"]]
    assert len(tested) == 5 and len(won) >= 3
    for row in won:
        actions = np.frombuffer(zstandard.decompress(row["actions"]), "<i2")
        assert len(actions) == row["env_steps"]
        stock = StockEnv(row["seed"])
        stock.reset()
        for action in actions[:-1]:
            stock.step(int(action))
        assert stock._player.achievements["make_stone_pickaxe"] == 0
        stock.step(int(actions[-1]))
        assert stock._player.achievements["make_stone_pickaxe"] == 1

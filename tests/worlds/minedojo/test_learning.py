"""Whole episodes and sessions against the double: its calibration, and that RL-GPT learns in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rlgpt.store.intervals import wilson
from tests.worlds.minedojo import play
from tests.worlds.minedojo.conftest import Double, Played

MILK = "harvest_milk_with_empty_bucket_and_cow"
LOG = "harvest_1_log_forest"
CHANCE, CODE = 0.1, 0.5
"""The most that random actions and the script book alone may win: the upper ends of 95% intervals stay below."""


def below(line: float, wins: list[bool]) -> None:
    low, high = wilson(sum(wins), len(wins))
    print(f"{sum(wins)} of {len(wins)}, {low:.2f} to {high:.2f}")
    assert high < line, f"{sum(wins)} of {len(wins)}: {low:.3f} to {high:.3f}"


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("task", [MILK, LOG])
def test_the_double_is_not_won_by_chance(double_world: Callable[..., Played], task: str) -> None:
    world = double_world().world
    env = world.make(task)
    below(CHANCE, [play.at_random(env, world, seed) for seed in range(100)])
    env.close()


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("task", [MILK, LOG])
def test_the_double_is_not_won_by_the_script_book_alone(
    double_world: Callable[..., Played], task: str, version: int
) -> None:
    world = double_world().world
    env = world.make(task)
    scripts = world.scripts(task)
    below(CODE, [play.code_alone(env, scripts, seed, version) for seed in range(150)])
    env.close()


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("task", [MILK, LOG])
def test_a_session_learns_to_finish(
    client_python: Path, start_double: Callable[..., Double], own_home: Path, task: str
) -> None:
    """Plan, coded find and approach, PPO over them as options: >= 80% on the test seeds."""
    ports = ",".join(str(start_double("--seed", str(i)).port) for i in range(4))
    environment = os.environ | {
        "RLGPT_HOME": str(own_home), "RLGPT_MINEDOJO_PORTS": ports, "RLGPT_MINEDOJO_PYTHON": str(client_python),
    }  # fmt: skip
    rlgpt = str(Path(sys.executable).with_name("rlgpt"))
    command = [rlgpt, "run", task, "--world", "minedojo", "--llm", "rules", "--headless", "--env-steps", "40000",
               "--iterations", "0", "--json"]  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    ended = json.loads(done.stdout.splitlines()[-1])
    shown = subprocess.run(
        [rlgpt, "show", ended["id"], "--json"], env=environment, capture_output=True, text=True, check=True
    )
    told = json.loads(shown.stdout)
    assert told["test"]["rate"] >= 0.8, told["test"]
    assert told["iterations"][0]["verdict"]

"""Whole episodes and sessions against the double: its calibration, and that RL-GPT learns in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlgpt.store.intervals import wilson
from tests.worlds.minedojo import play
from tests.worlds.minedojo.conftest import Double, Played

MILK = "harvest_milk_with_empty_bucket_and_cow"
LOG = "harvest_1_log_forest"
WOOD = "start=log:1,crafting_table:1&specified_biome=plains&horizon=100"
SWORD = f"harvest?target_names=wooden_sword&target_quantities=1&{WOOD}"
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
    below(CODE, [play.code_alone(env, scripts, seed, version) for seed in range(100)])
    env.close()


Session = Callable[..., dict[str, Any]]


@pytest.fixture
def session(client_python: Path, start_double: Callable[..., Double], own_home: Path) -> Session:
    """Runs a whole session by the command line on four doubles: what `rlgpt show --json` tells of it at its end."""

    def run(task: str, env_steps: int, **loop: int) -> dict[str, Any]:
        ports = ",".join(str(start_double("--seed", str(i)).port) for i in range(4))
        environment = os.environ | {
            "RLGPT_HOME": str(own_home), "RLGPT_MINEDOJO_PORTS": ports, "RLGPT_MINEDOJO_PYTHON": str(client_python),
            **{f"RLGPT_LOOP__{name.upper()}": str(value) for name, value in loop.items()},
        }  # fmt: skip
        rlgpt = str(Path(sys.executable).with_name("rlgpt"))
        command = [rlgpt, "run", task, "--world", "minedojo", "--llm", "rules", "--headless", "--seed", "1",
                   "--env-steps", str(env_steps), "--iterations", "0", "--json"]  # fmt: skip
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        ended = json.loads(done.stdout.splitlines()[-1])
        shown = subprocess.run(
            [rlgpt, "show", ended["id"], "--json"], env=environment, capture_output=True, text=True, check=True
        )
        told: dict[str, Any] = json.loads(shown.stdout)
        return told

    return run


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize(("task", "name", "env_steps"), [(MILK, "cow", 40_000), (LOG, "log", 60_000)])
def test_a_session_learns_to_finish(session: Session, task: str, name: str, env_steps: int) -> None:
    """Plan, coded find and approach, PPO over them as options: at least 80% of the test episodes."""
    told = session(task, env_steps)
    assert told["status"] in ("succeeded", "finished"), told["reason"]
    test = told["test"]
    assert test["policy"] == "ppo" and test["episodes"] >= 50
    assert test["rate"] >= 0.8, test
    assert test["option_usage"][f"approach_{name}"] and test["option_usage"]["follow_plan"]
    assert test["options_off"]["rate"] < test["rate"]
    assert told["iterations"][0]["verdict"]


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_a_long_task_is_worked_through_sub_task_by_sub_task(session: Session) -> None:
    """Sub-tasks from the inventory and the recipes, the rest planned again after each from what its episodes gained."""
    told = session(SWORD, 20_000)
    assert told["status"] in ("succeeded", "finished"), told["reason"]
    plans = told["task_plans"]
    assert [plan["revision"] for plan in plans] == [1, 2, 3, 4]
    names = [[entry["task"] for entry in plan["sub_tasks"]] for plan in plans]
    assert names == [[*(f"{SWORD}/{name}" for name in ("planks", "stick", "near_table")), SWORD]] * 4
    for plan, gained in zip(plans[1:], ("planks", "stick", "near_table"), strict=True):
        assert gained in plan["reason"]
    assert [iteration["sub_task"] for iteration in told["iterations"]] == [0, 1, 2, 3]
    assert told["test"]["episodes"] >= 50 and told["test"]["rate"] >= 0.8, told["test"]

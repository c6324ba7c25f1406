"""What PPO learns on toys where the right thing is known."""

from __future__ import annotations

from typing import Any

from rlgpt.store import tables
from rlgpt.training.options.observer import Observer
from rlgpt.training.ppo.run import train
from rlgpt.training.ppo.trained import load_policy
from rlgpt.training.rollouts.evaluation import evaluate
from rlgpt.training.seeds import episode_seed
from rlgpt.training.worlds.protocol import StepResult
from tests.options.toys import GET_KEY, OPEN_DOOR, USE, WALK, ChangedWorld, code, configuration, host_of, term

DEV = [episode_seed(5, "dev", index) for index in range(40)]


def _right_and_use_kill(env: Any, command: Any, result: StepResult) -> StepResult:
    return StepResult(0.0, True, False) if command == (2, 1) and not result.terminated else result


def test_with_a_cost_per_step_and_a_prize_at_the_end_it_learns_to_wait_rather_than_to_die() -> None:
    """Living costs 0.05 a step and pays 1 at the limit: 0.5 against -0.05 for dying now. Treating the limit as
    an artificial cut would bootstrap an endless cost."""
    world = ChangedWorld(_right_and_use_kill, two_heads=True)
    config = configuration(
        reward=[term("task"), term("step", -0.05)], primitives=["stay", "left", "right"], horizon=10, env_steps=8000,
        hyper={"n_envs": 4, "n_steps": 128, "batch_size": 128, "learning_rate": 3e-3, "n_epochs": 4},
    )  # fmt: skip
    result = train(world, "survive", config, [], host_of(world), seed=3, device="cpu")
    policy = load_policy(result.checkpoint, world)
    before = evaluate(world, "survive", policy, host_of(world), DEV, variant="random")
    after = evaluate(world, "survive", policy, host_of(world), DEV)
    assert before.successes <= 10
    assert after.successes >= 36


def test_options_are_used_and_the_task_is_learnt() -> None:
    world = ChangedWorld()
    options = [code(WALK), code(USE), code(GET_KEY), code(OPEN_DOOR)]
    config = configuration(
        options=[o.name for o in options], env_steps=12_000,
        hyper={"n_envs": 4, "n_steps": 256, "batch_size": 128, "learning_rate": 2e-3, "n_epochs": 4},
    )  # fmt: skip
    metrics: list[dict[str, Any]] = []
    observer = _Watch(metrics)
    result = train(world, "take_coin", config, options, host_of(world), seed=1, device="cpu", observer=observer)
    policy = load_policy(result.checkpoint, world)
    random = evaluate(world, "take_coin", policy, host_of(world), DEV, variant="random")
    learnt = evaluate(world, "take_coin", policy, host_of(world), DEV)
    assert learnt.successes >= 38 and learnt.length_mean < random.length_mean - 5
    assert learnt.option_usage["get_key"] > 0
    assert metrics[-1]["entropy"] < metrics[0]["entropy"]


def test_two_heads_learn_with_an_option_on_the_first() -> None:
    world = ChangedWorld(two_heads=True)
    walk = 'def walk(view):\n    for _ in range(2):\n        view = yield ("right", False)\n'
    config = configuration(
        primitives=["stay", "left", "right"], options=["walk"], env_steps=6000,
        hyper={"n_envs": 4, "n_steps": 128, "batch_size": 128, "learning_rate": 3e-3, "n_epochs": 4},
    )  # fmt: skip
    result = train(world, "take_key", config, [code(walk)], host_of(world), seed=1, device="cpu")
    policy = load_policy(result.checkpoint, world)
    assert evaluate(world, "take_key", policy, host_of(world), DEV).successes >= 38


class _Watch(Observer):
    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def on_update(self, metrics: dict[str, Any]) -> None:
        self.rows.append(metrics)


def test_metrics_fill_every_column_of_the_metric_row() -> None:
    world = ChangedWorld()
    rows: list[dict[str, Any]] = []
    config = configuration(options=["walk"])
    train(world, "take_key", config, [code(WALK)], host_of(world), seed=1, device="cpu", observer=_Watch(rows))
    columns = set(tables.Metric.model_fields) - set(tables.Row.model_fields) - {"run", "score"}  # score: the session's
    assert rows and all(set(row) == columns for row in rows)
    assert rows[-1]["env_steps"] >= 256 and rows[-1]["episodes"] > 0 and rows[-1]["rate"] > 0
    assert sum(row["rewards"]["task"] for row in rows) == sum(row["successes"] for row in rows)
    assert sum(rows[0]["option_usage"].values()) == rows[0]["decisions"]

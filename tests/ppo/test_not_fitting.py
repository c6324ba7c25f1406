"""What a policy that does not fit, and reward terms of one name, leave in the rows."""

from __future__ import annotations

from typing import Any

import pytest

from rlgpt.training.options.observer import Observer, Start
from rlgpt.training.ppo.run import TrainResult, train
from tests.options.toys import BACK, USE, WALK, ChangedWorld, code, configuration, host_of, term

OPTIONS = (code(WALK), code(USE), code(BACK))


class Log(Observer):
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def on_start(self, start: Start) -> None:
        self.slots = start.slots

    def on_update(self, metrics: dict[str, Any]) -> None:
        self.rows.append({key: value for key, value in metrics.items() if key != "rate"})


def _train(config: Any, warm: bytes | None = None) -> tuple[Log, TrainResult]:
    world, log = ChangedWorld(), Log()
    return log, train(
        world, "take_coin", config, OPTIONS, host_of(world), seed=3, device="cpu", warm=warm, observer=log
    )


def test_a_policy_that_does_not_fit_changes_nothing() -> None:
    _, earlier = _train(configuration(options=["walk", "use_it", "back"], env_steps=128))
    config = configuration(options=["back", "use_it"], observation=["position", "flags"])
    tried, _ = _train(config, earlier.checkpoint)
    fresh, _ = _train(config)
    assert (tried.slots, tried.rows) == (fresh.slots, fresh.rows)


def test_terms_of_one_name_are_counted_together() -> None:
    log, result = _train(configuration(reward=[term("step", -1.0), term("step", -2.0)], horizon=20))
    assert sum(row["rewards"]["step"] for row in log.rows) == pytest.approx(-3 * result.env_steps)

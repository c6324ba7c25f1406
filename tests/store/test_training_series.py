"""A training in ten points: what stands in each, and what does when there is little."""

from __future__ import annotations

from typing import Any

from rlgpt.store.training_series import training_series


def row(number: int, **more: Any) -> dict[str, Any]:
    fixed = {"seq": number, "env_steps": 100 * (number + 1), "episodes": 2, "successes": number % 2, "return_mean": 1.0}
    counted = {"option_usage": {"walk": 3, "primitive": 1}, "rewards": {"task": 1.0, "step": -0.5}}
    ends = {"end_reasons": {"walk": {"return": 2, "cap": 1}}}
    return fixed | counted | ends | {"kl": 0.01, "entropy": 0.5, "explained_variance": None} | more


def test_twenty_updates_become_ten_points() -> None:
    series = training_series([row(number) for number in range(20)])
    assert series["env_steps"] == [200 * (point + 1) for point in range(10)]
    assert series["success"] == [0.25] * 10 and series["return"] == [1.0] * 10
    assert series["reward"] == {"step": [-0.25] * 10, "task": [0.5] * 10}
    assert series["kl"] == [0.01] * 10 and series["explained_variance"] == [None] * 10
    assert series["option_share"] == {"primitive": [0.25] * 10, "walk": [0.75] * 10}
    assert series["ends"] == {"walk": {"return": 0.67, "cap": 0.33}}


def test_a_short_run_has_fewer_points_and_says_where_no_episode_ended() -> None:
    series = training_series([row(0, episodes=0, successes=0, return_mean=None), row(1)])
    assert series["success"] == [None, 0.5] and series["return"] == [None, 1.0]
    assert training_series([]) == {}

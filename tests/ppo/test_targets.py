"""The SMDP targets against stable-baselines3 and against the definition."""

from itertools import pairwise

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer

from rlgpt.training.ppo.buffer import Column, DecisionBuffer, smdp_targets


def _f32(values: object) -> np.ndarray:
    return np.asarray(values, np.float32)


def test_with_one_env_step_per_decision_the_targets_are_stock_sb3s_bit_for_bit() -> None:
    draw = np.random.default_rng(0)
    steps, gamma, lam = 64, 0.97, 0.9
    stock = RolloutBuffer(steps, spaces.Box(-1, 1, (2,)), spaces.Discrete(3), "cpu", lam, gamma, n_envs=3)
    rewards, values = _f32(draw.normal(size=(steps, 3))), _f32(draw.normal(size=(steps, 3)))
    dones, last = draw.random((steps, 3)) < 0.1, _f32(draw.normal(size=3))
    starts = np.concatenate([np.zeros((1, 3), bool), dones[:-1]])
    for t in range(steps):
        stock.add(np.zeros((3, 2)), np.zeros((3, 1)), rewards[t], starts[t], th.tensor(values[t]), th.zeros(3))
    stock.compute_returns_and_advantage(th.tensor(last), dones[-1])
    for lane in range(3):
        after = np.append(values[1:, lane], last[lane])
        done = _f32(dones[:, lane])
        ours = smdp_targets(
            rewards[:, lane], values[:, lane], after, np.full(steps, gamma, np.float32), done, done, lam
        )
        assert np.array_equal(ours, stock.advantages[:, lane])


def test_with_lambda_1_the_return_is_the_discounted_sum_of_primitive_rewards() -> None:
    draw = np.random.default_rng(1)
    gamma, lengths = 0.95, [1, 4, 2, 7, 1, 3]
    primitive = draw.normal(size=sum(lengths))
    edges = np.cumsum([0, *lengths])
    pieces = [primitive[a:b] for a, b in pairwise(edges)]
    rewards = _f32([sum(gamma**i * r for i, r in enumerate(piece)) for piece in pieces])
    discounts = _f32([gamma**k for k in lengths])
    ends = _f32([0, 0, 0, 0, 0, 1])
    values = _f32(draw.normal(size=6))
    advantages = smdp_targets(rewards, values, np.append(values[1:], _f32(9)), discounts, ends, ends, 1.0)
    for decision, start in enumerate(edges[:-1]):
        expected = sum(gamma**i * r for i, r in enumerate(primitive[start:]))
        assert advantages[decision] + values[decision] == pytest.approx(expected, abs=1e-5)


def test_termination_inside_an_option_is_not_bootstrapped_and_an_artificial_cut_is() -> None:
    one = np.ones(1, np.float32)
    zero = np.zeros(1, np.float32)
    ended = smdp_targets(one, zero, 5 * one, 0.5 * one, one, one, 0.9)
    cut = smdp_targets(one, zero, 5 * one, 0.5 * one, zero, one, 0.9)
    assert ended[0] == 1.0
    assert cut[0] == 1.0 + 0.5 * 5.0


def test_nothing_flows_back_over_an_artificial_cut() -> None:
    """A = delta at the cut: lambda's chain ends with the episode."""
    values, after = _f32([0, 0]), _f32([2, 7])
    advantages = smdp_targets(_f32([1, 100]), values, after, _f32([0.5, 0.5]), _f32([0, 0]), _f32([1, 0]), 1.0)
    assert advantages[0] == 1 + 0.5 * 2


def test_the_buffer_bootstraps_each_lane_from_its_own_last_observation() -> None:
    def column(last: float, cut: dict[int, np.ndarray]) -> Column:
        rows = [_f32([0.0]), _f32([0.0])]
        masks = [np.ones(2, np.bool_)] * 2
        done = [0 in cut, False]
        return Column(rows, masks, [(0,), (1,)], [1.0, 1.0], [0.5, 0.5], [False, False], done, cut, _f32([last]))

    buffer = DecisionBuffer(gae_lambda=0.0, device="cpu")
    columns = [column(10.0, {}), Column(), column(20.0, {0: _f32([40.0])})]
    buffer.fill(columns, lambda o, m, a: (o[:, 0], o[:, 0]), lambda o: o[:, 0])
    assert buffer.advantages.tolist() == [1.0, 1 + 0.5 * 10, 1 + 0.5 * 40, 1 + 0.5 * 20]

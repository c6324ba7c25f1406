"""With primitives alone a rollout and its update are stock stable-baselines3's PPO."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import log
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv

from rlgpt.agents.contracts import Hyperparameters
from rlgpt.training.options.lane import EpisodeResult, Lane
from rlgpt.training.options.runner import OptionRunner
from rlgpt.training.ppo.policy import gym_spaces
from rlgpt.training.ppo.ppo import OptionPPO
from rlgpt.training.ppo.setup import Setup, build_setup
from tests.options.toys import ChangedWorld, configuration, host_of

N, STEPS = 3, 40
SETTINGS = Hyperparameters(
    n_envs=N, n_steps=STEPS, batch_size=40, n_epochs=3, ent_coef=0.02, target_kl=None, learning_rate=1e-3
)


def _setup() -> Setup:
    world = ChangedWorld()
    config = configuration(observation=["position", "flags"], reward=[{"term": "world", "weight": 1.0}])
    return build_setup(world, "take_key", config, [], [], {}, [])


class _Gym(gymnasium.Env[Any, Any]):
    """One of our lanes as gymnasium sees it: same observation, reward and seeds."""

    def __init__(self, setup: Setup, index: int) -> None:
        self.lane, self.setup, self.index, self.count = setup.lane(0), setup, index, 0
        box, _ = gym_spaces(setup.observation, setup.space)
        self.observation_space, self.action_space = box, gymnasium.spaces.Discrete(3)

    def _row(self) -> np.ndarray:
        env = self.lane.env
        return self.setup.observation.read(env, self.lane.stream, 1 - env.steps / env.task.horizon)

    def reset(self, **_: Any) -> tuple[np.ndarray, dict[str, Any]]:
        self.lane.env.reset(100 * self.index + self.count)
        self.lane.stream.start(self.lane.env)
        self.count += 1
        return self._row(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        result = self.lane.env.step((int(action),))
        return self._row(), result.reward, result.terminated, False, {}


class _Twin(OptionPPO):
    """Draws its actions as stock PPO does: all lanes in one call of torch."""

    def choose(self, lanes: Sequence[Lane]) -> list[tuple[int, ...]]:
        rows = th.as_tensor(np.stack([lane.observation for lane in lanes if lane.observation is not None]))
        for lane in lanes:
            assert lane.mask is not None
            lane.mask = np.array([True, True, True] + [False] * (len(lane.mask) - 3))
        with th.no_grad():
            logits = self.policy.logits(rows)[:, :3]
        return [(int(a),) for a in th.distributions.Categorical(logits=logits).sample()]


class _Listener:
    def __init__(self, ppo: OptionPPO, setup: Setup) -> None:
        self.ppo, self.setup, self.counts = ppo, setup, [0] * N

    def on_start(self, lane: Lane) -> bool:
        lane.seed = 100 * lane.index + self.counts[lane.index]
        self.counts[lane.index] += 1
        return True

    def on_reset(self, lane: Lane) -> None:
        pass

    def on_decision(self, lane: Lane) -> None:
        self.ppo.record(lane, lambda: pytest.fail("nothing is cut here"))

    def on_end(self, lane: Lane, result: EpisodeResult) -> None:
        pass


class _Shuffle:
    """numpy's global stream, which stock PPO shuffles with."""

    def permutation(self, n: int) -> np.ndarray:
        return np.random.permutation(n)


@pytest.fixture
def pair() -> tuple[PPO, _Twin, OptionRunner]:
    setup = _setup()
    ours = _Twin(setup.space, setup.observation, SETTINGS, seed=7, device="cpu")
    ours.shuffle = _Shuffle()  # type: ignore[assignment]
    stock = PPO(
        "MlpPolicy", DummyVecEnv([partial(_Gym, setup, i) for i in range(N)]), n_steps=STEPS, batch_size=40,
        n_epochs=3, learning_rate=1e-3, ent_coef=SETTINGS.ent_coef / log(3), seed=7, device="cpu",
    )  # fmt: skip
    with th.no_grad():
        for mine, theirs in zip(_parameters(ours), _parameters(stock), strict=True):
            mine[: len(theirs)] = theirs
    lanes = [setup.lane(index) for index in range(N)]
    runner = OptionRunner(
        setup.world, host_of(setup.world), setup.space, lanes, ours, _Listener(ours, setup),  # type: ignore[arg-type]
        observation=setup.observation, gamma=SETTINGS.gamma,
    )  # fmt: skip
    return stock, ours, runner


def _parameters(ppo: PPO | _Twin) -> list[th.Tensor]:
    """In stock's order; ours has more rows in the action layer."""
    return list(ppo.policy.parameters())


def test_three_rollouts_and_updates_equal_stock_ppo(pair: tuple[PPO, _Twin, OptionRunner]) -> None:
    stock, ours, runner = pair
    th.manual_seed(3)
    np.random.seed(3)
    stock.learn(3 * N * STEPS)
    th.manual_seed(3)
    np.random.seed(3)
    runner.start()
    for _ in range(3):
        assert ours.collect_rollouts(runner, N * STEPS, keep_going=lambda: True)
        ours.train(keep_going=lambda: True)
    assert np.array_equal(ours.buffer.actions[:, 0], stock.rollout_buffer.actions[:, 0].astype(int))
    assert np.array_equal(ours.buffer.rewards, stock.rollout_buffer.rewards.T.flatten())
    for name in ("values", "log_probs", "advantages", "returns"):
        mine, theirs = getattr(ours.buffer, name), getattr(stock.rollout_buffer, name)
        assert mine == pytest.approx(theirs.flatten(), abs=2e-5), name
    for mine, theirs in zip(_parameters(ours), _parameters(stock), strict=True):
        assert mine[: len(theirs)].detach().numpy() == pytest.approx(theirs.detach().numpy(), abs=2e-5)


def test_the_network_is_stable_baselines3s_actor_critic(pair: tuple[PPO, _Twin, OptionRunner]) -> None:
    _, ours, _ = pair
    assert isinstance(ours.policy, ActorCriticPolicy)

"""PPO over decisions: stable-baselines3's PPO with our collector, buffer and masked loss.

Budgets count env steps. With every decision one env step long and nothing masked, a rollout and an update
are stock PPO's, number by number (tests/ppo/test_identity.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3 import PPO

from rlgpt.agents.contracts import Hyperparameters
from rlgpt.training.options.lane import Lane
from rlgpt.training.options.observation import Observation
from rlgpt.training.options.policies import draw
from rlgpt.training.options.slots import ActionSpace
from rlgpt.training.options.ticker import Ticker
from rlgpt.training.ppo.buffer import Column, DecisionBuffer
from rlgpt.training.ppo.kernel import make_loss
from rlgpt.training.ppo.policy import Actor, OptionPolicy, gym_spaces

ADAM_EPS = 1e-5


@dataclass(frozen=True)
class UpdateReport:
    """Means over the minibatches of one update."""

    kl: float
    clip_fraction: float
    entropy: float
    policy_loss: float
    value_loss: float
    explained_variance: float | None


class OptionPPO(PPO):
    """Chooses actions for a Ticker and learns from its decisions."""

    policy: OptionPolicy
    rollout_buffer: DecisionBuffer

    def __init__(
        self,
        space: ActionSpace,
        layout: Observation,
        settings: Hyperparameters,
        *,
        seed: int,
        device: str,
        kernel: str = "eager",
    ) -> None:
        fused = device == "cpu"
        super().__init__(
            OptionPolicy,
            None,  # type: ignore[arg-type]
            learning_rate=settings.learning_rate,
            n_steps=settings.rollout_env_steps,
            batch_size=settings.batch_size,
            n_epochs=settings.epochs,
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
            clip_range=settings.clip_range,
            ent_coef=settings.entropy,
            vf_coef=settings.value_coefficient,
            max_grad_norm=settings.max_grad_norm,
            target_kl=settings.target_kl,
            rollout_buffer_class=DecisionBuffer,
            policy_kwargs={
                "layout": layout,
                "primitives": space.heads[0],
                "optimizer_kwargs": {"eps": ADAM_EPS, "fused": fused},
            },
            seed=seed,
            device=device,
            _init_setup_model=False,
        )
        self.observation_space, self.action_space = gym_spaces(layout, space)
        self.n_envs = settings.n_envs
        self._setup_model()
        self.policy.set_training_mode(False)
        weights = (settings.clip_range, settings.entropy, settings.value_coefficient)
        self._loss = make_loss(self.policy, *weights, kernel)
        self._odd_loss = make_loss(self.policy, *weights, "eager")
        """Of the last minibatch of a pass, whose size is another every time."""
        self.space = space
        self.shuffle = np.random.default_rng(seed)
        self.columns = [Column() for _ in range(settings.n_envs)]
        self.actor = Actor(self.policy)
        self.minibatch = 0
        """Minibatches of the update that is going on; 0 while collecting."""
        self.interrupted: Callable[[], bool] = lambda: False
        """Asked between minibatches and at every tick; True ends the rollout or the update early."""

        self.after_tick: Callable[[], None] = lambda: None

    # ---- collecting ------------------------------------------------------------------------------
    def choose(self, lanes: Sequence[Lane]) -> list[tuple[int, ...]]:
        """For the ticker: one sampled action per lane."""
        rows = np.stack([lane.observation for lane in lanes if lane.observation is not None])
        logits = self.actor.logits(rows)
        return [
            draw(row, lane.mask, self.space, lane.rng)
            for row, lane in zip(logits, lanes, strict=True)
            if lane.mask is not None
        ]

    def record(self, lane: Lane, read: Callable[[], NDArray[Any]]) -> None:
        """A decision of `lane` is over. `read` gives the observation where it ended."""
        column = self.columns[lane.index]
        assert lane.observation is not None and lane.mask is not None
        if lane.outcome == "truncated":
            column.cuts[len(column.rewards)] = read()
        column.observations.append(lane.observation)
        column.masks.append(lane.mask)
        column.actions.append(lane.action)
        column.rewards.append(lane.reward)
        column.discounts.append(lane.discount)
        column.terminated.append(lane.outcome not in ("", "truncated"))
        column.done.append(lane.outcome != "")

    def collect_rollouts(self, ticker: Ticker, env_steps: int) -> bool:  # type: ignore[override]
        """Run until `env_steps` more were made and every open option is finished.

        False if it was interrupted: then nothing may be learnt from the columns.
        """
        self.columns = [Column() for _ in ticker.lanes]
        goal = ticker.env_steps + env_steps
        going = True
        while ticker.env_steps < goal:
            if self.interrupted():
                going = False
                break
            ticker.tick()
            self.after_tick()
        ticker.rest()
        if not going:
            return False
        for lane in ticker.lanes:
            ticker.look(lane)
            self.columns[lane.index].last = lane.observation
        self.rollout_buffer.reset()
        self.rollout_buffer.fill(self.columns, self._evaluate, self._value)
        return True

    def _evaluate(
        self, observations: NDArray[Any], masks: NDArray[np.bool_], actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        values, log_probs = [], []
        with th.no_grad():
            for start in range(0, len(actions), 4096):
                rows = slice(start, start + 4096)
                value, log_prob, _ = self.policy.evaluate_masked(
                    th.as_tensor(observations[rows], device=self.device),
                    th.as_tensor(masks[rows], device=self.device),
                    th.as_tensor(actions[rows], device=self.device),
                )
                values.append(value.cpu().numpy())
                log_probs.append(log_prob.cpu().numpy())
        return np.concatenate(values), np.concatenate(log_probs)

    def _value(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        with th.no_grad():
            return self.policy.values(th.as_tensor(observations, device=self.device)).cpu().numpy()

    # ---- learning --------------------------------------------------------------------------------
    def train(self) -> UpdateReport:  # type: ignore[override]
        """Clipped surrogate, value and normalised entropy over `n_epochs` passes; KL above 1.5 target stops."""
        policy, buffer = self.policy, self.rollout_buffer
        sums = np.zeros(5)
        count = 0
        stop = False
        for _ in range(self.n_epochs):
            for batch in buffer.batches(self.batch_size, self.shuffle):
                compute = self._loss if len(batch.advantages) == self.batch_size else self._odd_loss
                loss, report = compute(
                    batch.observations, batch.masks, batch.actions, batch.old_log_prob, batch.advantages, batch.returns
                )
                row = report.cpu().numpy()
                sums += row
                count += 1
                self.minibatch = count
                if self.target_kl is not None and row[0] > 1.5 * self.target_kl:
                    stop = True
                    break
                policy.optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                th.nn.utils.clip_grad_norm_(policy.parameters(), self.max_grad_norm)
                policy.optimizer.step()
                if self.interrupted():
                    stop = True
                    break
            self._n_updates += 1
            if stop:
                break
        self.minibatch = 0
        self.actor.refresh()
        kl, clipped, entropy, policy_loss, value_loss = (sums / count).tolist()
        return UpdateReport(kl, clipped, entropy, policy_loss, value_loss, _explained(buffer.values, buffer.returns))


def _explained(values: NDArray[np.float32], returns: NDArray[np.float32]) -> float | None:
    variance = float(returns.var())
    return None if variance == 0 else 1 - float((returns - values).var()) / variance

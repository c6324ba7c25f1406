"""PPO over decisions of one or more env steps, in one class: collect a rollout, compute targets, update.

The network is stable-baselines3's `ActorCriticPolicy`; hyperparameters have stable-baselines3's names. Three things
differ from `stable_baselines3.PPO`, which is why its classes are not inherited:

- a decision may be an option that takes k env steps, so targets are those of a semi-Markov decision process (Sutton,
  Precup and Singh 1999: gamma ** k, buffer.py), and a rollout ends by env steps, not by a number of decisions;
- invalid actions are masked (Huang and Ontañón 2022), and the entropy is divided by the log of the number of valid
  actions, so that `ent_coef` means the same when slots open and close;
- the loop can be interrupted between env steps and between minibatches, and continues bit by bit from a checkpoint.

With decisions of one env step and nothing masked, a rollout and an update are stable-baselines3's number by number
(tests/ppo/test_identity.py).
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.utils import set_random_seed
from torch.nn import functional

from rlgpt.agents.contracts import Hyperparameters
from rlgpt.store.home import cache
from rlgpt.training.host.api import Host
from rlgpt.training.options.lane import Lane
from rlgpt.training.options.observation import Observation
from rlgpt.training.options.policies import draw
from rlgpt.training.options.runner import OptionRunner
from rlgpt.training.options.slots import ActionSpace
from rlgpt.training.ppo.branches import Branching
from rlgpt.training.ppo.buffer import Column, DecisionBuffer
from rlgpt.training.ppo.machine import check_compiler
from rlgpt.training.ppo.policy import Actor, OptionPolicy, gym_spaces

ADAM_EPS = 1e-5
"""stable-baselines3's, as in the original implementation of PPO; torch's default is 1e-8."""
EVALUATED_AT_ONCE = 4096
"""Decisions per forward pass when a rollout's values are computed: bounds the memory that pixels take."""

@dataclass(frozen=True)
class UpdateReport:
    """Means over the minibatches of one update."""

    kl: float
    clip_fraction: float
    entropy: float
    policy_loss: float
    value_loss: float
    explained_variance: float | None


class OptionPPO:
    """Chooses actions for a `OptionRunner` and learns from its decisions.

    `device`: cpu | cuda. `kernel`: how the loss is computed, eager | compiled by torch.compile. Compiling takes half a
    minute once for a shape of network and minibatch, and two seconds from its cache afterwards; its last bits differ
    from eager, so a session names its kernel and keeps it. Raises MachineLacks where no C++ compiler is found.
    """

    def __init__(
        self, space: ActionSpace, layout: Observation, settings: Hyperparameters, *, seed: int, device: str,
        kernel: str = "eager",
    ) -> None:  # fmt: skip
        self.space, self.settings, self.device = space, settings, device
        set_random_seed(seed, using_cuda=device == "cuda")
        observation_space, action_space = gym_spaces(layout, space)
        self.policy = OptionPolicy(
            observation_space,
            action_space,
            lambda _: settings.learning_rate,
            layout=layout,
            primitives=space.action_nvec[0],
            width=settings.width,
            # One fused call updates all parameters; torch has it for CPU and CUDA.
            optimizer_kwargs={"eps": ADAM_EPS, "fused": True},
        ).to(device)
        self.policy.set_training_mode(False)
        self.actor = Actor(self.policy)
        self.buffer = DecisionBuffer(settings.gae_lambda, device)
        self.columns = [Column() for _ in range(settings.n_envs)]
        self.shuffle = np.random.default_rng(seed)
        self.prior: OptionPolicy | None = None
        """What the policy is held near to, with the weight `prior_kl`; see `keep_prior`."""
        self.prior_kl = 0.0
        self.branching: Branching | None = None
        """Measures the advantage of some decisions, where the configuration asks for it."""
        self.minibatch = 0
        """Minibatches of the update that is going on; 0 while collecting."""
        self._loss = _compile(self.loss) if kernel == "compiled" else self.loss

    def keep_prior(self) -> None:
        """Hold the policy near to what it is now."""
        self.prior = copy.deepcopy(self.policy)
        self.prior.requires_grad_(False)

    # ---- collecting a rollout --------------------------------------------------------------------
    def collect_rollouts(self, runner: OptionRunner, env_steps: int, keep_going: Callable[[], bool]) -> bool:
        """Run until `env_steps` more were made and every open option is finished, then compute the targets.

        `keep_going` is asked before each tick. Where it says False the result is False, and nothing may be learnt from
        the columns.
        """
        self.columns = [Column() for _ in runner.lanes]
        goal = runner.env_steps + env_steps
        while runner.env_steps < goal:
            if not keep_going():
                runner.rest()
                return False
            runner.tick()
        runner.rest()
        for lane in runner.lanes:
            runner.look(lane)
            self.columns[lane.index].last = lane.observation
        self.buffer.fill(self.columns, self._evaluate, self._value)
        return True

    def choose(self, lanes: Sequence[Lane]) -> list[tuple[int, ...]]:
        """The runner's chooser: one sampled action per lane."""
        rows = np.stack([lane.observation for lane in lanes if lane.observation is not None])
        logits = self.actor.logits(rows)
        actions = [
            draw(row, lane.mask, self.space, lane.rng)
            for row, lane in zip(logits, lanes, strict=True)
            if lane.mask is not None
        ]
        if self.branching is not None:
            for lane, row, action in zip(lanes, logits, actions, strict=True):
                self.branching.consider(lane, row, action, len(self.columns[lane.index].rewards))
        return actions

    def record(self, lane: Lane, read_observation: Callable[[], NDArray[Any]]) -> None:
        """Keep a decision of `lane` that is over. `read_observation` gives the observation where it ended."""
        column = self.columns[lane.index]
        assert lane.observation is not None and lane.mask is not None
        if lane.outcome == "truncated":
            column.cuts[len(column.rewards)] = read_observation()
        column.observations.append(lane.observation)
        column.masks.append(lane.mask)
        column.actions.append(lane.action)
        column.rewards.append(lane.reward)
        column.discounts.append(lane.discount)
        column.terminated.append(lane.outcome not in ("", "truncated"))
        column.done.append(lane.outcome != "")

    def _evaluate(
        self, observations: NDArray[Any], masks: NDArray[np.bool_], actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        values, log_probs = [], []
        with th.no_grad():
            for start in range(0, len(actions), EVALUATED_AT_ONCE):
                rows = slice(start, start + EVALUATED_AT_ONCE)
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
            return self.policy.values(self.policy.rows(observations)).cpu().numpy()

    def measure_branches(self, host: Host, going: Callable[[], bool]) -> int:
        """Measured advantages in place of estimated ones, where there are; the env steps that were played for them."""
        branching = self.branching
        if branching is None:
            return 0
        differences, env_steps = branching.advantages(host, len(self.columns), self.actor, self._value, going)
        starts = np.cumsum([0, *(len(column.rewards) for column in self.columns)])
        for point, difference in zip(branching.points, differences, strict=False):
            row = int(starts[point.lane]) + point.row
            self.buffer.advantages[row] = (1 - np.exp(self.buffer.log_probs[row])) * difference
        return env_steps

    # ---- updating --------------------------------------------------------------------------------
    def train(self, keep_going: Callable[[], bool]) -> UpdateReport:
        """`n_epochs` passes over the rollout in minibatches. Ends early where the KL divergence exceeds 1.5 times
        `target_kl`, or where `keep_going`, asked after each minibatch, says False."""
        settings, policy, buffer = self.settings, self.policy, self.buffer
        sums = np.zeros(5)
        self.minibatch = 0
        stop = False
        for _ in range(settings.n_epochs):
            for batch in buffer.batches(settings.batch_size, self.shuffle):
                # The last minibatch of a pass has another size each time: compiling for it would never end.
                loss_of = self._loss if len(batch.advantages) == settings.batch_size else self.loss
                loss, report = loss_of(
                    batch.observations, batch.masks, batch.actions, batch.old_log_prob, batch.advantages, batch.returns
                )
                if self.prior is not None and self.prior_kl > 0:
                    loss = loss + self.prior_kl * self._from_prior(self.prior, batch.observations, batch.masks)
                row = report.cpu().numpy()
                sums += row
                self.minibatch += 1
                if settings.target_kl is not None and row[0] > 1.5 * settings.target_kl:
                    stop = True
                    break
                policy.optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                th.nn.utils.clip_grad_norm_(policy.parameters(), settings.max_grad_norm)
                policy.optimizer.step()
                if not keep_going():
                    stop = True
                    break
            if stop:
                break
        kl, clip_fraction, entropy, policy_loss, value_loss = (sums / self.minibatch).tolist()
        self.minibatch = 0
        self.actor.refresh()
        explained = _explained_variance(buffer.values, buffer.returns)
        return UpdateReport(kl, clip_fraction, entropy, policy_loss, value_loss, explained)

    def _from_prior(self, prior: OptionPolicy, observations: th.Tensor, masks: th.Tensor) -> th.Tensor:
        """Mean KL divergence from the prior policy."""
        with th.no_grad():
            others = prior.logits(observations)
        return self.policy.joint.divergence(self.policy.logits(observations), others, masks).mean()

    def loss(
        self, observations: th.Tensor, masks: th.Tensor, actions: th.Tensor, old_log_prob: th.Tensor,
        advantages: th.Tensor, returns: th.Tensor,
    ) -> tuple[th.Tensor, th.Tensor]:  # fmt: skip
        """The loss of a minibatch (Schulman et al. 2017), and five numbers: KL, clip fraction, entropy, policy loss,
        value loss. The KL estimate is (r - 1) - log r (Schulman 2020, "Approximating KL divergence")."""
        clip_range = self.settings.clip_range
        values, log_prob, entropies = self.policy.evaluate_masked(observations, masks, actions)
        if len(advantages) > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        log_ratio = log_prob - old_log_prob
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1 - clip_range, 1 + clip_range)
        policy_loss = -th.min(advantages * ratio, advantages * clipped).mean()
        value_loss = functional.mse_loss(returns, values)
        entropy = entropies.mean()
        with th.no_grad():
            kl = (ratio - 1 - log_ratio).mean()
            clip_fraction = ((ratio - 1).abs() > clip_range).float().mean()
            report = th.stack((kl, clip_fraction, entropy, policy_loss, value_loss))
        return policy_loss - self.settings.ent_coef * entropy + self.settings.vf_coef * value_loss, report


def _explained_variance(values: NDArray[np.float32], returns: NDArray[np.float32]) -> float | None:
    variance = float(returns.var())
    return None if variance == 0 else 1 - float((returns - values).var()) / variance


def _compile(loss: Callable[..., tuple[th.Tensor, th.Tensor]]) -> Callable[..., tuple[th.Tensor, th.Tensor]]:
    """torch.compile with a cache that stays for later sessions."""
    check_compiler()
    folder = cache() / "torch"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder))
    compiled: Callable[..., tuple[th.Tensor, th.Tensor]] = th.compile(loss, dynamic=False)
    return compiled

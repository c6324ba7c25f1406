"""The decisions of a rollout and their SMDP targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch as th
from numpy.typing import NDArray

Float = NDArray[np.float32]


def smdp_targets(
    rewards: Float, values: Float, next_values: Float, discounts: Float, terminated: Float, done: Float,
    gae_lambda: float,
) -> Float:  # fmt: skip
    """Advantages of one env's decisions in order, each argument (n,).

    Generalised advantage estimation (Schulman et al. 2016) over a semi-Markov process: `rewards` are discounted within
    a decision of k env steps, `discounts` are gamma ** k, `next_values` V where it ended. `gae_lambda` counts
    decisions, not env steps. With k = 1 this is stable-baselines3's recursion, operation by operation.
    """
    advantages = np.zeros_like(rewards)
    last = np.float32(0.0)
    going = np.float32(1.0) - terminated
    chain = np.float32(1.0) - done
    for t in range(len(rewards) - 1, -1, -1):
        delta = rewards[t] + discounts[t] * next_values[t] * going[t] - values[t]
        last = delta + discounts[t] * np.float32(gae_lambda) * chain[t] * last
        advantages[t] = last
    return advantages


@dataclass
class Column:
    """The decisions of one lane, in order."""

    observations: list[NDArray[Any]] = field(default_factory=list)
    masks: list[NDArray[np.bool_]] = field(default_factory=list)
    actions: list[Sequence[int]] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    discounts: list[float] = field(default_factory=list)
    terminated: list[bool] = field(default_factory=list)
    done: list[bool] = field(default_factory=list)
    cuts: dict[int, NDArray[Any]] = field(default_factory=dict)
    """Row -> observation at an artificial cut, which is bootstrapped."""
    last: NDArray[Any] | None = None
    """Observation after the last decision."""


class Samples(NamedTuple):
    observations: th.Tensor
    masks: th.Tensor
    actions: th.Tensor
    """(n, heads) int64."""
    old_log_prob: th.Tensor
    advantages: th.Tensor
    returns: th.Tensor


class DecisionBuffer:
    """One rollout: as many rows as it had decisions, envs one after the other, as stable-baselines3 flattens them."""

    def __init__(self, gae_lambda: float, device: str) -> None:
        self.gae_lambda, self.device = gae_lambda, device
        self.size = 0
        """Decisions held."""
        self.observations: NDArray[Any] = np.zeros((0, 0), np.float32)
        self.masks = np.zeros((0, 0), np.bool_)
        self.actions = np.zeros((0, 0), np.int64)
        self.rewards = self.values = self.log_probs = self.advantages = self.returns = np.zeros(0, np.float32)
        self._tensors: Samples | None = None

    def fill(
        self,
        columns: Sequence[Column],
        evaluate: Callable[[NDArray[Any], NDArray[np.bool_], NDArray[np.int64]], tuple[Float, Float]],
        value: Callable[[NDArray[Any]], Float],
    ) -> None:
        """Hold a finished rollout in place of the one before, with its advantages and returns.

        `evaluate` gives values and log probabilities of decisions, `value` only V.
        """
        used = [column for column in columns if column.rewards]
        self.observations = np.stack([row for column in used for row in column.observations])
        self.masks = np.stack([row for column in used for row in column.masks])
        self.actions = np.array([row for column in used for row in column.actions], np.int64)
        self.rewards = np.array([r for column in used for r in column.rewards], np.float32)
        self.values, self.log_probs = evaluate(self.observations, self.masks, self.actions)
        extra = [row for c in used for row in (*([] if c.last is None else [c.last]), *c.cuts.values())]
        beyond = value(np.stack(extra)) if extra else np.zeros(0, np.float32)
        self.advantages = np.zeros_like(self.rewards)
        self.size = len(self.rewards)
        start = count = 0
        for column in used:
            end = start + len(column.rewards)
            after = np.zeros(end - start, np.float32)
            after[:-1] = self.values[start + 1 : end]
            if column.last is not None:
                after[-1] = beyond[count]
                count += 1
            for row in column.cuts:
                after[row] = beyond[count]
                count += 1
            self.advantages[start:end] = smdp_targets(
                self.rewards[start:end], self.values[start:end], after,
                np.array(column.discounts, np.float32), np.array(column.terminated, np.float32),
                np.array(column.done, np.float32), self.gae_lambda,
            )  # fmt: skip
            start = end
        self.returns = self.advantages + self.values
        self._tensors = None

    def batches(self, batch_size: int, shuffle: np.random.Generator) -> Iterator[Samples]:
        """One pass in random order."""
        if self._tensors is None:
            arrays = (
                self.observations, self.masks, self.actions, self.log_probs, self.advantages, self.returns
            )  # fmt: skip
            self._tensors = Samples(*(th.as_tensor(array, device=self.device) for array in arrays))
        order = th.as_tensor(shuffle.permutation(self.size), device=self.device)
        for start in range(0, self.size, batch_size):
            rows = order[start : start + batch_size]
            yield Samples(*(tensor[rows] for tensor in self._tensors))

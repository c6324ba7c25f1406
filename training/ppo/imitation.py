"""Self-imitation: learning again from the policy's own best decisions, in two modes.

`paper` (RL-GPT, appendix): whole trajectories, kept first in first out if they succeeded or their return is
at least mean + 2 standard deviations of the kept ones; a cross-entropy pass every 100 updates.
`oh2018` (Oh et al. 2018): single decisions whose SMDP return beats the value, drawn by that advantage.
Observations are kept in half precision, in memory and in checkpoints alike, but for those with a number that is too
large for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
import torch as th
from numpy.typing import NDArray

from rlgpt.training.ppo.policy import OptionPolicy

TRAJECTORIES = 500
PASS_EVERY = 100
PASS_BATCH = 1000
DECISIONS = 20_000
REPLAYS = 4
REPLAY_BATCH = 512
PRIORITY = 0.6
CORRECTION = 0.1
VALUE_WEIGHT = 0.01
LARGEST_HALF = 2048.0
"""Up to it half precision has every whole number: a larger category would become another one, and a number above 65,504
infinite, from which a network learns to answer nothing but NaN."""

Arrays = dict[str, NDArray[Any]]


@dataclass
class Trajectory:
    """The decisions of one episode so far."""

    observations: list[NDArray[Any]] = field(default_factory=list)
    masks: list[NDArray[np.bool_]] = field(default_factory=list)
    actions: list[Sequence[int]] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    discounts: list[float] = field(default_factory=list)

    def add(
        self, observation: NDArray[Any], mask: NDArray[np.bool_], action: Sequence[int], reward: float, discount: float
    ) -> None:
        self.observations.append(_half(observation))
        self.masks.append(mask)
        self.actions.append(action)
        self.rewards.append(reward)
        self.discounts.append(discount)

    def returns(self) -> NDArray[np.float32]:
        """SMDP return of each decision of a complete episode."""
        result = np.zeros(len(self.rewards), np.float32)
        last = 0.0
        for t in range(len(result) - 1, -1, -1):
            last = self.rewards[t] + self.discounts[t] * last
            result[t] = last
        return result

    def save(self) -> Arrays:
        if not self.rewards:
            return {}
        return {
            "observations": np.stack(self.observations),
            "masks": np.stack(self.masks),
            "actions": np.array(self.actions, np.int64),
            "rewards": np.array(self.rewards, np.float64),
            "discounts": np.array(self.discounts, np.float64),
        }

    @classmethod
    def load(cls, arrays: Arrays) -> Trajectory:
        if not arrays:
            return cls()
        return cls(
            list(map(_half, arrays["observations"])), list(arrays["masks"]),
            [tuple(map(int, a)) for a in arrays["actions"]],
            [float(r) for r in arrays["rewards"]], [float(d) for d in arrays["discounts"]],
        )  # fmt: skip


class Imitation(Protocol):
    """What both modes offer the algorithm."""

    pending: dict[int, Trajectory]
    """Per lane, the episode in progress."""
    shuffle: np.random.Generator

    def finish(self, lane: int, success: bool, total: float) -> None:
        """The lane's episode ended."""

    def update(self, policy: OptionPolicy, number: int, max_grad_norm: float) -> int:
        """Learn after PPO update `number` (from 1); how many gradient steps were made."""

    def drop(self, first_head: Collection[int]) -> None:
        """Forget decisions that took these first-head actions: their source changed."""

    def save(self) -> tuple[dict[str, Any], Arrays]: ...

    def restore(self, fields: dict[str, Any], arrays: Arrays) -> None: ...


class PaperImitation:
    def __init__(self, weight: float, shuffle: np.random.Generator) -> None:
        self.weight, self.shuffle = weight, shuffle
        self.pending: dict[int, Trajectory] = {}
        self.trajectories: deque[tuple[float, Trajectory]] = deque(maxlen=TRAJECTORIES)

    def finish(self, lane: int, success: bool, total: float) -> None:
        trajectory = self.pending.pop(lane, Trajectory())
        if trajectory.rewards and (success or total >= self.threshold()):
            self.trajectories.append((total, trajectory))

    def threshold(self) -> float:
        """Mean + 2 sd of the kept returns; with nothing kept every trajectory is a beginning."""
        if not self.trajectories:
            return -float("inf")
        returns = np.array([total for total, _ in self.trajectories])
        return float(returns.mean() + 2 * returns.std())

    def update(self, policy: OptionPolicy, number: int, max_grad_norm: float) -> int:
        if number % PASS_EVERY or not self.trajectories:
            return 0
        observations, masks, actions = _rows([trajectory for _, trajectory in self.trajectories], policy.device)
        order = th.as_tensor(self.shuffle.permutation(len(actions)), device=policy.device)
        steps = 0
        for start in range(0, len(order), PASS_BATCH):
            rows = order[start : start + PASS_BATCH]
            _, log_prob, _ = policy.evaluate_masked(_whole(observations[rows]), masks[rows], actions[rows])
            _step(policy, -self.weight * log_prob.mean(), max_grad_norm)
            steps += 1
        return steps

    def drop(self, first_head: Collection[int]) -> None:
        remaining = [(total, _without(trajectory, first_head)) for total, trajectory in self.trajectories]
        self.trajectories = deque(((t, each) for t, each in remaining if each.rewards), maxlen=TRAJECTORIES)
        self.pending = {lane: _without(t, first_head) for lane, t in self.pending.items()}

    def save(self) -> tuple[dict[str, Any], Arrays]:
        fields = {
            "returns": [total for total, _ in self.trajectories],
            "lengths": [len(trajectory.rewards) for _, trajectory in self.trajectories],
        }
        return fields, _joined([trajectory for _, trajectory in self.trajectories])

    def restore(self, fields: dict[str, Any], arrays: Arrays) -> None:
        parts = _split(arrays, fields["lengths"])
        self.trajectories = deque(zip(fields["returns"], parts, strict=True), maxlen=TRAJECTORIES)


class OhImitation:
    def __init__(self, weight: float, shuffle: np.random.Generator) -> None:
        self.weight, self.shuffle = weight, shuffle
        self.pending: dict[int, Trajectory] = {}
        self.decisions: deque[tuple[NDArray[Any], NDArray[np.bool_], Sequence[int], float]] = deque(maxlen=DECISIONS)

    def finish(self, lane: int, success: bool, total: float) -> None:
        trajectory = self.pending.pop(lane, Trajectory())
        self.decisions.extend(
            zip(trajectory.observations, trajectory.masks, trajectory.actions,
                trajectory.returns().tolist(), strict=True)
        )  # fmt: skip

    def update(self, policy: OptionPolicy, number: int, max_grad_norm: float) -> int:
        if not self.decisions:
            return 0
        device = policy.device
        observations = th.as_tensor(np.stack([row[0] for row in self.decisions]), device=device)
        masks = th.as_tensor(np.stack([row[1] for row in self.decisions]), device=device)
        actions = th.as_tensor(np.array([row[2] for row in self.decisions], np.int64), device=device)
        returns = th.as_tensor(np.array([row[3] for row in self.decisions], np.float32), device=device)
        with th.no_grad():
            values = th.cat([policy.values(_whole(part)) for part in th.split(observations, 8192)])
        priorities = ((returns - values).clamp(min=0.0).cpu().numpy().astype(np.float64) + 1e-6) ** PRIORITY
        chances = priorities / priorities.sum()
        steps = 0
        for _ in range(REPLAYS):
            drawn = self.shuffle.choice(len(chances), REPLAY_BATCH, p=chances)
            rows = th.as_tensor(drawn, device=device)
            correction = (len(chances) * chances[drawn]) ** -CORRECTION
            weights = th.as_tensor((correction / correction.max()).astype(np.float32), device=device)
            value, log_prob, _ = policy.evaluate_masked(_whole(observations[rows]), masks[rows], actions[rows])
            gain = (returns[rows] - value).clamp(min=0.0)
            loss = (weights * (-log_prob * gain.detach() + VALUE_WEIGHT * 0.5 * gain.square())).mean()
            _step(policy, self.weight * loss, max_grad_norm)
            steps += 1
        return steps

    def drop(self, first_head: Collection[int]) -> None:
        self.decisions = deque((row for row in self.decisions if row[2][0] not in first_head), maxlen=DECISIONS)
        self.pending = {lane: _without(t, first_head) for lane, t in self.pending.items()}

    def save(self) -> tuple[dict[str, Any], Arrays]:
        if not self.decisions:
            return {}, {}
        return {}, {
            "observations": np.stack([row[0] for row in self.decisions]),
            "masks": np.stack([row[1] for row in self.decisions]),
            "actions": np.array([row[2] for row in self.decisions], np.int64),
            "returns": np.array([row[3] for row in self.decisions], np.float64),
        }

    def restore(self, fields: dict[str, Any], arrays: Arrays) -> None:
        self.decisions = deque(maxlen=DECISIONS)
        if arrays:
            actions = [tuple(map(int, action)) for action in arrays["actions"]]
            observations = map(_half, arrays["observations"])
            rows = zip(observations, arrays["masks"], actions, arrays["returns"].tolist(), strict=True)
            self.decisions.extend(rows)


def make_imitation(
    mode: Literal["none", "paper", "oh2018"], weight: float, shuffle: np.random.Generator
) -> Imitation | None:
    if mode == "none":
        return None
    return PaperImitation(weight, shuffle) if mode == "paper" else OhImitation(weight, shuffle)


def _step(policy: OptionPolicy, loss: th.Tensor, max_grad_norm: float) -> None:
    policy.optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    th.nn.utils.clip_grad_norm_(policy.parameters(), max_grad_norm)
    policy.optimizer.step()


def _half(observation: NDArray[Any]) -> NDArray[Any]:
    if observation.dtype != np.float32 or not np.abs(observation).max(initial=0.0) <= LARGEST_HALF:
        return observation
    return observation.astype(np.float16)


def _whole(observations: th.Tensor) -> th.Tensor:
    return observations if observations.dtype == th.uint8 else observations.float()


def _rows(trajectories: Sequence[Trajectory], device: th.device) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
    arrays = _joined(trajectories)
    names = ("observations", "masks", "actions")
    observations, masks, actions = (th.as_tensor(arrays[name], device=device) for name in names)
    return observations, masks, actions


def _joined(trajectories: Sequence[Trajectory]) -> Arrays:
    parts = [trajectory.save() for trajectory in trajectories]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}


def _split(arrays: Arrays, lengths: Sequence[int]) -> list[Trajectory]:
    edges = np.cumsum([0, *lengths])
    return [
        Trajectory.load({name: array[start:end] for name, array in arrays.items()}) for start, end in pairwise(edges)
    ]


def _without(trajectory: Trajectory, first_head: Collection[int]) -> Trajectory:
    keep = [row for row, action in enumerate(trajectory.actions) if action[0] not in first_head]
    return Trajectory(
        [trajectory.observations[row] for row in keep], [trajectory.masks[row] for row in keep],
        [trajectory.actions[row] for row in keep], [trajectory.rewards[row] for row in keep],
        [trajectory.discounts[row] for row in keep],
    )  # fmt: skip

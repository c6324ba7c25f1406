"""Branches for credit (the vine estimate of Schulman et al. 2015, "Trust Region Policy Optimization"): the advantage of
some decisions of a rollout is measured by restoring their state and playing on.

From each state the action that was taken and another one, drawn from the policy, are played `repeats` times, each
followed by the policy for `env_steps` env steps, then by its value. With Q the mean returns and p the probability of
the action that was taken, its advantage is (1 - p) (Q(taken) - Q(other)). Restoring is used in training only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlgpt.agents.contracts import Branches
from rlgpt.training.host.api import Host
from rlgpt.training.options.lane import EpisodeResult, Lane
from rlgpt.training.options.policies import draw, probability
from rlgpt.training.options.runner import OptionRunner
from rlgpt.training.ppo.policy import Actor
from rlgpt.training.ppo.setup import Setup
from rlgpt.training.worlds.optional_parts import Reseeds, offers

DRAWS = 8
"""From the policy; where none would be another action than the one that was taken it has hardly a choice."""
MOST_DRAWS = 1_000
"""For the other action of a decision that is kept, which takes DRAWS on average. A network that has diverged gives the
same action for ever."""
Action = tuple[int, ...]


@dataclass(frozen=True)
class BranchPoint:
    """A decision of the rollout, as it was when it was made."""

    lane: int
    row: int
    """Among the lane's decisions of this rollout."""
    seed: int
    state: bytes
    view: bytes | None
    """Whole view at the episode's start."""
    stream: list[Any]
    trouble: list[int]
    taken: Action
    other: Action


class Job(NamedTuple):
    point: int
    place: int
    """0: the action that was taken, 1: the other."""
    repeat: int


@dataclass
class Branching:
    """Samples decisions of a rollout and measures their advantages."""

    setup: Setup
    settings: Branches
    gamma: float
    points: list[BranchPoint] = field(default_factory=list)
    seen: int = 0
    """Decisions of this rollout that could have been sampled."""
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    seed: tuple[int, ...] = ()

    def begin(self, *seed: int) -> None:
        """A new rollout."""
        self.points, self.seen, self.seed = [], 0, seed
        self.random = np.random.default_rng(seed)

    def consider(self, lane: Lane, logits: NDArray[np.float32], taken: Action, row: int) -> None:
        """Reservoir sampling: of the decisions of the rollout in which DRAWS would give another action every one is as
        likely to be kept."""
        assert lane.mask is not None
        space = self.setup.space
        if self.random.random() < probability(logits, lane.mask, space, taken) ** DRAWS:
            return
        self.seen += 1
        place = len(self.points) if len(self.points) < self.settings.decisions else int(self.random.integers(self.seen))
        if place >= self.settings.decisions:
            return
        drawn = (draw(logits, lane.mask, space, self.random) for _ in range(MOST_DRAWS))
        other = next((action for action in drawn if action != taken), None)
        if other is None:
            return
        point = BranchPoint(
            lane.index, row, lane.seed, lane.env.save(), lane.start_view, lane.stream.save(), lane.trouble.save(),
            taken, other,
        )  # fmt: skip
        self.points[place : place + 1] = [point]

    def advantages(
        self, host: Host, lanes: int, actor: Actor, value: Callable[[NDArray[Any]], NDArray[np.float32]],
        going: Callable[[], bool],
    ) -> tuple[list[float], int]:  # fmt: skip
        """Q(taken) - Q(other) of each point, and the env steps that it took; none where `going` said no."""
        player = _Player(self, actor, value)
        if not player.jobs:
            return [], 0
        setup = self.setup
        runner = OptionRunner(
            setup.world, host, setup.space, [setup.lane(index) for index in range(lanes)], player, player,
            observation=setup.observation, gamma=self.gamma, target=setup.target,
        )  # fmt: skip
        runner.start()
        while any(lane.phase != "idle" for lane in runner.lanes):
            if not going():
                runner.rest()
                break
            runner.tick()
        for lane in runner.lanes:
            lane.env.close()
        return player.differences(), runner.env_steps


@dataclass
class _Branch:
    """What a lane plays."""

    job: Job
    forced: Action | None
    until: int = 0
    """Env steps of the episode at which it ends."""
    total: float = 0.0
    discount: float = 1.0


class _Player:
    """Chooser and listener of the branches."""

    def __init__(
        self, branching: Branching, actor: Actor, value: Callable[[NDArray[Any]], NDArray[np.float32]]
    ) -> None:  # fmt: skip
        self._branching, self._actor, self._value = branching, actor, value
        repeats = branching.settings.repeats
        self.jobs = deque(
            Job(point, place, repeat)
            for point in range(len(branching.points))
            for place in range(2)
            for repeat in range(repeats)
        )
        self._returns = np.full((len(branching.points), 2, repeats), np.nan)

    def differences(self) -> list[float]:
        if np.isnan(self._returns).any():
            return []
        means = self._returns.mean(axis=2)
        gaps: list[float] = (means[:, 0] - means[:, 1]).tolist()
        return gaps

    def on_start(self, lane: Lane) -> bool:
        if not self.jobs:
            return False
        job = self.jobs.popleft()
        point = self._branching.points[job.point]
        lane.seed, lane.episode = point.seed, job.point
        # Both actions meet the same chances: what differs between them is then less of an accident.
        lane.rng = np.random.default_rng(self._chances(job))
        lane.note = _Branch(job, (point.taken, point.other)[job.place])
        return True

    def _chances(self, job: Job) -> tuple[int, ...]:
        return (*self._branching.seed, job.point, job.repeat)

    def on_reset(self, lane: Lane) -> None:
        branch: _Branch = lane.note
        point = self._branching.points[branch.job.point]
        lane.env.restore(point.state)
        if offers(lane.env, Reseeds):
            lane.env.reseed(int(np.random.default_rng((*self._chances(branch.job), 1)).integers(1 << 31)))
        lane.start_view, lane.moved = point.view, point.view is not None
        branch.until = lane.env.steps + self._branching.settings.env_steps

    def choose(self, lanes: Sequence[Lane]) -> list[Action | None]:
        return [self._next(lane) for lane in lanes]

    def _next(self, lane: Lane) -> Action | None:
        branch: _Branch = lane.note
        if branch.forced is not None:
            action, branch.forced = branch.forced, None
            point = self._branching.points[branch.job.point]
            lane.stream.restore(lane.env, point.stream)
            lane.trouble.restore(point.trouble)
            return action
        assert lane.observation is not None and lane.mask is not None
        row = lane.observation[np.newaxis]
        if lane.env.steps >= branch.until:
            self._finish(branch, float(self._value(row)[0]))
            return None
        return draw(self._actor.logits(row)[0], lane.mask, self._branching.setup.space, lane.rng)

    def on_decision(self, lane: Lane) -> None:
        branch: _Branch = lane.note
        branch.total += branch.discount * lane.reward
        branch.discount *= lane.discount

    def on_end(self, lane: Lane, result: EpisodeResult) -> None:
        value = 0.0
        if result.end == "truncated":  # the world broke off what would have gone on
            left = max(0.0, (lane.horizon - lane.env.steps) / lane.env.task.horizon)
            row = self._branching.setup.observation.read(lane.env, lane.stream, left)
            value = float(self._value(row[np.newaxis])[0])
        self._finish(lane.note, value)

    def _finish(self, branch: _Branch, value: float) -> None:
        self._returns[branch.job] = branch.total + branch.discount * value

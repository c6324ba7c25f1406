"""The reward of a configuration: named terms, weighted and summed per env step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite
from typing import Any

from rlgpt.agents.contracts import RewardTerm
from rlgpt.training.worlds.optional_parts import CountsObtained, offers
from rlgpt.training.worlds.protocol import Env, Feature, World

NEAR = 8.0
"""Distance (in the world's unit) at which the observed d_min is one half."""
LARGEST = 1e15
"""Of a reward. The loss squares sums of rewards in single precision, which ends at 3e38, and after an infinite loss a
network answers nothing but NaN."""


class RewardError(ValueError):
    """A reward term is impossible or gave no finite number; the sentence is the argument."""


class Milestone:
    """1 the first time the milestone is reached in an episode; whether it is, is observed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.reached = False

    def start(self, env: Env) -> None:
        self.reached = self.name in env.milestones()

    def step(self, env: Env, reached: frozenset[str] | None) -> float:
        if reached is None or self.reached or self.name not in reached:
            return 0.0
        self.reached = True
        return 1.0

    def observed(self) -> float:
        return float(self.reached)

    def save(self) -> list[Any]:
        return [self.reached]

    def restore(self, env: Env, state: list[Any]) -> None:
        (self.reached,) = state


class Distance:
    """Running minimum d_min of the distance to the target in sight: r = max(0, previous d_min - d_min).

    d_min is observed, unchanged while the target is unseen, and forgotten when the target is obtained: a
    new milestone, or a higher count where the world counts (`CountsObtained`).
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self.nearest: float | None = None
        self._count: Callable[[], int] = int
        self._obtained = 0

    def start(self, env: Env) -> None:
        self._count = lambda: len(env.milestones())
        if offers(env, CountsObtained):
            self._count = partial(env.obtained, self.target)
        self._obtained = self._count()
        self.nearest = self._distance(env)

    def step(self, env: Env, reached: frozenset[str] | None) -> float:
        obtained = self._count()
        if obtained != self._obtained:
            self._obtained, self.nearest = obtained, None
        distance = self._distance(env)
        if distance is None:
            return 0.0
        if self.nearest is None:
            self.nearest = distance
            return 0.0
        gain = max(0.0, self.nearest - distance)
        self.nearest = min(self.nearest, distance)
        return gain

    def _distance(self, env: Env) -> float | None:
        """A world may call a target that it does not see infinitely far: unseen, or the network would learn from it."""
        distance = env.distance(self.target)
        return float(distance) if distance is not None and isfinite(distance) else None

    def observed(self) -> float:
        return 1.0 if self.nearest is None else self.nearest / (self.nearest + NEAR)

    def save(self) -> list[Any]:
        return [self.nearest, self._obtained]

    def restore(self, env: Env, state: list[Any]) -> None:
        self.start(env)
        self.nearest, self._obtained = state


class RewardStream:
    """The reward of one env, episode after episode."""

    def __init__(self, terms: Sequence[RewardTerm], world: World) -> None:
        self.names = tuple(_name(term) for term in terms)
        self.weights = tuple(term.weight for term in terms)
        self.generated: int | None = None
        """Index of the generated term, whose value comes from the action host."""
        self._task: list[int] = []
        self._world: list[int] = []
        self._step: list[int] = []
        self._remembering: list[tuple[int, Milestone | Distance]] = []
        for index, term in enumerate(terms):
            if term.term == "generated":
                if self.generated is not None:
                    raise RewardError("A configuration takes at most one generated reward.")
                self.generated = index
            elif term.term == "milestone" or term.term == "distance":
                self._remembering.append((index, _remembering(term, world)))
            else:
                {"task": self._task, "world": self._world, "step": self._step}[term.term].append(index)
        self.totals = [0.0] * len(terms)
        """Weighted sums of the episode, one per term."""

    def start(self, env: Env) -> None:
        self.totals = [0.0] * len(self.names)
        for _, term in self._remembering:
            term.start(env)

    def step(self, env: Env, world_reward: float, success: bool, news: bool) -> float:
        """The reward of an env step but for the generated term. `news`: whether `Env.novelty` has grown or the
        episode is over: only then can a milestone be new.

        Raises RewardError if it is no number, or `LARGEST` or more.
        """
        total = 0.0
        totals, weights = self.totals, self.weights
        for index in self._step:
            totals[index] += weights[index]
            total += weights[index]
        if success:
            for index in self._task:
                totals[index] += weights[index]
                total += weights[index]
        if world_reward:
            for index in self._world:
                value = weights[index] * float(world_reward)  # numpy's float32 would add up less exactly
                totals[index] += value
                total += value
        reached = env.milestones() if news and self._remembering else None
        for index, term in self._remembering:
            value = term.step(env, reached)
            if value:
                value *= weights[index]
                totals[index] += value
                total += value
        if not abs(total) < LARGEST:
            bad = next((n for n, t in zip(self.names, totals, strict=True) if not abs(t) < LARGEST), self.names[0])
            raise RewardError(f"The reward term {bad} gave {total} at step {env.steps} of an episode; training stops.")
        return total

    def add_generated(self, value: float, step: int) -> float:
        """The weighted generated reward, once the action host has answered."""
        index = self.generated
        if index is None:
            return 0.0
        if not abs(value) < LARGEST:
            raise RewardError(f"The generated reward gave {value} at step {step} of an episode; training stops.")
        value *= self.weights[index]
        self.totals[index] += value
        return value

    def by_name(self) -> dict[str, float]:
        """`totals` by name: terms may share one."""
        result = dict.fromkeys(self.names, 0.0)
        for name, total in zip(self.names, self.totals, strict=True):
            result[name] += total
        return result

    def features(self) -> tuple[Feature, ...]:
        """What the terms remember, as features the policy sees after the world's."""
        return tuple(
            Feature(f"nearest_{t.target}", 1, f"smallest distance d to {t.target} so far, d / (d + {NEAR:g})")
            if isinstance(t, Distance)
            else Feature(f"reached_{t.name}", 1, f"{t.name} was reached in this episode")
            for _, t in self._remembering
        )

    def save(self) -> list[Any]:
        """Plain data; `restore` continues the episode."""
        return [self.totals, [term.save() for _, term in self._remembering]]

    def restore(self, env: Env, state: list[Any]) -> None:
        self.totals = [float(total) for total in state[0]]
        for (_, term), saved in zip(self._remembering, state[1], strict=True):
            term.restore(env, saved)

    def observe(self) -> list[float]:
        return [term.observed() for _, term in self._remembering]


def _name(term: RewardTerm) -> str:
    return f"{term.term}:{term.argument}" if term.argument and term.term != "generated" else term.term


def _remembering(term: RewardTerm, world: World) -> Milestone | Distance:
    if term.term == "milestone":
        milestones = {name for each in world.tasks.values() for name in each.milestones}
        if term.argument not in milestones:
            raise RewardError(f"The world {world.name} has no milestone {term.argument!r}.")
        return Milestone(term.argument)
    if term.argument not in world.targets:
        raise RewardError(f"The world {world.name} measures no distance to {term.argument!r}.")
    return Distance(term.argument)

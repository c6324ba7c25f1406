"""Episodes of a fixed policy on given seeds, and what they add up to.

An episode depends only on its seed, the policy and the variant: not on the lanes it shares a process with. One that the
world broke off (`truncated`, such as a lost game) says nothing about the policy: its seed is played again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np

from rlgpt.agents.contracts import RewardTerm
from rlgpt.store.intervals import wilson
from rlgpt.training.host.api import Host, PlanItem, Programs
from rlgpt.training.options.dead_loops import DeadLoopWatch
from rlgpt.training.options.lane import EpisodeResult, Lane
from rlgpt.training.options.observation import Observation, make_env
from rlgpt.training.options.observer import FrameSnapshot, Observer, Signal, obey
from rlgpt.training.options.policies import PlanPolicy, UniformPolicy
from rlgpt.training.options.rewards import RewardStream
from rlgpt.training.options.runner import Chooser, OptionRunner
from rlgpt.training.options.slots import ActionSpace, CodedAction, Slot, noop_of
from rlgpt.training.options.tally import tally
from rlgpt.training.worlds.protocol import World, expect, side_by_side

Variant = Literal["full", "greedy", "sampled", "options_off", "primitives_off", "plan", "random", "prior", "script"]
PLAN_OPTION_STEPS = 200
"""Env steps after which follow_plan alone starts its sub-action afresh."""
MAX_PREDICATES = 64
REPEATS = 2
"""How often the seed of a truncated episode is played again; after that it counts as it is."""


class Policy(Protocol):
    space: ActionSpace
    terms: Sequence[RewardTerm]
    """The reward that is reported."""

    @property
    def observation(self) -> Observation | None:
        """None: looks at nothing but masks and predicates."""

    def chooser(self, space: ActionSpace, best: bool) -> Chooser:
        """`space` is the policy's own or a restriction of it; `best`: the most probable action."""


class FollowPlan:
    """follow_plan alone: executor `sequence`."""

    observation: Observation | None = None

    def __init__(
        self, world: World, plan: Sequence[PlanItem], sources: Mapping[str, str], *,
        options: Sequence[CodedAction] = (), terms: Sequence[RewardTerm] = (),
        max_option_steps: int = PLAN_OPTION_STEPS, names: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """`sources` by hash; `options` tells which of them are uninterruptible; `names` of the items, for usage."""
        known = dict(sources) | {option.source_hash: option.source for option in options}
        slots: list[Slot | None] = [
            Slot(
                f"{index}",
                names[index] if names else f"item_{index}",
                item.action.source_hash,
                index,
                item.action.arguments,
                max_option_steps,
            )
            for index, item in enumerate(plan)
        ]
        needed = {item.action.source_hash: known[item.action.source_hash] for item in plan}
        programs = Programs(needed, tuple(item.action for item in plan), (), tuple(item.done_when for item in plan))
        uninterruptible = frozenset(option.source_hash for option in options if option.uninterruptible)
        allowed = np.zeros(world.action_nvec[0], np.bool_)
        self.space = ActionSpace(world.action_nvec, noop_of(world), allowed, tuple(slots), programs, uninterruptible)
        self.terms = terms or (RewardTerm(term="task", weight=1.0),)

    def chooser(self, space: ActionSpace, best: bool) -> Chooser:
        return PlanPolicy(space)


@dataclass(frozen=True)
class EvaluationResult:
    variant: Variant
    episodes: list[EpisodeResult]
    """In the order of the seeds."""
    successes: int
    ci_low: float
    ci_high: float
    """Wilson, 95%."""
    return_mean: float
    length_mean: float
    dead_loops: int
    env_steps: int
    decisions: int
    funnel: dict[str, int]
    """Predicate name -> episodes in which it was ever true."""
    milestones: dict[str, int]
    option_usage: dict[str, int]
    end_reasons: dict[str, dict[str, int]]
    rewards: dict[str, float]
    complete: bool
    """False when the observer stopped it: only whole episodes count."""


def evaluate(
    world: World,
    task: str,
    policy: Policy,
    host: Host,
    seeds: Sequence[int],
    *,
    variant: Variant = "full",
    greedy: bool = False,
    horizon: int | None = None,
    predicates: Mapping[str, str] | None = None,
    record_actions: bool = False,
    observer: Observer | None = None,
    first: int = 0,
    n_envs: int = 8,
) -> EvaluationResult:
    """Play one episode per seed. `predicates`: name -> done_when, for the funnel (at most 64 with the plan's).

    `greedy`: the most probable action in place of a sampled one, as in the variant `greedy`; `full` and `sampled` are
    the policy as it is. `options_off` and `primitives_off` mask one kind; `random` is uniform over the same masked
    actions; `plan`, `script` and `prior` play the policy given (a FollowPlan, a policy trained for 0 env steps).
    `first` is the index of the first seed in its split. The horizon is the task's unless given.
    """
    space = policy.space
    if variant == "options_off":
        space = space.without_options()
    elif variant == "primitives_off":
        space = space.without_primitives()
    space, bits = _with_predicates(space, predicates or {})
    chooser = UniformPolicy(space) if variant == "random" else policy.chooser(space, greedy or variant == "greedy")
    host.load(space.programs)
    published = world.tasks[task]
    limit = min(horizon or published.horizon, published.horizon)
    count = side_by_side(world, min(n_envs, len(seeds)))
    games = _Games(world, seeds, first, count)
    lanes = [
        Lane(
            index,
            make_env(world, task, policy.observation) if policy.observation else world.make(task),
            RewardStream(policy.terms, world),
            DeadLoopWatch(limit),
            limit,
        )
        for index in range(count)
    ]
    runner = OptionRunner(
        world, host, space, lanes, chooser, games,
        observation=policy.observation, predicates=bool(space.programs.predicates), record=record_actions,
    )  # fmt: skip
    complete = _play(runner, observer or Observer(), world)
    for lane in lanes:
        lane.env.close()
    return _result(variant, games.in_order(), bits, complete)


def _with_predicates(space: ActionSpace, named: Mapping[str, str]) -> tuple[ActionSpace, dict[str, int]]:
    expressions = list(space.programs.predicates)
    for expression in named.values():
        if expression not in expressions:
            expressions.append(expression)
    if len(expressions) > MAX_PREDICATES:
        raise ValueError(f"{len(expressions)} predicates are asked for, at most {MAX_PREDICATES} can be.")
    bits = {name: expressions.index(expression) for name, expression in named.items()}
    return replace(space, programs=replace(space.programs, predicates=tuple(expressions))), bits


class _Games:
    """The runner's listener: hands out the seeds in order and collects the episodes."""

    def __init__(self, world: World, seeds: Sequence[int], first: int, lanes: int) -> None:
        self._world, self._seeds, self._first, self._ahead = world, seeds, first, lanes
        self._left = deque(range(len(seeds)))
        """Places in `seeds` that are still to be played."""
        self._repeated = Counter[int]()
        self._results: dict[int, EpisodeResult] = {}

    def on_start(self, lane: Lane) -> bool:
        if not self._left:
            return False
        place = self._left.popleft()
        lane.episode = self._first + place
        lane.seed = self._seeds[place]
        lane.rng = np.random.default_rng((lane.seed, 2))
        lane.env.reset(lane.seed)
        expect(self._world, self._seeds[place + self._ahead :][:1])
        return True

    def on_decision(self, lane: Lane) -> None:
        pass

    def on_end(self, lane: Lane, result: EpisodeResult) -> None:
        if result.end == "truncated" and self._repeated[result.index] < REPEATS:
            self._repeated[result.index] += 1
            self._left.appendleft(result.index - self._first)
        else:
            self._results[result.index] = result

    def in_order(self) -> list[EpisodeResult]:
        return [self._results[index] for index in sorted(self._results)]


def _play(runner: OptionRunner, observer: Observer, world: World) -> bool:
    runner.start()
    signal: Signal = "go"
    while any(lane.phase != "idle" for lane in runner.lanes):
        runner.tick()
        lane = runner.lanes[0]
        if lane.phase != "idle" and observer.wants_frame():
            slot = runner.space.slots[lane.slot] if lane.slot >= 0 else None
            name = slot.name if slot else world.primitives[lane.action[0]].name if lane.action else ""
            observer.on_frame(FrameSnapshot(lane.episode, lane.env.steps, name, lane.env.frame()))
        signal = obey(observer)
        if signal != "go":
            return False
    return True


def _result(
    variant: Variant, episodes: list[EpisodeResult], bits: Mapping[str, int], complete: bool
) -> EvaluationResult:
    total = tally(episodes)
    fields: dict[str, Any] = total.fields()
    low, high = wilson(total.successes, total.episodes)
    return EvaluationResult(
        variant=variant,
        episodes=episodes,
        successes=total.successes,
        ci_low=low,
        ci_high=high,
        return_mean=fields["return_mean"] or 0.0,
        length_mean=fields["length_mean"] or 0.0,
        dead_loops=total.dead_loops,
        env_steps=total.env_steps,
        decisions=total.decisions,
        funnel={name: sum(e.truths >> bit & 1 for e in episodes) for name, bit in bits.items()},
        milestones=fields["milestones"],
        option_usage=fields["option_usage"],
        end_reasons=fields["end_reasons"],
        rewards=fields["rewards"],
        complete=complete,
    )

"""Episodes of a fixed policy on given seeds, and what they add up to.

An episode depends only on its seed, the policy and the variant: not on the lanes it shares a process with. One that the
world broke off (`truncated`, such as a lost game) says nothing about the policy: its seed is played again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np

from rlgpt.agents.contracts import RewardTerm
from rlgpt.store.failures import cover, ended
from rlgpt.store.intervals import wilson
from rlgpt.training.host.api import Host, PlanItem, Programs
from rlgpt.training.options.dead_loops import DeadLoopWatch
from rlgpt.training.options.film import Camera, Film, FrameSnapshot, Reels
from rlgpt.training.options.lane import EpisodeResult, Lane
from rlgpt.training.options.observation import Observation, make_env
from rlgpt.training.options.observer import Observer, Signal, obey
from rlgpt.training.options.policies import PlanPolicy, UniformPolicy
from rlgpt.training.options.rewards import RewardStream
from rlgpt.training.options.runner import Chooser, OptionRunner
from rlgpt.training.options.slots import ActionSpace, CodedAction, Slot, noop_of
from rlgpt.training.options.tally import tally
from rlgpt.training.rollouts.trace import Shower, Trace
from rlgpt.training.worlds.optional_parts import expect, side_by_side
from rlgpt.training.worlds.protocol import World

Variant = Literal["full", "greedy", "sampled", "options_off", "primitives_off", "plan", "random", "prior", "script"]
PLAN_OPTION_STEPS = 200
"""Env steps after which follow_plan alone starts its sub-action afresh."""
MAX_PREDICATES = 64
SHOWN_LOST = 4
"""Lost episodes of an evaluation of which it is kept how they went; more where more sub-actions lost any."""
SHOWN_LACKING = 8
"""Things that lost worlds lack of which it is counted in how many."""
KEPT_FILMS = 3
"""Lost episodes of an evaluation that are kept frame by frame, of the most frequent ways to be lost; and one that
succeeded."""
SUCCESS = "success"
REPEATS = 2
"""How often the seed of a truncated episode is played again; after that it counts as it is."""


class Policy(Protocol):
    space: ActionSpace
    terms: Sequence[RewardTerm]
    """The reward that is reported."""

    @property
    def observation(self) -> Observation | None:
        """None: the plan is followed by masks and predicates alone."""

    def chooser(self, space: ActionSpace, best: bool) -> Chooser:
        """`space` is the policy's own or a restriction of it; `best`: the most probable action."""


class FollowPlan:
    """follow_plan alone: executor `sequence`."""

    observation: Observation | None = None

    def __init__(
        self, world: World, plan: Sequence[PlanItem], sources: Mapping[str, str], *,
        options: Sequence[CodedAction] = (), names: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """`sources` by hash; `options` tells which of them are uninterruptible; `names` of the items, for usage."""
        sources_by_hash = dict(sources) | {option.source_hash: option.source for option in options}
        slots: list[Slot | None] = [
            Slot(
                f"{index}",
                names[index] if names else f"item_{index}",
                item.action.source_hash,
                index,
                item.action.arguments,
                PLAN_OPTION_STEPS,
            )
            for index, item in enumerate(plan)
        ]
        needed = {item.action.source_hash: sources_by_hash[item.action.source_hash] for item in plan}
        guards = [index for index, item in enumerate(plan) if item.trigger]
        self._triggers = {index: len(plan) + place for place, index in enumerate(guards)}
        tests = (*(item.done_when for item in plan), *(plan[index].trigger for index in guards))
        programs = Programs(needed, tuple(item.action for item in plan), (), tests)
        uninterruptible = frozenset(option.source_hash for option in options if option.uninterruptible)
        allowed = np.zeros(world.action_nvec[0], np.bool_)
        self.space = ActionSpace(world.action_nvec, noop_of(world), allowed, tuple(slots), programs, uninterruptible)
        self.terms: Sequence[RewardTerm] = (RewardTerm(term="task", weight=1.0),)

    def chooser(self, space: ActionSpace, best: bool) -> Chooser:
        return PlanPolicy(space, self._triggers)


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
    failures: dict[str, Any]
    """See `failures_of`."""
    option_steps: dict[str, int]
    option_done: dict[str, int]
    """Slot name -> calls after which the predicate of that name held."""
    predicates: dict[str, int]
    """Predicate name -> its bit in `EpisodeResult.truths`."""
    moments: list[FrameSnapshot]
    """Some whole episodes, one after the other, where the observer films."""

    def reached(self, episode: EpisodeResult) -> list[str]:
        """The predicates that were ever true in it."""
        return [name for name, bit in self.predicates.items() if episode.truths >> bit & 1]


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
    option_predicates: Mapping[str, str] | None = None,
    record_actions: bool = False,
    observer: Observer | None = None,
    first: int = 0,
    n_envs: int = 8,
    traced: bool = False,
    names: Sequence[str] = (),
) -> EvaluationResult:
    """Play one episode per seed. `predicates`: name -> done_when, for the funnel (at most 64 with the plan's).
    `option_predicates`: the same of what belongs to no funnel, to count the calls after which it holds.

    `greedy`: the most probable action in place of a sampled one, as in the variant `greedy`; `full` and `sampled` are
    the policy as it is. `options_off` and `primitives_off` mask one kind; `random` is uniform over the same masked
    actions; `plan`, `script` and `prior` play the policy given (a FollowPlan, a policy trained for 0 env steps).
    `first` is the index of the first seed in its split. The horizon is the task's unless given.
    `traced`: keep how lost episodes went; `names` of the items that follow_plan runs.
    """
    space = policy.space
    if variant == "options_off":
        space = space.without_options()
    elif variant == "primitives_off":
        space = space.without_primitives()
    predicates = predicates or {}
    space, every_bit = _with_predicates(space, {**predicates, **(option_predicates or {})})
    bits = {name: every_bit[name] for name in predicates}
    space = replace(space, programs=replace(space.programs, lines=traced))
    chooser = UniformPolicy(space) if variant == "random" else policy.chooser(space, greedy or variant == "greedy")
    host.load(space.programs)
    published = world.tasks[task]
    limit = min(horizon or published.horizon, published.horizon)
    count = side_by_side(world, min(n_envs, len(seeds)))
    watching = observer or Observer()
    trace = (lambda: Trace(space, names)) if traced else None
    camera = Camera(world, space) if watching.films else None
    games = _Games(world, seeds, first, count, space, bits, every_bit, trace, camera)
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
    complete = _play(runner, watching)
    for lane in lanes:
        lane.env.close()
    shower = Shower(world, space.programs.sources)
    failures = failures_of(games.in_order(), bits, games.traces, shower)
    return _result(variant, games, bits, complete, failures)


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

    def __init__(
        self, world: World, seeds: Sequence[int], first: int, lanes: int, space: ActionSpace, bits: Mapping[str, int],
        every_bit: Mapping[str, int], trace: Callable[[], Trace] | None, camera: Camera | None,
    ) -> None:  # fmt: skip
        self._world, self._seeds, self._first, self._ahead = world, seeds, first, lanes
        self._places_left = deque(range(len(seeds)))
        """Places in `seeds` that are still to be played."""
        self._repeated = Counter[int]()
        self._results: dict[int, EpisodeResult] = {}
        self._trace, self._camera, self._space, self._bits = trace, camera, space, bits
        self._every_bit = every_bit
        self.reels = Reels()
        self.option_steps, self.option_done = Counter[str](), Counter[str]()
        self._episode: dict[int, tuple[Counter[str], Counter[str]]] = {}
        """The two counts of each lane's episode: one that is played again counts once."""
        self.traces: dict[int, Trace] = {}
        """Of lost episodes, by index."""

    def on_start(self, lane: Lane) -> bool:
        if not self._places_left:
            return False
        place = self._places_left.popleft()
        lane.episode = self._first + place
        lane.seed = self._seeds[place]
        lane.rng = np.random.default_rng((lane.seed, 2))
        lane.trace = self._trace() if self._trace else None
        self._episode[lane.index] = Counter[str](), Counter[str]()
        lane.film = Film(self._camera, lane.episode) if self._camera else None
        expect(self._world, self._seeds[place + self._ahead :][:1])
        return True

    def on_reset(self, lane: Lane) -> None:
        pass

    def on_decision(self, lane: Lane) -> None:
        slot = self._space.slots[lane.slot] if lane.slot >= 0 else None
        name = slot.name if slot else "primitive"
        steps, done = self._episode[lane.index]
        steps[name] += lane.steps
        bit = self._every_bit.get(name.partition("(")[0])
        if bit is not None:
            done[name] += lane.truths >> bit & 1

    def on_end(self, lane: Lane, result: EpisodeResult) -> None:
        if result.end == "truncated" and self._repeated[result.index] < REPEATS:
            self._repeated[result.index] += 1
            self._places_left.appendleft(result.index - self._first)
        else:
            self._results[result.index] = result
            steps, done = self._episode[lane.index]
            self.option_steps.update(steps)
            self.option_done.update(done)
            if isinstance(lane.trace, Trace) and not result.success:
                lane.trace.end(lane.env)
                self.traces[result.index] = lane.trace
            if isinstance(lane.film, Film):
                self.reels.add(self._kind(result), result.index, lane.film.end(result.return_))

    def _kind(self, result: EpisodeResult) -> str:
        """Episodes of one kind were lost at the same place in the same way."""
        if result.success:
            return SUCCESS
        lost = next((name for name, bit in self._bits.items() if not result.truths >> bit & 1), "")
        return f"{lost} {ended(result.end, result.cause)}"

    def in_order(self) -> list[EpisodeResult]:
        return [self._results[index] for index in sorted(self._results)]


def _play(runner: OptionRunner, observer: Observer) -> bool:
    runner.start()
    signal: Signal = "go"
    while any(lane.phase != "idle" for lane in runner.lanes):
        runner.tick()
        signal = obey(observer)
        if signal != "go":
            return False
    return True


def _result(
    variant: Variant, games: _Games, bits: Mapping[str, int], complete: bool, failures: dict[str, Any]
) -> EvaluationResult:
    episodes = games.in_order()
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
        failures=failures,
        option_steps=dict(sorted(games.option_steps.items())),
        option_done=dict(sorted(games.option_done.items())),
        predicates=dict(bits),
        moments=games.reels.most_frequent(KEPT_FILMS, SUCCESS),
    )


def failures_of(
    episodes: Sequence[EpisodeResult], bits: Mapping[str, int], traces: Mapping[int, Trace], shower: Shower
) -> dict[str, Any]:
    """What `tables.Evaluation.failures` keeps.

    `ends`: how the episodes ended, each cause of death by itself. `mean_step`: sub-action -> mean env step at which it
    was first done, over the episodes in which it was. `lost_at`: first sub-action that was never done -> how those
    episodes ended. `lost_worlds`: what a lost episode's survey says its world holds none of -> in how many, where the
    world tells. `won`: indices of the episodes that succeeded, to compare the same seeds of two evaluations. `lost`:
    how some of the lost ones went (`store/failures.py`).
    """
    lost = [e for e in episodes if not e.success]
    undone = {e.index: next((name for name, bit in bits.items() if not e.truths >> bit & 1), "") for e in lost}
    lost_at: dict[str, Counter[str]] = {}
    for episode in lost:
        lost_at.setdefault(undone[episode.index], Counter())[ended(episode.end, episode.cause)] += 1
    since = {name: [e.true_since[bit] for e in episodes if bit in e.true_since] for name, bit in bits.items()}
    brief = [
        {"index": e.index, "seed": e.seed, "end": e.end, "cause": e.cause, "steps": e.env_steps,
         "vitals": dict(e.vitals), "undone": undone[e.index], "doing": traces[e.index].last_moments[-1].doing}
        for e in lost if e.index in traces
    ]  # fmt: skip
    return {
        "ends": dict(Counter(ended(e.end, e.cause) for e in episodes).most_common()),
        "mean_step": {name: round(sum(steps) / len(steps), 1) for name, steps in since.items() if steps},
        "lost_at": {name: dict(ends.most_common()) for name, ends in lost_at.items()},
        "lost_worlds": _lacking(traces[e.index].survey for e in lost if e.index in traces),
        "won": [e.index for e in episodes if e.success],
        "lost": [dict(each) | shower.shown(traces[each["index"]]) for each in cover(brief, SHOWN_LOST)],
    }


def _lacking(surveys: Iterable[str]) -> dict[str, int]:
    """In how many of the surveys each clause is that says that something does not exist (`optional_parts.Surveys`)."""
    clauses = (clause.strip() for survey in surveys for clause in survey.split(";"))
    return dict(Counter(clause for clause in clauses if clause.startswith("no ")).most_common(SHOWN_LACKING))

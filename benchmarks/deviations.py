"""Which single deviations from a plan pay? `python -P benchmarks/deviations.py [--states 1200]`.

Plays the plan of `first_tries.py` on train seeds of a session seed that no session has, and keeps one state of each
episode, every one of its decisions as likely. From each state that an action is valid in, the action is played once and
the plan then to the end; the same with the plan alone, meeting the same chances. Prints, by the next milestone of the
plan, how many episodes the action won more than the plan, of how many states.
"""

from __future__ import annotations

import argparse
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlgpt.agents.contracts import RewardTerm, RlConfigReply
from rlgpt.training.host.api import Action, Host, PlanItem
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.options.lane import EpisodeResult, Lane
from rlgpt.training.options.runner import OptionRunner
from rlgpt.training.options.slots import FOLLOW, CodedAction
from rlgpt.training.ppo.setup import Setup, build_setup
from rlgpt.training.rollouts.script_bot import script_bot
from rlgpt.training.seeds import episode_seed
from rlgpt.training.worlds.crafter.world import make_first_try
from rlgpt.training.worlds.optional_parts import Reseeds, offers

TASK = "collect_diamond"
LANES = 16
SESSION_SEED = 9001


@dataclass(frozen=True)
class State:
    seed: int
    saved: bytes
    view: bytes | None
    """Whole view at the episode's start."""
    stream: list[Any]
    trouble: list[int]
    mask: Any
    stage: str
    """The next milestone."""


class Collector:
    """Plays the plan, and keeps a state of each episode by reservoir sampling."""

    def __init__(self, follow: tuple[int, ...], count: int, milestones: Sequence[str]) -> None:
        self._follow, self._left, self._milestones = follow, count, milestones
        self._episode = 0
        self.states: list[State] = []

    def on_start(self, lane: Lane) -> bool:
        if not self._left:
            return False
        self._left -= 1
        lane.episode, lane.seed = self._episode, episode_seed(SESSION_SEED, "train", self._episode)
        lane.note = {"random": np.random.default_rng((lane.seed, 7)), "seen": 0, "state": None}
        self._episode += 1
        return True

    def on_reset(self, lane: Lane) -> None:
        pass

    def choose(self, lanes: Sequence[Lane]) -> list[tuple[int, ...]]:
        for lane in lanes:
            note = lane.note
            note["seen"] += 1
            if note["random"].random() < 1 / note["seen"]:
                done = set(lane.env.milestones())
                stage = next((name for name in self._milestones if name not in done), "")
                note["state"] = State(
                    lane.seed, lane.env.save(), lane.start_view, lane.stream.save(), lane.trouble.save(), lane.mask,
                    stage,
                )  # fmt: skip
        return [self._follow] * len(lanes)

    def on_decision(self, lane: Lane) -> None:
        pass

    def on_end(self, lane: Lane, result: EpisodeResult) -> None:
        self.states.append(lane.note["state"])


class Deviator:
    """Plays each valid action once from each state, then the plan."""

    def __init__(self, follow: tuple[int, ...], states: Sequence[State], actions: Sequence[int]) -> None:
        self._follow, self._states = follow, states
        self._jobs = deque((i, a) for i, state in enumerate(states) for a in actions if state.mask[a])
        self.won: dict[tuple[int, int], bool] = {}

    def on_start(self, lane: Lane) -> bool:
        if not self._jobs:
            return False
        index, action = self._jobs.popleft()
        lane.seed, lane.episode, lane.rng = self._states[index].seed, index, np.random.default_rng((index, 3))
        lane.note = {"job": (index, action), "begun": False}
        return True

    def on_reset(self, lane: Lane) -> None:
        state = self._states[lane.episode]
        lane.env.restore(state.saved)
        assert offers(lane.env, Reseeds)
        lane.env.reseed(int(np.random.default_rng((lane.episode, 1)).integers(1 << 31)))
        lane.start_view, lane.moved = state.view, state.view is not None

    def choose(self, lanes: Sequence[Lane]) -> list[tuple[int, ...]]:
        return [self._next(lane) for lane in lanes]

    def _next(self, lane: Lane) -> tuple[int, ...]:
        if lane.note["begun"]:
            return self._follow
        lane.note["begun"] = True
        state = self._states[lane.episode]
        lane.stream.restore(lane.env, state.stream)
        lane.trouble.restore(state.trouble)
        return (lane.note["job"][1], *self._follow[1:])

    def on_decision(self, lane: Lane) -> None:
        pass

    def on_end(self, lane: Lane, result: EpisodeResult) -> None:
        self.won[lane.note["job"]] = result.success


def play(setup: Setup, host: Host, player: Collector | Deviator) -> int:
    """Env steps."""
    runner = OptionRunner(
        setup.world, host, setup.space, [setup.lane(index) for index in range(LANES)], player, player,
        observation=setup.observation, gamma=0.99, target=setup.target,
    )  # fmt: skip
    runner.start()
    while any(lane.phase != "idle" for lane in runner.lanes):
        runner.tick()
    for lane in runner.lanes:
        lane.env.close()
    return runner.env_steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=1200)
    parser.add_argument("--option-cap", type=int, default=16, help="env steps of a coded action")
    arguments = parser.parse_args()
    world = make_first_try()
    host = open_host(world, lanes=LANES, mode="locked")
    env = world.make(TASK)
    view = env.view(True)
    env.close()
    options, plan = [], []
    for step in script_bot(world, TASK):
        said = host.admit("action", step.source, [[view]])
        host.admit("done_when", step.done_when, [[view]])
        options.append(CodedAction(step.name, step.source, said.tree_hash))
        plan.append(PlanItem(step.done_when, Action(step.source_hash)))
    names = [primitive.name for primitive in world.primitives]
    config = RlConfigReply(
        target="", observation=list(world.default_features), reward=[RewardTerm(term="task", weight=1.0)],
        primitives=names, options=[FOLLOW, *(option.name for option in options)], plan_prior=0.4,
        option_cap=arguments.option_cap, horizon=world.tasks[TASK].horizon, env_steps=0,
    )  # fmt: skip
    setup = build_setup(world, TASK, config, options, plan, {}, [])
    host.load(setup.space.programs)
    actions = dict(enumerate(names))
    first = len(names)
    actions |= {first + i: f"{slot.name} (code)" for i, slot in enumerate(setup.space.slots) if slot is not None}
    follow = (setup.space.follow, *[0] * (len(setup.space.action_nvec) - 1))
    chain = [option.name for option in options]
    milestones = sorted(world.tasks[TASK].milestones, key=lambda name: chain.index(name) if name in chain else 99)
    collector = Collector(follow, arguments.states, milestones)
    env_steps = play(setup, host, collector)
    deviator = Deviator(follow, collector.states, list(actions))
    env_steps += play(setup, host, deviator)
    won = sum(deviator.won[index, setup.space.follow] for index in range(len(collector.states)))
    print(f"{len(collector.states)} states, {env_steps} env steps; the plan wins from {won}")
    gains: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (index, action), success in deviator.won.items():
        gain = int(success) - int(deviator.won[index, setup.space.follow])
        gains[action][collector.states[index].stage].append(gain)
    for action, name in actions.items():
        if action == setup.space.follow or action not in gains:
            continue
        every = [gain for by_stage in gains[action].values() for gain in by_stage]
        stages = (f"{stage} {sum(g):+d}/{len(g)}" for stage in milestones if (g := gains[action][stage]))
        print(f"{name:26s} {sum(every):+d}/{len(every)}: {', '.join(stages)}")
    host.close()


if __name__ == "__main__":
    main()

"""Recovery training: episodes that begin some decisions before the plan alone failed (after RecoveryChaining,
arXiv 2410.13979).

The states are collected by playing the plan on train seeds before the first update. They follow from the run's seed,
its configuration and its code, so a checkpoint does not hold them: a resumed run collects them again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rlgpt.training.host.api import Host
from rlgpt.training.options.lane import EpisodeResult, Lane
from rlgpt.training.options.runner import OptionRunner
from rlgpt.training.ppo.setup import Setup
from rlgpt.training.seeds import episode_seed, stream_seed

EARLIEST, LATEST = 60, 20
"""Decisions before the end of a lost episode between which a start lies; of a short one it lies in the first half."""
STARTS = 200
"""That are collected at most."""
SHARE = 0.1
"""Of the run's env steps that collecting them may take."""
FIRST = 1 << 20
"""Index of the first train seed that is played for this; training itself counts from 0."""


@dataclass(frozen=True)
class StartState:
    seed: int
    state: bytes
    """Env.save()."""
    view: bytes | None
    """Whole view at the episode's own start."""


@dataclass(frozen=True)
class Collected:
    starts: Sequence[StartState]
    env_steps: int

    def of(self, seed: int, episode: int, share: float) -> StartState | None:
        """Where a training episode begins, None for the start of its own seed."""
        if not self.starts:
            return None
        random = np.random.default_rng((stream_seed(seed, "recovery"), episode))
        return self.starts[int(random.integers(len(self.starts)))] if random.random() < share else None


NOTHING = Collected((), 0)


def collect(setup: Setup, host: Host, lanes: int, seed: int, env_steps: int, going: Callable[[], bool]) -> Collected:
    """Play the plan alone, on at most SHARE of `env_steps`, as long as `going`."""
    space = setup.space
    collector = _Collector(seed, (space.follow, *[0] * (len(space.action_nvec) - 1)))
    runner = OptionRunner(
        setup.world, host, space, [setup.lane(index) for index in range(lanes)], collector, collector,
        target=setup.target,
    )  # fmt: skip
    runner.start()
    while runner.env_steps < SHARE * env_steps and len(collector.starts) < STARTS and going():
        runner.tick()
    runner.rest()
    for lane in runner.lanes:
        lane.env.close()
    return Collected(tuple(collector.starts[:STARTS]), runner.env_steps)


class _Collector:
    """Chooses the plan, and keeps a state of each episode that it loses."""

    def __init__(self, seed: int, follow: tuple[int, ...]) -> None:
        self._seed, self._follow, self._next = seed, follow, FIRST
        self.starts: list[StartState] = []

    def choose(self, lanes: Sequence[Lane]) -> list[tuple[int, ...]]:
        for lane in lanes:
            lane.note.append(lane.env.save())
        return [self._follow] * len(lanes)

    def on_start(self, lane: Lane) -> bool:
        lane.episode = self._next
        lane.seed = episode_seed(self._seed, "train", lane.episode)
        lane.note = deque(maxlen=EARLIEST)
        self._next += 1
        return True

    def on_reset(self, lane: Lane) -> None:
        pass

    def on_decision(self, lane: Lane) -> None:
        pass

    def on_end(self, lane: Lane, result: EpisodeResult) -> None:
        if result.success or result.end == "truncated":
            return
        states: deque[bytes] = lane.note
        random = np.random.default_rng((lane.seed, 4))
        back = random.integers(min(LATEST, len(states) // 2), min(EARLIEST, len(states) - 1), endpoint=True)
        self.starts.append(StartState(lane.seed, states[-max(1, int(back))], lane.start_view))

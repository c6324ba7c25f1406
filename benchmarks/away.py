"""Env steps per second of a session whose games take 33 ms a step and are played elsewhere.

    python -P benchmarks/away.py [--games 4 8 16] [--step 0.033] [--ticks 150] [--place local cluster] [--json]

A game is Crafter that sleeps until its step has taken so long, as one that waits for a process of its own. The runner
of sessions plays uniform random actions in all games at once, in turns; what it looks at after each step is what an
evaluation looks at, with the view for a predicate. `local`: each game in a process of this machine; `cluster`: in an
actor of a Ray cluster of two nodes, both on this machine, which is started here and ends with the benchmark. `alone`:
all games in the runner's own process, one after the other, as they are without this.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rlgpt.training.worlds.protocol import World

ROOT = Path(__file__).resolve().parent.parent
TASK = "crafter_score"
NAME = "tests.worlds.slow:SleepingCrafter"


class Endless:
    """One episode after the other."""

    def __init__(self) -> None:
        self.seed = 0

    def on_start(self, lane: Any) -> bool:
        self.seed += 1
        lane.seed, lane.rng = self.seed, np.random.default_rng(self.seed)
        return True

    def on_reset(self, lane: Any) -> None: ...

    def on_decision(self, lane: Any) -> None: ...

    def on_end(self, lane: Any, result: Any) -> None: ...


def rate(world: World, games: int, ticks: int) -> float:
    """Env steps per second."""
    from rlgpt.training.host.client.open_host import open_host
    from rlgpt.training.options.dead_loops import DeadLoopWatch
    from rlgpt.training.options.lane import Lane
    from rlgpt.training.options.policies import UniformPolicy
    from rlgpt.training.options.rewards import RewardStream
    from rlgpt.training.options.runner import OptionRunner
    from rlgpt.training.rollouts.evaluation import FollowPlan

    test = "view.health > 0"
    host = open_host(world, lanes=games, mode="locked")
    assert host.admit("done_when", test).admitted
    plan = FollowPlan(world, [], {})
    everything = np.ones(world.action_nvec[0], np.bool_)
    space = replace(plan.space, primitives=everything, programs=replace(plan.space.programs, predicates=(test,)))
    host.load(space.programs)
    limit = world.tasks[TASK].horizon
    lanes = [
        Lane(index, world.make(TASK), RewardStream(plan.terms, world), DeadLoopWatch(limit), limit)
        for index in range(games)
    ]
    runner = OptionRunner(world, host, space, lanes, UniformPolicy(space), Endless(), predicates=True)
    runner.start()
    for _ in range(10):
        runner.tick()
    steps, began = runner.env_steps, time.perf_counter()
    for _ in range(ticks):
        runner.tick()
    rate = (runner.env_steps - steps) / (time.perf_counter() - began)
    for lane in lanes:
        lane.env.close()
    host.close()
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--step", type=float, default=0.033)
    parser.add_argument("--ticks", type=int, default=150)
    parser.add_argument("--place", nargs="+", default=["alone", "local", "cluster"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ |= {"SLEEPING_STEP": str(options.step), "PYTHONPATH": str(ROOT)}
    sys.path.insert(0, str(ROOT))

    from rlgpt.training.cluster.games import placed
    from rlgpt.training.worlds import registry

    machines = None
    told: dict[str, dict[str, float]] = {}
    try:
        for place in options.place:
            address = {"alone": "", "local": "local"}.get(place)
            if address is None:
                from tests.ray_cluster import Machines

                machines = Machines()
                machines.add(8)
                machines.add(8)
                address = machines.address
            for games in options.games:
                ticks = max(20, options.ticks // games) if place == "alone" else options.ticks
                world = placed(registry.get(NAME), NAME, address)
                before = os.getloadavg()[0]
                found = rate(world, games, ticks)
                told.setdefault(place, {})[str(games)] = round(found, 1)
                if not options.json:
                    ideal = games / options.step
                    print(f"{place:8s} {games:3d} games {found:7.1f} steps/s (ideal {ideal:.0f}; load {before:.1f})")
                if place != "alone":
                    world.close()  # type: ignore[attr-defined]
    finally:
        if machines is not None:
            machines.remove()
    if options.json:
        print(json.dumps({"steps_per_second": told, "step": options.step, "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()

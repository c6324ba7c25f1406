"""Env steps per second of the kitchen, on one processor and on two.

Sixteen envs take turns as they do in training: every env is told its command, simulated, and read (observation, mask,
novelty, progress key). Each count of processors is measured in a process that may use no more than so many, several
times; printed are the median and the range. A busy machine makes all of it slower, so its load is printed too.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

ENVS, ROUNDS, REPEATS = 16, 25, 5
TASK = "hinge_cabinet"


def measure(processors: int) -> None:
    """Print env steps per second, and per second of CPU time, a line a round."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:processors])
    import numpy as np

    from rlgpt.training.worlds import registry

    world = registry.get("kitchen")
    envs = [world.make(TASK) for _ in range(ENVS)]
    draw = np.random.default_rng(0)
    for repeat in range(REPEATS + 1):
        for seed, env in enumerate(envs):
            env.reset(1000 * repeat + seed)
        began, cpu = time.perf_counter(), time.process_time()
        for _ in range(ROUNDS):
            actions = [[int(draw.integers(size)) for size in world.action_nvec] for _ in envs]
            commands = [world.native_action(action) for action in actions]
            for env, command in zip(envs, commands, strict=True):
                env.begin_step(command)
            for env, command in zip(envs, commands, strict=True):
                env.step(command)
                env.observe(), env.action_masks(), env.novelty(), env.progress_key()
        if repeat:  # the first one warms up
            steps = ENVS * ROUNDS
            print(steps / (time.perf_counter() - began), steps / (time.process_time() - cpu), flush=True)


def rates(processors: int) -> tuple[list[float], list[float]]:
    words = [sys.executable, "-P", __file__, str(processors)]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    return [float(line.split()[0]) for line in lines], [float(line.split()[1]) for line in lines]


def main() -> None:
    medians = []
    for processors in (1, 2):
        if len(os.sched_getaffinity(0)) < processors:
            print(f"{processors} processors: not here")
            return
        load = os.getloadavg()[0]
        found, per_cpu = rates(processors)
        medians.append(statistics.median(found))
        print(
            f"{processors} processor(s): {medians[-1]:.0f} env steps/s, {min(found):.0f} to {max(found):.0f} "
            f"in {len(found)} rounds; {statistics.median(per_cpu):.0f} per second of CPU time; load average {load:.1f}"
        )
    print(f"two processors give {medians[1] / medians[0]:.2f} times the env steps of one")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(int(sys.argv[1]))
    else:
        main()

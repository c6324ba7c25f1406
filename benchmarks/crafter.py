"""Env steps per second of Crafter under a random policy, resets included: stock against ours.

    python -m benchmarks.crafter [--repeats 3] [--json FILE]

Each measurement is a process of its own; the peers take turns, so that a slow moment hits them all.
`stock` is crafter 1.8.3 as `pip install crafter` gives it, `stock + numba` the same where numba happens to be
installed (opensimplex then compiles its noise). Stock draws its picture in every step, there is no other
way; ours gives the default features and the mask. CPU time, one core.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PEERS = {"stock": 1500, "stock + numba": 3000, "ours": 60_000}
"""Env steps per measurement."""


def stock(steps: int) -> dict[str, float]:
    import crafter
    import numpy as np

    env = crafter.Env(seed=0)
    env.reset()
    draw = np.random.RandomState(0)

    def step() -> bool:
        return bool(env.step(draw.randint(17))[2])

    return timed(steps, step, lambda seed: env.reset())


def ours(steps: int) -> dict[str, float]:
    import numpy as np

    from rlgpt.training.worlds import registry

    env = registry.get("crafter").make("crafter_score")
    env.step((0,))
    env.observe()
    draw = np.random.RandomState(0)

    def step() -> bool:
        over = env.step((draw.randint(17),)).terminated
        env.observe()
        env.action_masks()
        return over

    return timed(steps, step, env.reset)


def timed(steps: int, step: Callable[[], bool], reset: Callable[[int], object]) -> dict[str, float]:
    """Steps per second of CPU time, and what a reset and a step take."""
    resets, in_resets = 0, 0.0
    begin = time.process_time()
    reset(0)
    for _ in range(steps):
        if step():
            at = time.process_time()
            resets += 1
            reset(resets)
            in_resets += time.process_time() - at
    total = time.process_time() - begin
    return {
        "steps_per_second": steps / total,
        "reset_ms": 1e3 * in_resets / max(resets, 1),
        "step_us": 1e6 * (total - in_resets) / steps,
        "steps_per_reset": steps / max(resets, 1),
    }


def measure(peer: str) -> dict[str, float]:
    """One measurement in a fresh process."""
    quiet = {"OMP_NUM_THREADS": "1", "NUMBA_DISABLE_JIT": "1" if peer == "stock" else "0"}
    command = [sys.executable, "-m", "benchmarks.crafter", "--peer", peer]
    done = subprocess.run(command, env=os.environ | quiet, capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--json", type=Path)
    options.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.peer:
        print(json.dumps((ours if chosen.peer == "ours" else stock)(PEERS[chosen.peer])))
        return
    measure("ours")
    runs = [{peer: measure(peer) for peer in PEERS} for _ in range(chosen.repeats)]
    report = {
        "machine": f"{platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} cores",
        "runs": runs,
        "median": {
            peer: {name: statistics.median(run[peer][name] for run in runs) for name in runs[0][peer]} for peer in PEERS
        },
        "ratio": {
            peer: sorted(run["ours"]["steps_per_second"] / run[peer]["steps_per_second"] for run in runs)
            for peer in PEERS
        },
    }
    print(f"{'':15}{'steps/s':>10}{'reset ms':>10}{'step us':>10}{'ours is':>22}")
    for peer, median in report["median"].items():
        low, *_, high = report["ratio"][peer] * 2
        print(
            f"{peer:15}{median['steps_per_second']:10.0f}{median['reset_ms']:10.1f}{median['step_us']:10.1f}"
            f"{f'{low:.1f} .. {high:.1f} times':>22}"
        )
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()

"""Steps per second of the MineDojo bridge against the client alone, both against the double of the game.

    .venv/bin/python -P benchmarks/minedojo.py [--steps 300] [--rounds 5] [--json]

Needs the client (`rlgpt minedojo install`). Four ways play the same commands, in turns so that a noisy machine
disturbs all alike: `bridge` (our child behind its pipe), `client` (the client alone in one process, kept only from
copying its statistics), `unpatched` (as published, which copies 1,819 statistics three times a step) and `lean` (what
the bridge's child does, in one process: the difference to `bridge` is the pipe). The double sends the full
statistics and 120 lidar rays, as the game does; with `--still` it answers each step with the same frame and
observation, so that its own time is small. Medians of the
rounds. Beside the steps per second stands the processor time of a step, of all processes but the double: on a machine
with other work it says more than the clock.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
DOUBLE = ROOT / "tests" / "worlds" / "minedojo" / "double.py"
TASK = "harvest_milk_with_empty_bucket_and_cow"
COMMAND = [1, 0, 0, 12, 13, 0, 0, 0]
ALONE = """
import importlib.util, json, sys, time
import numpy
spec = importlib.util.spec_from_file_location("child", sys.argv[1])
child = importlib.util.module_from_spec(spec); spec.loader.exec_module(child)
options = json.loads(sys.argv[3])
way = options.pop("way")
made = child.Child(None, None, sys.argv[2], 0, sys.argv[4], ""); made.numpy = numpy; made._hello(way == "lean", "")
if way == "client":
    child.GAME.stop_copying_statistics(made.client)
game = child.GAME.Game(made.client, numpy, {**options, "lean": way == "lean"})
game.reset(0) if way == "lean" else game.env.reset()
act = numpy.asarray(options["command"])
step = (lambda: game.step(options["command"])) if way == "lean" else (lambda: game.env.step(act))
print("ready", flush=True)
for line in sys.stdin:
    began = time.perf_counter()
    for _ in range(int(line)):
        step()
    print(time.perf_counter() - began, flush=True)
"""


class Player:
    """One way to play: starts its game and steps when told."""

    def __init__(self, name: str, python: Path, constants: Path) -> None:
        from rlgpt.training.worlds.minedojo.bridge import CHILD, MARKS, SHIM, Bridge
        from rlgpt.training.worlds.minedojo.sense import lidar
        from rlgpt.training.worlds.minedojo.settings import Settings

        self.name = name
        self.double = subprocess.Popen(
            [sys.executable, str(DOUBLE), "--port", "0", "--stats", "full", "--constants", str(constants), "--still"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.double.stdout is not None
        port = int(self.double.stdout.readline().rsplit(" ", 1)[1])
        options = {"task": TASK, "rays": lidar(50.0), "image": [160, 256], "port": port}
        self.bridge: Bridge | None = None
        if name == "bridge":
            self.bridge = Bridge(Settings(python=str(python)))
            self.bridge.ask("make", 120, **options)
            self.bridge.ask("reset", 120, seed=0)
            return
        told = json.dumps({**options, "way": name, "command": COMMAND})
        self.process = subprocess.Popen(
            [str(python), "-W", "ignore", "-c", ALONE, str(CHILD), str(SHIM), told, str(MARKS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def play(self, steps: int) -> float:
        """Seconds per step."""
        if self.bridge is not None:
            began = time.perf_counter()
            for _ in range(steps):
                self.bridge.ask("step", 60, command=COMMAND)
            return (time.perf_counter() - began) / steps
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline()) / steps

    def processor(self) -> float:
        """Seconds of processor time so far: of the child, and for the bridge of this process too."""
        mine = time.process_time() if self.bridge is not None else 0.0
        child = psutil.Process(self.bridge.record.pid if self.bridge is not None else self.process.pid).cpu_times()
        return mine + float(child.user) + float(child.system)

    def end(self) -> None:
        if self.bridge is not None:
            self.bridge.end()
        else:
            self.process.kill()
        self.double.kill()


def main() -> None:
    from rlgpt.training.worlds.minedojo.settings import from_environment

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    python = from_environment().interpreter
    constants = next(python.parent.parent.glob("lib/*/site-packages/minedojo/sim/mc_meta/mc_constants.json"), None)
    if constants is None:
        sys.exit(f"{python} has no MineDojo client: run `rlgpt minedojo install`, or set RLGPT_MINEDOJO_PYTHON.")
    players = [Player(name, python, constants) for name in ("bridge", "client", "unpatched", "lean")]
    try:
        taken: dict[str, list[float]] = {player.name: [] for player in players}
        spent: dict[str, list[float]] = {player.name: [] for player in players}
        for player in players:
            player.play(20)
        for _ in range(options.rounds):
            for player in players:
                before = player.processor()
                taken[player.name].append(player.play(options.steps))
                spent[player.name].append((player.processor() - before) / options.steps)
    finally:
        for player in players:
            player.end()
    processor = {name: statistics.median(seconds) for name, seconds in spent.items()}
    per_second = {name: 1 / statistics.median(seconds) for name, seconds in taken.items()}
    result = {
        "steps_per_second": {name: round(value, 1) for name, value in per_second.items()},
        "processor_ms_per_step": {name: round(1000 * seconds, 2) for name, seconds in processor.items()},
        "bridge_over_client": round(per_second["bridge"] / per_second["client"], 3),
        "bridge_over_lean": round(per_second["bridge"] / per_second["lean"], 3),
        "bridge_over_unpatched": round(per_second["bridge"] / per_second["unpatched"], 3),
    }
    if options.json:
        print(json.dumps(result))
        return
    for name, value in per_second.items():
        print(f"{name:10s} {value:7.1f} steps/s {1000 * processor[name]:7.2f} ms of processor time a step")
    print(f"bridge over client     {result['bridge_over_client']}  (aim >= 0.95)")
    print(f"bridge over lean       {result['bridge_over_lean']}")
    print(f"bridge over unpatched  {result['bridge_over_unpatched']}  (aim >= 1.5)")


if __name__ == "__main__":
    main()

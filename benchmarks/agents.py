"""Wall clock of a session whose model takes its time: calls side by side against one after the other.

    python -m benchmarks.agents [--seconds 2] [--task collect_diamond] [--repeats 1] [--json FILE]

The model is the rule-based one behind HTTP, so that it answers the same every time, and takes `--seconds` for each
answer. Both sessions have four iterations of code alone, with a target that none of them reaches: PPO would only add
the same to both. Their rows are compared: all of
them, calls in their order included, but for clocks. `waiting` is what a session spends with at least one call under
way, and `rest` the trials, the training and the evaluations, which no model's speed changes; what a session takes with
20 s a call follows from both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from rlgpt.agents.rules.model import respond
from rlgpt.store.folder import SessionFolder
from tests.agents.chat_server import ChatServer
from tests.end_to_end.sameness import every_row

SETTINGS = {
    "RLGPT_METHOD__ARM": "code", "RLGPT_LOOP__TARGET": "1.0", "RLGPT_LOOP__DEV_MORE": "0",
    "RLGPT_LOOP__TEST_EPISODES": "2",
}  # fmt: skip
SLOW = 20.0


class SlowModel:
    """Answers after `seconds`, and adds up the time in which it had something to answer."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._lock = seconds, threading.Lock()
        self._under_way, self._since = 0, 0.0
        self.waited, self.calls = 0.0, 0

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self.calls += 1
            if not self._under_way:
                self._since = time.monotonic()
            self._under_way += 1
        time.sleep(self._seconds)
        answer = respond(request)
        with self._lock:
            self._under_way -= 1
            if not self._under_way:
                self.waited += time.monotonic() - self._since
        return answer


def session(task: str, seconds: float, parallel: int, home: Path) -> tuple[dict[str, float], Any]:
    model = SlowModel(seconds)
    command = [
        sys.executable, "-P", "-m", "rlgpt.console.cli", "run", task, "--model", "rlgpt-rules", "--headless",
        "--parallel", str(parallel), "--iterations", "3", "--skills", "none",
    ]  # fmt: skip
    with ChatServer(model) as server:
        start = time.monotonic()
        environment = os.environ | SETTINGS | {"RLGPT_HOME": str(home)}
        subprocess.run([*command, "--base-url", server.url], env=environment, check=True, stdout=subprocess.DEVNULL)
        wall = time.monotonic() - start
    (folder,) = (home / "sessions").iterdir()
    rest = wall - model.waited
    rounds = model.waited / seconds
    measured = {
        "wall": wall, "waiting": model.waited, "rest": rest, "calls": model.calls, "rounds": rounds,
        "wall with 20 s a call": rest + rounds * SLOW,
    }  # fmt: skip
    return measured, every_row(SessionFolder(folder))


def differences(one: dict[str, list[Any]], other: dict[str, list[Any]]) -> list[str]:
    """Tables whose rows differ."""
    return [table for table in one if one[table] != other[table]]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--task", default="collect_diamond")
    options.add_argument("--parallel", type=int, default=16)
    options.add_argument("--repeats", type=int, default=1)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    runs = []
    for _ in range(chosen.repeats):
        with tempfile.TemporaryDirectory() as home:
            one, rows = session(chosen.task, chosen.seconds, 1, Path(home) / "one")
            many, same = session(chosen.task, chosen.seconds, chosen.parallel, Path(home) / "many")
        runs.append({"one at a time": one, "side by side": many, "different": differences(rows, same)})
    for run in runs:
        for name in ("one at a time", "side by side"):
            print(f"{name:15}", "  ".join(f"{what} {value:.1f}" for what, value in run[name].items()))
        shares = [run["side by side"][w] / run["one at a time"][w] for w in ("wall", "wall with 20 s a call")]
        print(f"share of the wall clock {shares[0]:.3f}; with 20 s a call {shares[1]:.3f}")
        print("rows differ in:", ", ".join(run["different"]) or "nothing")
    if chosen.json:
        machine = f"{platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} cores"
        chosen.json.write_text(json.dumps({"machine": machine, "seconds": chosen.seconds, "runs": runs}, indent=1))


if __name__ == "__main__":
    main()

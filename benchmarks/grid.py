"""An experiment on two nodes of one CPU each against the same experiment here with `--jobs 2`: time, and rows.

    python -P benchmarks/grid.py [--sessions 40] [--env-steps 6000] [--task collect_stone]

The experiment is `critic`: two arms, so half as many seeds as sessions. Both nodes are on this machine, in a cluster of
Ray that is started here and ends with the benchmark. Counted is the time from `rlgpt experiment` until the command is
back, without the start of the cluster. Equal rows are those that `tests/end_to_end/sameness.py` compares: everything
but when and where. Ends with 1 where they differ.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ALLOWED, EXTRA = 1.05, 30.0
"""The cluster may take so many times as long, and so many seconds more."""
AS_HERE = {"RAY_worker_niceness": "0"}
"""Ray's workers have 15 by default: what else runs on this machine would slow down only the nodes."""


def run(home: Path, options: argparse.Namespace, *words: str) -> float:
    """Seconds that the experiment took."""
    line = [sys.executable, "-P", "-m", "rlgpt.console.cli", "experiment", "critic", options.task, "--yes"]
    line += ["--seeds", str(options.sessions // 2), "--env-steps", str(options.env_steps), "--iterations", "1"]
    line += ["--test-episodes", "10", "--dev-episodes", "6", *words]
    began = time.perf_counter()
    subprocess.run(line, env=os.environ | {"RLGPT_HOME": str(home)}, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def rows(home: Path) -> dict[tuple[int, str], dict[str, list[dict[str, Any]]]]:
    """Of every session, by its seed and arm."""
    from rlgpt.store.folder import SessionFolder
    from rlgpt.store.reader import Reader
    from tests.end_to_end.sameness import outcome

    found = {}
    for path in sorted((home / "sessions").iterdir()):
        session = SessionFolder(path)
        with Reader(session) as reader:
            settings = reader.history_at().session["settings"]
        found[int(settings["seed"]), str(settings["critic"])] = outcome(session)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=40)
    parser.add_argument("--env-steps", type=int, default=6000)
    parser.add_argument("--task", default="collect_stone")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from tests.ray_cluster import Machines

    with tempfile.TemporaryDirectory(prefix="rlgpt-grid-") as scratch:
        here, mirrors = Path(scratch) / "here", Path(scratch) / "mirrors"
        alone = run(here, options, "--jobs", "2")
        print(f"{options.sessions} sessions here, two at once: {alone:.0f} s", flush=True)
        machines = Machines()
        try:
            for number in range(2):
                disk = str(Path(scratch) / f"node{number}")
                machines.add(env_vars={"RLGPT_HOME": disk, **AS_HERE})
            placed = run(mirrors, options, "--on", machines.address)
        finally:
            machines.remove()
        print(f"on two nodes of one CPU: {placed:.0f} s, allowed {ALLOWED * alone + EXTRA:.0f} s", flush=True)
        first, second = rows(here), rows(mirrors)
    differ = [key for key in first if first[key] != second.get(key)]
    print(f"{len(first) - len(differ)} of {len(first)} sessions have equal rows", flush=True)
    return 1 if differ or len(first) != options.sessions else 0


if __name__ == "__main__":
    sys.exit(main())

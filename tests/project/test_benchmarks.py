"""Benchmarks run with the store as it is: nothing else calls them, so that they would break unseen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_the_benchmark_of_the_store_runs_to_its_end() -> None:
    sizes = ["40", "20", "3"]  # updates, events, sessions
    command = [sys.executable, "-P", str(BENCHMARKS / "store.py"), *sizes]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1].startswith("list of all sessions, again")

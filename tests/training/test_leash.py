"""A supervisor on a leash ends with whoever holds it, and so does all that it started."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from rlgpt.store import processes
from rlgpt.store.lease import Lease
from rlgpt.training.session.creation import create
from tests.patience import PATIENCE

HOLDER = """
import subprocess, sys, time
words = [sys.executable, "-P", "-m", "rlgpt.training.supervisor", sys.argv[1], "--leash"]
child = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)
print(child.pid, flush=True)
time.sleep(1000)
"""


@pytest.mark.timeout(900)
def test_when_its_holder_is_killed_nothing_of_the_session_lives_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    folder = Path(create({"task": "collect_diamond", "skills": "none", "budget": {"env_steps": 5_000_000}})["folder"])
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    supervisor = psutil.Process(int(holder.stdout.readline()))
    try:
        deadline = time.monotonic() + 60 * PATIENCE
        while len(started := supervisor.children(recursive=True)) < 2:  # the worker and its action host
            assert time.monotonic() < deadline and supervisor.is_running()
            time.sleep(0.05)
        holder.kill()
        _, alive = psutil.wait_procs([supervisor, *started], timeout=5 * PATIENCE)
        assert not alive and not Lease.held(folder)
        assert not processes.marked(processes.SESSION, processes.session_value(folder))
    finally:
        holder.kill()
        holder.wait()
        processes.end_marked(processes.SESSION, processes.session_value(folder))
        if supervisor.is_running():
            supervisor.kill()

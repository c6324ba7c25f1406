"""`rlgpt run` where this machine or this shell does not leave enough: one sentence and exit 5, and no session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RLGPT = str(Path(sys.executable).with_name("rlgpt"))


def run(before: str, home: Path | str) -> subprocess.CompletedProcess[str]:
    command = f"{before}; exec {RLGPT} run collect_wood --detach"
    return subprocess.run(
        ["bash", "-c", command], env=os.environ | {"RLGPT_HOME": str(home)}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("limit", ["-v 400000", "-n 32", "-t 5"])
def test_a_limit_below_what_a_session_needs_is_named_with_its_cure(limit: str, tmp_path: Path) -> None:
    done = run(f"ulimit {limit}", tmp_path)
    assert done.returncode == 5, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1 and f"ulimit {limit.split()[0]} unlimited" in done.stderr
    assert not (tmp_path / "sessions").exists()


@pytest.mark.parametrize("home", ["/proc/rlgpt", "/etc/passwd"])
def test_a_home_that_cannot_be_written_is_named(home: str) -> None:
    done = run("true", home)
    assert done.returncode == 5, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1 and home in done.stderr and "RLGPT_HOME" in done.stderr

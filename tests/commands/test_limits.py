"""`rlgpt run` and `rlgpt experiment` where machine or shell leave too little: one sentence, exit 5, no session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RLGPT = str(Path(sys.executable).with_name("rlgpt"))
RUN = "run collect_wood --detach"


def run(before: str, home: Path | str, words: str = RUN) -> subprocess.CompletedProcess[str]:
    command = f"{before}; exec {RLGPT} {words}"
    return subprocess.run(
        ["bash", "-c", command], env=os.environ | {"RLGPT_HOME": str(home)}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("limit", "words"),
    [("-v 400000", RUN), ("-n 32", RUN), ("-t 5", RUN), ("-v 400000", "experiment arms collect_wood --yes")],
)
def test_a_limit_below_what_a_session_needs_is_named_with_its_cure(limit: str, words: str, tmp_path: Path) -> None:
    done = run(f"ulimit {limit}", tmp_path, words)
    assert done.returncode == 5, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1 and f"ulimit {limit.split()[0]} unlimited" in done.stderr
    assert not (tmp_path / "sessions").exists()


@pytest.mark.parametrize("home", ["/proc/rlgpt", "/etc/passwd"])
def test_a_home_that_cannot_be_written_is_named(home: str) -> None:
    done = run("true", home)
    assert done.returncode == 5, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1 and home in done.stderr and "RLGPT_HOME" in done.stderr

"""Every attempt of the corpus ends where it must, as root and as an ordinary user; nobody else is blamed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.host.corpus import CORPUS

ROOT = Path(__file__).resolve().parents[2]
USERS = ["root", "ordinary"] if os.geteuid() == 0 else ["ordinary"]
"""Root can become anyone; anyone else is the ordinary user."""


def as_nobody(command: str) -> list[str]:
    """`command` as an ordinary user, who can reach the interpreter and the sources even if they lie in a folder of
    root's alone: in a mount namespace of its own each such folder shows what is needed, and nothing else."""
    needed = {Path(part).resolve() for part in (sys.executable, sys.prefix, sys.base_prefix, ROOT)}
    closed = {folder for path in needed for folder in path.parents if not folder.stat().st_mode & 0o001}
    show = []
    for folder in sorted(closed, key=lambda folder: len(folder.parts), reverse=True):
        shown = sorted({folder / path.relative_to(folder).parts[0] for path in needed if folder in path.parents})
        show += [f"keep{n}=$(mktemp -d) && mount --rbind '{path}' $keep{n}" for n, path in enumerate(shown)]
        show += [f"mount -t tmpfs -o mode=755 tmpfs '{folder}'"]
        show += [f"mkdir '{path}' && mount --rbind $keep{n} '{path}'" for n, path in enumerate(shown)]
    drop = f"exec setpriv --reuid 65534 --regid 65534 --clear-groups {command}"
    return ["unshare", "--mount", "sh", "-c", " && ".join([*show, drop])]


@cache
def results(user: str) -> dict[str, tuple[str, str, float]]:
    """One run of the whole corpus."""
    command = [sys.executable, "-m", "tests.host.corpus", "locked"]
    if user == "ordinary" and os.geteuid() == 0:
        command = as_nobody(" ".join(command))
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr[-2000:]
    found: dict[str, tuple[str, str, float]] = json.loads(run.stdout)
    return found


def test_the_corpus_is_large_and_names_are_unique() -> None:
    names = [attempt.name for attempt in CORPUS]
    assert len(names) == len(set(names)) >= 60


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", [attempt.name for attempt in CORPUS])
def test_an_attempt_ends_where_it_must(name: str, user: str) -> None:
    expected, got, _ = results(user)[name]
    assert got in expected.split("|")


@pytest.mark.parametrize("user", USERS)
def test_an_attempt_stalls_training_for_a_moment_only(user: str) -> None:
    """About a second at most on a machine with a free core, two for one that is killed in its dry run; the typical
    one is far below on any machine."""
    stalls = sorted(seconds for _, _, seconds in results(user).values())
    assert stalls[len(stalls) // 2] < 0.1
    assert stalls[-1] < 20

"""A wheel of this tree, and an environment that has it without installing every dependency again."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_SOURCE = (".*", "__pycache__", "*.egg-info", "build", "dist", "tests", "evidence")
PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that a stale build folder cannot hide a missing file."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT, folder / "tree", ignore=shutil.ignore_patterns(*NOT_SOURCE), symlinks=True)
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation")
    run(*pip, "--wheel-dir", folder / "out", ".", cwd=folder / "tree")
    (built,) = (folder / "out").glob("*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel; dependencies come from this one through a .pth file
    (whose own .pth files are not read: the editable install stays invisible)."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    site = Path(run(python, "-c", PURELIB, cwd=folder).strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "-q", "--ignore-installed")
    run(*pip, "--no-deps", "--no-index", wheel, cwd=folder)
    return python

"""The sentences that somebody with the wrong Python reads first."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[2] / "Makefile"
TOO_OLD = "#!/bin/sh\nexit 1\n"
WITHOUT_VENV = '#!/bin/sh\ncase "$2" in *version_info*) exit 0;; *) exit 1;; esac\n'
WORKING = '#!/bin/sh\ncase "$1$2" in -mvenv) mkdir -p "$3/bin"; cp "$0" "$3/bin/python";; esac\n'


@pytest.fixture
def make(tmp_path: Path) -> Path:
    shutil.copy(MAKEFILE, tmp_path)
    (tmp_path / "bin").mkdir()
    for tool in ("make", "sh", "mkdir", "cp"):
        found = shutil.which(tool)
        assert found
        (tmp_path / "bin" / tool).symlink_to(found)
    return tmp_path


def run(folder: Path, **pythons: str) -> subprocess.CompletedProcess[str]:
    """`make .venv/bin/python` where only these interpreters are on PATH."""
    for name, script in pythons.items():
        path = folder / "bin" / name.replace("_", ".")
        path.write_text(script)
        path.chmod(0o755)
    environment = {"PATH": str(folder / "bin"), "HOME": os.environ.get("HOME", "/")}
    command = ["make", ".venv/bin/python"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_without_any_usable_python_one_sentence_says_which_are(make: Path) -> None:
    done = run(make, python3=TOO_OLD)
    assert done.returncode != 0
    assert "rlgpt needs Python 3.11, 3.12 or 3.13 and found none" in done.stderr.splitlines()[0]


def test_a_missing_venv_module_is_named_with_its_cure(make: Path) -> None:
    done = run(make, python3_12=WITHOUT_VENV, python3=TOO_OLD)
    assert done.returncode != 0
    assert "python3.12 lacks the venv module" in done.stderr.splitlines()[0]
    assert "apt install python3-venv" in done.stderr


def test_the_first_usable_python_makes_the_environment(make: Path) -> None:
    done = run(make, python3_13=WITHOUT_VENV, python3_12=WORKING)
    assert done.returncode == 0, done.stderr
    assert (make / ".venv" / "bin" / "python").exists()

"""What a session says of the processor: torch's word for its instructions, for which torch is asked once a machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TOLD = "import sys; from rlgpt.training.session.where import cpu; print(cpu(), 'torch' in sys.modules)"


def told(cache: Path, **environment: str) -> tuple[str, bool]:
    """(the word, whether torch was asked) in a process of its own."""
    around = os.environ | {"XDG_CACHE_HOME": str(cache)} | environment
    done = subprocess.run([sys.executable, "-c", TOLD], env=around, capture_output=True, text=True, check=True)
    word, _, asked = done.stdout.strip().rpartition(" ")
    return word, asked == "True"


def test_torch_is_asked_for_the_instructions_once(tmp_path: Path) -> None:
    word, asked = told(tmp_path)
    assert asked and told(tmp_path) == (word, False)
    kept = next((tmp_path / "rlgpt" / "instructions").iterdir())
    kept.write_text("\x1b[2J\n")
    assert told(tmp_path) == (word, True)
    other, asked = told(tmp_path, ATEN_CPU_CAPABILITY="default")
    assert asked and other.split()[2] == "DEFAULT"


def test_torch_is_asked_where_nothing_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "rlgpt").write_text("no folder")
    word, asked = told(tmp_path)
    assert asked and word
    nobody = "import os, pwd; del os.environ['HOME']; pwd.getpwuid = {}.__getitem__; "
    lost = ("XDG_CACHE_HOME", "XDG_DATA_HOME", "RLGPT_HOME")
    around = {name: value for name, value in os.environ.items() if name not in lost}
    done = subprocess.run([sys.executable, "-c", nobody + TOLD], env=around, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{word} True"

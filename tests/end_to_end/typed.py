"""Command lines as they are typed: the real `rlgpt` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.patience import PATIENCE

RLGPT = (sys.executable, "-P", "-m", "rlgpt.console.cli")
KEYS = ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "OPENAI_BASE_URL")


@dataclass
class Said:
    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """What it said on standard error; fails unless that is one line."""
        lines = self.err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("rlgpt: "), self.out + self.err
        return lines[0].removeprefix("rlgpt: ")


def rlgpt(home: Path, *words: str, timeout: float = 120, at: Sequence[str] = RLGPT, **environment: str) -> Said:
    """`rlgpt <words>` on the store in `home`, without any key, from a folder without files."""
    inherited = {name: value for name, value in os.environ.items() if name not in KEYS}
    place = home.parent / "empty"
    place.mkdir(exist_ok=True)
    done = subprocess.run(
        [*at, *words],
        cwd=place,
        env=inherited | {"RLGPT_HOME": str(home)} | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout * PATIENCE,
    )
    return Said(done.returncode, done.stdout, done.stderr)

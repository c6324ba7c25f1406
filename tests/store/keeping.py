"""A keeper as the supervisor starts it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE = 200.0


class Keeper:
    """The process, as the supervisor starts it."""

    def __init__(self, folder: Path, address: str, *incarnation: int) -> None:
        line = [sys.executable, "-P", "-m", "rlgpt.store.shared.keeper", str(folder), address, *map(str, incarnation)]
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1)

    def ready(self) -> int:
        assert self.child.stdout is not None
        words = self.child.stdout.readline().split()
        assert words[:1] == ["ready"], self.end()
        return int(words[1])

    def end(self) -> tuple[int, str]:
        """As when the worker has ended: (exit code, last words)."""
        _, said = self.child.communicate("", timeout=PATIENCE)
        return self.child.returncode, said.strip()


def until(holds: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return found

"""Copies text for terminals that do not take the console's OSC 52."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

FILE = "copied.txt"
PATIENCE = 5.0
"""Seconds that tmux may take."""


def copy(text: str, home: Path) -> str:
    """Put `text` where it can be had whatever becomes of the OSC 52 that the console wrote; where that is, in words.

    tmux passes OSC 52 of its panes on only with `set-clipboard on`; its own command reaches the terminal by default.
    Whether a terminal took OSC 52 cannot be asked, so outside tmux a file holds the text too.
    """
    if os.environ.get("TMUX") and _loaded(text):
        return "to tmux's buffer and, where your terminal takes it, its clipboard"
    try:
        return f"by OSC 52; also in {_written(text, home)}"
    except OSError as error:
        return f"by OSC 52 only: {home / FILE} cannot be written ({error.strerror})"


def _loaded(text: str) -> bool:
    words = ["tmux", "load-buffer", "-w", "-"]
    try:
        return subprocess.run(words, input=text.encode(), capture_output=True, timeout=PATIENCE).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _written(text: str, home: Path) -> Path:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = home / FILE
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)
    return file

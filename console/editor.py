"""A text in the person's own editor: a private file, their `$VISUAL` or `$EDITOR`, and what they saved."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path


def words() -> list[str]:
    """The command line of the editor; `vi` where none is named, as git does."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    return shlex.split(chosen) or ["vi"]


def edit(text: str, suffix: str) -> str:
    """Waits for the editor; needs the terminal. Raises OSError when it cannot be started or ends with an error."""
    with tempfile.TemporaryDirectory(prefix="rlgpt-") as folder:
        path = Path(folder) / f"edit{suffix}"
        path.write_text(text)
        try:
            result = subprocess.run([*words(), str(path)], check=False)
        except ValueError as error:  # of a name that no command can have
            raise OSError(str(error)) from error
        if result.returncode != 0:
            raise OSError(f"{words()[0]} ended with {result.returncode}; nothing was taken over")
        return path.read_text(errors="replace")

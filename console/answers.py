"""Answers of child processes, kept in the home to be shown before a child answers again; they may be deleted."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

FOLDER = "answers"


def place(home: Path, question: Sequence[str]) -> Path:
    return home / FOLDER / f"{quote('-'.join(question), safe='')}.json"


def remembered(file: Path) -> Any:
    """The stored answer, None if there is none or it cannot be read."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None


def remember(file: Path, answer: Any) -> None:
    """Store an answer, atomically. A home that cannot be written is ignored."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(answer))
        draft.replace(file)

"""Which Ray cluster runs a session: it stands beside what the folder mirrors; and the order to end it there at once.

Standard library only.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from rlgpt.store import atomic
from rlgpt.store.address import MARK

END = "end-now"
"""In a session's folder: who wants its processes on the cluster ended, whatever they do."""


def place(folder: Path, address: str) -> None:
    """Whoever starts the session's worker from now on does so there."""
    words = {"of": f"Ray cluster {address}", "on": address}
    atomic.write_bytes(folder / MARK, json.dumps(words).encode())


def placed_on(folder: Path) -> str:
    """The address of the cluster, "" for a session that runs here."""
    try:
        return str(json.loads((folder / MARK).read_bytes()).get("on", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def ask_to_end(folder: Path, who: str) -> None:
    """Who follows the session does so at its next look."""
    atomic.write_bytes(folder / END, who.encode())


def asked_to_end(folder: Path) -> str:
    """By whom, "" where nobody asked."""
    try:
        return (folder / END).read_text()
    except OSError:
        return ""


def forget_to_end(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        (folder / END).unlink()

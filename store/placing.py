"""Which Ray cluster runs a session: it stands beside what the folder mirrors. Standard library only."""

from __future__ import annotations

import json
from pathlib import Path

from rlgpt.store import atomic
from rlgpt.store.address import MARK


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

"""Tasks, items and recipes of the installed client, requested once through the bridge and stored as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rlgpt.store import atomic
from rlgpt.training.worlds.minedojo.bridge import Bridge, MineDojoError
from rlgpt.training.worlds.minedojo.settings import Settings, folder

CLIENT = "0.1"
"""The version of the client that this world is written for and tested with."""


def path() -> Path:
    return folder() / f"catalogue-{CLIENT}.json"


def stored() -> dict[str, Any]:
    """The stored catalogue, {} when the client was never asked."""
    try:
        catalogue: dict[str, Any] = json.loads(path().read_text())
    except (OSError, ValueError):
        return {}
    return catalogue


def refresh(settings: Settings) -> dict[str, Any]:
    """Ask the client and store the answer (about 4 s). Raises `MineDojoError`."""
    bridge = Bridge(settings)
    try:
        version = bridge.about["minedojo"]
        if version != CLIENT:
            raise MineDojoError("hello", f"MineDojo {version} is installed; this world needs {CLIENT}.")
        answer = bridge.ask("catalogue", settings.hello_timeout)
        bridge.ask("close", settings.hello_timeout)
    finally:
        bridge.end()
    path().parent.mkdir(parents=True, exist_ok=True)
    atomic.write_bytes(path(), json.dumps(answer).encode())
    return answer


def stored_or_refreshed(settings: Settings) -> dict[str, Any]:
    """The stored catalogue. Where there is none it is requested from the client, {} if no client is installed. Raises
    `MineDojoError`."""
    return stored() or (refresh(settings) if settings.interpreter.exists() else {})

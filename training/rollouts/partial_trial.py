"""What a trial has finished so far, in a file of the session's folder: a kill then repeats one batch of it at most.

The rows of a trial are written once, at its end. Until then nothing in the store says that it began.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgpack

from rlgpt.store import atomic
from rlgpt.training.worlds.away.channel import pack, unpack

FILE = "trial.part"


class PartialTrial:
    """One trial's, named by `key`; a file that another trial left, or half of a file, counts as nothing."""

    def __init__(self, folder: Path, key: str) -> None:
        self._path, self._key = folder / FILE, key

    def load(self) -> dict[str, Any] | None:
        """What was saved last; None if nothing was."""
        try:
            stored = unpack(self._path.read_bytes())
        except (OSError, ValueError, msgpack.UnpackException):
            return None
        return stored["state"] if isinstance(stored, dict) and stored.get("key") == self._key else None

    def save(self, state: Mapping[str, Any]) -> None:
        """Save the episodes so far. A full disk is no error here: after a kill these episodes are played again. Views
        may hold whole numbers of any size, which msgpack alone refuses."""
        with contextlib.suppress(OSError):
            atomic.write_bytes(self._path, pack({"key": self._key, "state": state}))

    def clear(self) -> None:
        self._path.unlink(missing_ok=True)

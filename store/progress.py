"""A heartbeat file in the session's folder that says how much work is done. It is rewritten in place.

Progress moves with env steps, bytes of an LLM reply and phase changes. It is no row: rows of the same session
are equal from run to run, a clock is not.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import TypedDict

from rlgpt.store import atomic

SIZE = 256
NAME = "progress"


class Heartbeat(TypedDict, total=False):
    """What the file holds; empty before the first."""

    at: float
    env_steps: int
    heard: int
    what: str
    next_try: float
    """When a server that is away is asked again, in UTC seconds."""


class Progress:
    """Writes at most ten times a second; the file always holds one padded JSON object of 256 bytes."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / NAME, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        self._written = 0.0
        """By a clock that nobody sets: with the other, a worker whose clock is set back would look dead."""
        self._env_steps = 0
        self._heard = 0
        self._what = ""
        self._next_try: float | None = None
        self._at = 0.0

    def phase(self, what: str) -> None:
        self._what, self._next_try = what, None
        self._write()

    def steps(self, env_steps: int) -> None:
        """`env_steps` more were executed, of any kind (trials, training, evaluation)."""
        self._env_steps += env_steps
        self._write_in_time()

    def heard(self, characters: int) -> None:
        """`characters` more of a language model's reply have come."""
        self._heard += characters
        self._write_in_time()

    def waits(self, seconds: float) -> None:
        """A language model is asked again in `seconds`: no sign of life, and no row, since the wait is drawn by lot."""
        self._next_try = time.time() + seconds
        self._write(self._at)

    def _write_in_time(self) -> None:
        if time.monotonic() - self._written >= 0.1:
            self._write()

    def _write(self, at: float | None = None) -> None:
        """`at`: of the last sign of life, in UTC seconds; now if left out."""
        self._written, self._at = time.monotonic(), time.time() if at is None else at
        beat = {"at": self._at, "env_steps": self._env_steps, "heard": self._heard, "what": self._what[:80]}
        text = json.dumps(beat if self._next_try is None else beat | {"next_try": round(self._next_try, 1)})
        with contextlib.suppress(OSError):  # a full disk: the next row will say so
            os.pwrite(self._file, text.encode().ljust(SIZE)[:SIZE], 0)

    def close(self) -> None:
        os.close(self._file)


def read(folder: Path) -> Heartbeat:
    """The last heartbeat, `at` in it a number; {} before the first, or where it cannot be read."""
    try:
        report = dict(json.loads((folder / NAME).read_bytes()))
        beat = Heartbeat(
            at=float(report["at"]),
            env_steps=int(report.get("env_steps", 0)),
            heard=int(report.get("heard", 0)),
            what=str(report.get("what", "")),
        )
        if "next_try" in report:
            beat["next_try"] = float(report["next_try"])
    except (OSError, ValueError, TypeError, KeyError):
        return {}
    return beat


def show(folder: Path, beat: Heartbeat) -> None:
    """Tell in a mirror how far the worker elsewhere is."""
    text = json.dumps({**beat, "what": str(beat.get("what", ""))[:80]})
    with contextlib.suppress(OSError):
        atomic.write_bytes(folder / NAME, text.encode().ljust(SIZE)[:SIZE])

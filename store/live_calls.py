"""What a language model is saying now: one small file in the session's folder, written anew as pieces come.

A reply becomes a row when it is whole; its pieces never do. The file says no more than what is under way, goes when
nothing is, and a console that reads half a second later has missed nothing that counts.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rlgpt.store import atomic
from rlgpt.store.progress import Progress

FILE = "calls.now"
EVERY = 0.2
"""Seconds between two writings."""
TAIL = 3_000
"""Characters kept of the end of what was thought, and of what was said."""


@dataclass(frozen=True)
class LiveCall:
    """One request that is under way."""

    call: str
    """As in its rows, once it has any."""
    step: str
    role: str
    model: str
    try_number: int
    ahead: bool
    """It was sent before its turn: its rows come later."""
    since: float
    """UTC seconds."""
    first: float = 0.0
    """When the first piece came; 0 before."""
    characters: int = 0
    thought: str = ""
    content: str = ""


class LiveCalls:
    """The writer; any thread."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        self._path, self._progress = folder / FILE, progress
        self._lock = threading.Lock()
        self._calls: dict[str, LiveCall] = {}
        self._written = 0.0
        self._path.unlink(missing_ok=True)

    def began(self, call: LiveCall) -> None:
        with self._lock:
            self._calls[call.call] = call
            self._write()

    def heard(self, call: str, thought: str, content: str) -> None:
        self._progress.heard(len(thought) + len(content))
        with self._lock:
            if (old := self._calls.get(call)) is None:
                return
            self._calls[call] = replace(
                old,
                first=old.first or time.time(),
                characters=old.characters + len(thought) + len(content),
                thought=(old.thought + thought)[-TAIL:],
                content=(old.content + content)[-TAIL:],
            )
            if time.monotonic() - self._written >= EVERY:
                self._write()

    def ended(self, call: str) -> None:
        with self._lock:
            if self._calls.pop(call, None) is not None:
                self._write()

    def _write(self) -> None:
        self._written = time.monotonic()
        with contextlib.suppress(OSError):  # a full disk: the next row will say so
            if self._calls:
                body = json.dumps([asdict(call) for call in self._calls.values()])
                atomic.write_bytes(self._path, body.encode("utf-8", "replace"))
            else:
                self._path.unlink(missing_ok=True)


def read(folder: Path) -> tuple[LiveCall, ...]:
    """Those under way, oldest first; none where the file cannot be read."""
    try:
        stored = json.loads((folder / FILE).read_bytes())
        return tuple(_checked(LiveCall(**one)) for one in stored)
    except (OSError, ValueError, TypeError, RecursionError):
        return ()


def _checked(call: LiveCall) -> LiveCall:
    """Raises TypeError where a part is not what it should be."""
    for name, part in LiveCall.__dataclass_fields__.items():
        value = getattr(call, name)
        expected = {"str": str, "int": int, "bool": bool, "float": (int, float)}[str(part.type)]
        if not isinstance(value, expected):  # type: ignore[arg-type]
            raise TypeError(f"{name} is {value!r:.50}")
    return call

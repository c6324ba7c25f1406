"""Asking the action host whether a source may run, by a child process that stays ready for the next question."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import threading
from typing import Any

from rlgpt.console.commands import children
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.store.row_types import SessionRow


class Checker:
    """Starts its child process at once, so that it is ready by the first question. One question at a time, from any
    thread."""

    def __init__(self, world: str) -> None:
        self._lock = threading.Lock()
        self._words = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the child)
        self._child = subprocess.Popen(
            children.command(children.SERVICE),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            text=True,
        )
        self._world = world
        self._is_ready = False
        self._send("open_admission", world=world)

    def ask(self, kind: str, source: str, session: SessionRow) -> dict[str, Any]:
        """{ok, name, rule, line, message} of an `action`, a `done_when` or a `reward` of a session. Raises Failure."""
        task, seed = str(session["task"]), int(session["settings"].get("seed", 0))
        with self._lock:
            if not self._is_ready:
                self._receive()
                self._is_ready = True
            self._send("admit", world=self._world, kind=kind, source=source, task=task, seed=seed)
            answer: dict[str, Any] = self._receive()
        return answer

    def _send(self, name: str, **arguments: Any) -> None:
        assert self._child.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # a child that is gone is noticed when its answer is read
            self._child.stdin.write(children.question(name, arguments))
            self._child.stdin.flush()

    def _receive(self) -> Any:
        assert self._child.stdout is not None
        try:
            return children.answered(self._child.stdout.readline())
        except (OSError, ValueError):
            raise Failure("" if self._words.closed else self._last_words(), Exit.ERROR) from None

    def close(self) -> None:
        """End the child process; a question that waits for its answer fails."""
        self._child.kill()
        self._child.wait()
        self._words.close()

    def _last_words(self) -> str:
        self._child.kill()
        self._words.seek(0)
        return children.last_words(self._words.read().decode(errors="replace"), children.SERVICE, self._child.wait())

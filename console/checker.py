"""Asking the action host whether a source may run, by a child process that stays ready for the next question."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
from typing import Any

from rlgpt.console.commands import children
from rlgpt.console.commands.failure import Exit, Failure


class Checker:
    """Starts at once and makes itself ready while nobody waits. One question at a time, from any thread."""

    def __init__(self, world: str) -> None:
        self._lock = threading.Lock()
        self._words = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the child)
        self._child = subprocess.Popen(
            children.command("training.service.questions", "admit", "--world", world),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            text=True,
        )

    def ask(self, kind: str, source: str, task: str, seed: int) -> dict[str, Any]:
        """{ok, name, rule, line, message} of an `action` or a `reward`. Raises Failure with its sentence."""
        question = json.dumps({"kind": kind, "source": source, "task": task, "seed": seed})
        assert self._child.stdin is not None and self._child.stdout is not None
        with self._lock:
            try:
                self._child.stdin.write(question + "\n")
                self._child.stdin.flush()
                line = self._child.stdout.readline()
            except (OSError, ValueError):
                line = ""
            if not line:
                raise Failure("" if self._words.closed else self._last_words(), Exit.ERROR)
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Failure(str(answer["error"]), Exit.ERROR)
        return answer

    def close(self) -> None:
        """Ends the child; a question that waits for its answer fails."""
        self._child.kill()
        self._child.wait()
        self._words.close()

    def _last_words(self) -> str:
        self._child.kill()
        self._words.seek(0)
        return children.last_words(self._words.read().decode(errors="replace"), "questions", self._child.wait())

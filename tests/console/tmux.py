"""The console in tmux: a real terminal with a server of its own, keys sent and the screen captured."""

from __future__ import annotations

import itertools
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from tests.patience import PATIENCE

_SERVERS = itertools.count()


class Tmux:
    """One window. What runs in it may end or be killed: the window stays, and `run` starts the next command there."""

    def __init__(
        self, words: Sequence[str], size: tuple[int, int] = (120, 40), environment: Mapping[str, str] | None = None
    ) -> None:
        self._socket = f"rlgpt-{os.getpid()}-{next(_SERVERS)}"
        kept = {k: v for k, v in os.environ.items() if k not in ("TMUX", "COLUMNS", "LINES")}
        self._environment = kept | dict(environment or {})
        options = "set -g remain-on-exit on ; set -g set-clipboard on ; set -g default-terminal tmux-256color"
        width, height = map(str, size)
        start = ("new-session", "-d", "-x", width, "-y", height, shlex.join(words))
        self.tmux("-f", "/dev/null", "start-server", ";", *options.split(), ";", *start)

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, *words],
            env=self._environment, capture_output=True, text=True, timeout=100, check=True,
        )  # fmt: skip
        return done.stdout

    def run(self, words: Sequence[str]) -> None:
        self.tmux("respawn-pane", "-k", shlex.join(words))

    @property
    def pid(self) -> int:
        return int(self.tmux("display-message", "-p", "#{pane_pid}"))

    @property
    def gone(self) -> bool:
        """Whether what ran here is no more."""
        return self.tmux("display-message", "-p", "#{pane_dead}").strip() == "1"

    def text(self) -> str:
        return self.tmux("capture-pane", "-p")

    def keys(self, *keys: str) -> None:
        """By tmux's names (`Enter`, `C-s`), one at a time."""
        for key in keys:
            self.tmux("send-keys", key)
            time.sleep(0.1)

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)
        time.sleep(0.1)

    def resize(self, width: int, height: int) -> None:
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    def until(self, condition: str | Callable[[str], bool], seconds: float = 90.0) -> str:
        """Wait for a text on the screen (or a predicate of it)."""
        end = time.monotonic() + seconds * PATIENCE
        while time.monotonic() < end:
            text = self.text()
            if condition in text if isinstance(condition, str) else condition(text):
                return text
            time.sleep(0.05)
        raise AssertionError(f"{condition!r} never came; the screen says\n{self.text()}")

    def __enter__(self) -> Tmux:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], env=self._environment, check=False)

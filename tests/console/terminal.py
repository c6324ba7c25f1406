"""The console in a real pseudo-terminal: keys in, bytes out, and the screen that a terminal makes of them."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

import pyte

from tests.patience import PATIENCE

_NOT_PASSED = ("COLUMNS", "LINES", "PYTHONDONTWRITEBYTECODE")
"""A size that is not the terminal's, and what makes every start compile everything again."""


class Terminal:
    """A child on a pty. `raw` holds every byte it wrote; `text()` is the screen now."""

    def __init__(
        self, words: Sequence[str], size: tuple[int, int] = (120, 40), environment: Mapping[str, str] | None = None
    ) -> None:
        self.raw = b""
        self.screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self.screen)
        self.started = time.monotonic()
        self.pid, self._file = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
            kept = {k: v for k, v in os.environ.items() if k not in _NOT_PASSED}
            own = {"TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})}
            os.execve(words[0], list(words), kept | own)

    def _size(self, size: tuple[int, int]) -> None:
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

    def resize(self, width: int, height: int) -> None:
        self._size((width, height))
        self.screen.resize(height, width)
        os.kill(self.pid, signal.SIGWINCH)

    def press(self, keys: str) -> None:
        os.write(self._file, keys.encode())

    def keys(self, *keys: str) -> None:
        """One key at a time, each answered before the next, as a person presses them."""
        for key in keys:
            self.press(key)
            select.select([self._file], [], [], 1.0)  # a busy machine answers later; a key without effect never
            self.read(0.1)

    def read(self, seconds: float = 0.05) -> bytes:
        """What it writes until it is silent for `seconds`."""
        new = b""
        while select.select([self._file], [], [], seconds)[0]:
            try:
                part = os.read(self._file, 65_536)
            except OSError:  # the child is gone
                break
            if not part:
                break
            new += part
            self._stream.feed(_without_unknown(part))
        self.raw += new
        return new

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def colours(self, text: str) -> list[tuple[str, str, bool]]:
        """Foreground, background and reverse of each cell of the first row with this text: what shows the focus."""
        row = next(n for n, line in enumerate(self.screen.display) if text in line)
        cells = self.screen.buffer[row]
        return [(cells[x].fg, cells[x].bg, cells[x].reverse) for x in range(self.screen.columns)]

    def until(self, condition: str | Callable[[str], bool], seconds: float = 60.0) -> str:
        """Wait for a text on the screen (or a predicate of it)."""
        end = time.monotonic() + seconds * PATIENCE
        while time.monotonic() < end:
            self.read(0.02)
            text = self.text()
            if condition in text if isinstance(condition, str) else condition(text):
                return text
        raise AssertionError(f"{condition!r} never came; the screen says\n{self.text()}")

    def wait(self, seconds: float = 20.0) -> int:
        """The exit code."""
        end = time.monotonic() + seconds * PATIENCE
        while time.monotonic() < end:
            self.read(0.02)
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"it did not end; the screen says\n{self.text()}")

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.pid = 0

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.pid:
            self.kill()
        os.close(self._file)


def console_words(home: str, session: str | None = None, replay: bool = False, read_only: bool = False) -> list[str]:
    """A command line that opens the console on a store."""
    code = (
        "import sys; from pathlib import Path; from rlgpt.console.app import run; "
        f"sys.exit(run(Path({home!r}), {session!r}, replay={replay}, read_only={read_only}))"
    )
    return [sys.executable, "-c", code]


def _without_unknown(part: bytes) -> bytes:
    """pyte prints what it does not know of private modes; those are dropped from its copy only."""
    import re

    return re.sub(rb"\x1b\[[<>=][^a-zA-Z]*[a-zA-Z]|\x1b\[\?[0-9;]*\$p|\x1bP[^\x1b]*\x1b\\\\", b"", part)

"""The parent's side of the bridge to a game: starts the child process, sends requests with a time limit, turns failures
into `MineDojoError`, and ends the child with all its processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgpack

from rlgpt.store import processes as marked_processes
from rlgpt.training.worlds.minedojo import processes
from rlgpt.training.worlds.minedojo.processes import MARK, ProcessRecord
from rlgpt.training.worlds.minedojo.settings import Settings, folder
from rlgpt.training.worlds.pipe import ChildPipe, TooLong
from rlgpt.training.worlds.protocol import WorldFailed

PROTOCOL = 3
"""Must be `child.PROTOCOL`; raised with every change of the messages."""
CHILD = Path(__file__).with_name("child.py")
SHIM = Path(__file__).with_name("shim")
MARKS = marked_processes.__file__
LAST_WORDS = 2000
"""Bytes of the end of the log that a `MineDojoError` carries."""
ENVIRONMENT_PREFIXES = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_", "DISPLAY", "XAUTHORITY", "JAVA", "LD_LIBRARY_PATH", "XDG_",
    "MINEDOJO_", "MALMO_", "LIBGL_", "MESA_", marked_processes.SESSION,
)  # fmt: skip
"""Prefixes of the environment variables that the child gets. No others, so that it has no key or token of a model."""


class MineDojoError(WorldFailed):
    """The argument is the sentence for the operator; `last_words` are the child's last lines.

    `kind`: `install`, `hello`, `task`, `game`, `stalled`, `died`, `memory`, `client`, `order` or `restarts`.
    """

    def __init__(self, kind: str, sentence: str, last_words: str = "") -> None:
        super().__init__(sentence)
        self.kind = kind
        self.last_words = last_words


def need_interpreter(settings: Settings) -> None:
    """Raises `MineDojoError` where there is none."""
    if not settings.interpreter.exists():
        raise MineDojoError(
            "install",
            f"There is no interpreter with MineDojo at {settings.interpreter}; run `rlgpt minedojo install`, or set "
            "RLGPT_MINEDOJO_PYTHON to one.",
        )


class GameBridge(Protocol):
    """Sends requests to one game, on this machine or on another one."""

    about: dict[str, Any]
    """The child's answer to `hello`: versions of protocol, Python, MineDojo and NumPy, and the game's folder."""

    def ask(self, operation: str, timeout: float, **arguments: Any) -> dict[str, Any]:
        """One request and its reply. Raises `MineDojoError`; after `stalled` or `died` the bridge must be ended."""

    def send(self, operation: str, **arguments: Any) -> None:
        """The first half of `ask`; `answer` must follow. Raises `MineDojoError`."""

    def answer(self, operation: str, timeout: float) -> dict[str, Any]:
        """The reply to what was sent. Raises `MineDojoError`."""

    def close(self, patience: float = 15.0) -> None:
        """Let the client close its game, then end whatever is left."""

    def end(self) -> None:
        """Kill the game and all that belongs to it."""


def close_orderly(bridge: GameBridge, patience: float) -> None:
    try:
        bridge.ask("close", patience)
    except MineDojoError as error:
        print(f"minedojo: closing was not orderly: {error}", file=sys.stderr)
    bridge.end()


class Bridge:
    """One child process. Not thread-safe. `on_start` is called with its record once it runs. Raises `MineDojoError`."""

    def __init__(self, settings: Settings, on_start: Callable[[ProcessRecord], None] | None = None) -> None:
        need_interpreter(settings)
        interpreter = settings.interpreter
        self.settings = settings
        self.run = uuid.uuid4().hex
        runs = folder() / "runs"
        self.folder = runs / self.run
        self.folder.mkdir(parents=True)
        self.log = self.folder / "child.log"
        environment = {name: value for name, value in os.environ.items() if name.startswith(ENVIRONMENT_PREFIXES)}
        environment |= {MARK: self.run, "TMPDIR": str(self.folder), "PYTHONUNBUFFERED": "1"}
        try:
            with self.log.open("wb") as log:
                self._process: subprocess.Popen[bytes] = subprocess.Popen(
                    [str(interpreter), "-W", "ignore", str(CHILD), str(SHIM), str(settings.memory_mb), MARKS, MARK],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                    cwd=self.folder, env=environment, start_new_session=True, close_fds=True,
                )  # fmt: skip
        except OSError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise MineDojoError("install", f"{interpreter} cannot be started: {error.strerror}.") from error
        own_pid = os.getpid()
        self.record = ProcessRecord(
            self.run, self._process.pid, processes.started_at(self._process.pid) or time.time(),
            own_pid, processes.started_at(own_pid) or 0.0,
        )  # fmt: skip
        processes.write_record(self.folder, self.record)
        if on_start is not None:
            on_start(self.record)
        self._pipe = ChildPipe(self._process)
        self.about: dict[str, Any] = {}
        self._greet()

    def _greet(self) -> None:
        try:
            self.about = self.ask(
                "hello", self.settings.hello_timeout, patch=self.settings.patch, malmo=self.settings.malmo
            )
        except MineDojoError as error:
            self.end()
            if error.kind in ("died", "import"):
                raise MineDojoError(
                    "hello",
                    f"{self.settings.interpreter} is not an interpreter with MineDojo: {error} Run "
                    "`rlgpt minedojo install`, or set RLGPT_MINEDOJO_PYTHON.",
                    error.last_words,
                ) from error
            raise
        if self.about["protocol"] != PROTOCOL:
            self.end()
            raise MineDojoError("hello", f"The bridge child speaks protocol {self.about['protocol']}, not {PROTOCOL}.")

    def ask(self, operation: str, timeout: float, **arguments: Any) -> dict[str, Any]:
        """One request and its reply. Raises `MineDojoError`; after `stalled` or `died` the bridge must be ended."""
        self.send(operation, **arguments)
        return self.answer(operation, timeout)

    def send(self, operation: str, **arguments: Any) -> None:
        """The first half of `ask`; `answer` must follow. Raises `MineDojoError`."""
        try:
            self._pipe.send(msgpack.packb({"op": operation, **arguments}))
        except BrokenPipeError as error:
            raise self._death() from error

    def answer(self, operation: str, timeout: float) -> dict[str, Any]:
        """The reply to what was sent. Raises `MineDojoError`."""
        try:
            reply = msgpack.unpackb(self._pipe.receive(timeout))
        except TimeoutError as error:
            sentence = f"MineDojo did not answer {operation} within {timeout:g} s."
            raise MineDojoError("stalled", sentence, self.last_words()) from error
        except EOFError as error:
            raise self._death() from error
        except TooLong as error:
            raise MineDojoError("client", f"MineDojo sent {error}.", self.last_words()) from error
        if "error" in reply:
            error_reply = reply["error"]
            raise MineDojoError(error_reply["kind"], error_reply["sentence"], error_reply["trace"] or self.last_words())
        result: dict[str, Any] = reply["ok"]
        return result

    def _death(self) -> MineDojoError:
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return MineDojoError("died", "The MineDojo process closed its pipe.", self.last_words())
        if code == -9:
            how = "was killed (signal 9; the system does this when memory runs out)"
        elif code < 0:
            how = f"died of signal {-code}"
        else:
            how = f"ended with exit code {code}"
        words = self.last_words()
        lines = [line.strip() for line in words.splitlines() if line.strip() and not line.startswith("[INFO")]
        last_line = f"; its last line was: {lines[-1][:200].rstrip('.')}" if lines else ""
        return MineDojoError("died", f"The MineDojo process {how}{last_line}.", words)

    def last_words(self) -> str:
        """The last `LAST_WORDS` bytes of the log of the child and the client, empty where it cannot be read."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, self.log.stat().st_size - LAST_WORDS))
                return log.read().decode(errors="replace")
        except OSError:
            return ""

    def close(self, patience: float = 15.0) -> None:
        """Let the client close its game, then end whatever is left."""
        close_orderly(self, patience)

    def end(self) -> None:
        """Kill the child's group, the game and the watchdog; remove the run directory."""
        processes.end(self.run, self._process.pid)
        self._pipe.close()
        self._process.wait(timeout=10)
        shutil.rmtree(self.folder, ignore_errors=True)

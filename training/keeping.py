"""The supervisor's side of a shared store: it starts the session's keeper, and starts it again when it dies.

Standard library only, as the supervisor. Where no store is named, nothing happens here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from rlgpt.store.address import VARIABLE, behind, is_shared, named
from rlgpt.store.errors import StoreError

FENCED = 5
"""Exit code of a keeper whose session was taken over."""
AGAIN, SELDOM = 2.0, 60.0
"""Seconds before a keeper that died is started again: twice as many each time, up to the second number."""
LAST_PUSH = 30.0
"""Seconds that a keeper may take to push the last rows."""


class Keeping:
    """Nothing to keep: no shared store is named."""

    fenced = False

    def close(self) -> None:
        """The worker has ended."""


class Keeper(Keeping):
    """Raises StoreError with the keeper's sentence if the session may not begin here."""

    def __init__(self, folder: Path, address: str) -> None:
        self._folder, self._address = folder, address
        self._closing = threading.Event()
        self._changing = threading.Lock()
        self._child = self._start()
        assert self._child.stdout is not None
        words = self._child.stdout.readline().split()
        if not words:
            self._child.wait()
            raise StoreError(self._last_words())
        self.incarnation = int(words[1])
        threading.Thread(target=self._watch, name="keeper", daemon=True).start()

    def _start(self, *incarnation: str) -> subprocess.Popen[bytes]:
        """Its words go where the worker's go."""
        with (self._folder / "worker.log").open("ab") as log:
            return subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "rlgpt.store.shared.keeper"),
                    *(str(self._folder), self._address, *incarnation),
                ],
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=os.environ | {VARIABLE: self._address},
            )

    def _start_again(self) -> subprocess.Popen[bytes]:
        return self._start(*([str(self.incarnation)] if self.incarnation else []))

    @property
    def pid(self) -> int:
        return self._child.pid

    def _watch(self) -> None:
        """A keeper holds nothing that another could not find in the store, so a dead one is simply started again; one
        that was taken over ends the worker, through the supervisor's own signal."""
        wait, started = AGAIN, time.monotonic()
        while True:
            code = self._child.wait()
            wait = AGAIN if time.monotonic() - started > SELDOM else min(2 * wait, SELDOM)
            with self._changing:
                if self._closing.is_set():
                    return
                if code == FENCED:
                    self.fenced = True
                    os.kill(os.getpid(), signal.SIGTERM)
                    return
            if self._closing.wait(wait):
                return
            started = time.monotonic()
            with self._changing:
                if not self._closing.is_set():
                    self._child = self._start_again()
                    threading.Thread(target=self._read, args=(self._child,), daemon=True).start()

    def _read(self, child: subprocess.Popen[bytes]) -> None:
        """One that began while the store was away learns its incarnation later."""
        assert child.stdout is not None
        for line in child.stdout:
            words = line.split()
            if words[:1] == [b"ready"]:
                self.incarnation = max(self.incarnation, int(words[1]))

    def close(self) -> None:
        with self._changing:
            self._closing.set()
            code = self._child.poll()
            if code == FENCED:
                self.fenced = True
            elif code is not None:  # it waits to be started again, and nobody else pushes the last rows
                self._child = self._start_again()
            assert self._child.stdin is not None
            with contextlib.suppress(OSError):
                self._child.stdin.close()
        try:
            self._child.wait(LAST_PUSH)
        except subprocess.TimeoutExpired:
            self._child.kill()
            with contextlib.suppress(OSError), (self._folder / "worker.log").open("a") as log:
                log.write(f"{behind(self._folder.name)}\n")

    def _last_words(self) -> str:
        lines = (self._folder / "worker.log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "the keeper of the shared store said nothing"


def begin_keeping(folder: Path) -> Keeping:
    """Raises StoreError."""
    address = named()
    return Keeper(folder, address) if is_shared(address) else Keeping()


def set_aside(folder: Path, keeper: Keeping) -> None:
    """What this worker wrote after it was taken over is nobody's session any more; it is kept, and never pushed."""
    incarnation = getattr(keeper, "incarnation", 0)
    with contextlib.suppress(OSError):
        folder.rename(folder.with_name(f".lost-{folder.name}-{incarnation}"))

"""A game in a process of its own on this machine: `python -m rlgpt.training.worlds.away.process` is the game's side."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from importlib import import_module

from rlgpt.training.worlds.away.channel import GameLost
from rlgpt.training.worlds.pipe import ChildPipe, TooLong, serve_request


class GameProcess:
    """See `channel.Channel`. `side` is `module:class` of what answers in the process. Raises `GameLost`."""

    def __init__(self, side: str) -> None:
        path = os.pathsep.join(filter(None, sys.path))  # so that the process can import every world that this one can
        try:
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, side], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": path},
            )  # fmt: skip
        except OSError as error:
            raise GameLost(f"no process can be started for it: {error.strerror}") from error
        self._pipe = ChildPipe(self._process)
        self.place = f"process {self._process.pid}"

    def send(self, message: bytes) -> None:
        try:
            self._pipe.send(message)
        except BrokenPipeError as error:
            raise GameLost(self._describe_exit()) from error

    def receive(self, timeout: float) -> bytes:
        try:
            return self._pipe.receive(timeout)
        except TimeoutError as error:
            raise GameLost(f"{self.place} did not answer within {timeout:g} s") from error
        except (EOFError, TooLong) as error:
            raise GameLost(self._describe_exit()) from error

    def _describe_exit(self) -> str:
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return f"{self.place} closed its pipe"
        return f"{self.place} died of signal {-code}" if code < 0 else f"{self.place} ended with exit code {code}"

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._pipe.close()


def main() -> None:
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that what a world prints does not get between the answers
    devnull = os.open(os.devnull, os.O_RDONLY)
    os.dup2(devnull, 0)
    module, _, name = sys.argv[1].partition(":")
    player = getattr(import_module(module), name)()
    while (message := serve_request(requests)) is not None:
        answer = player.answer(message)
        answers.write(struct.pack("!I", len(answer)) + answer)
        answers.flush()


if __name__ == "__main__":
    main()

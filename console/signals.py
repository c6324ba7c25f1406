"""SIGTERM and SIGHUP for a command that has no handler of its own: it ends as at once, but first takes away what it has
half written. The console and `rlgpt serve` have their own handlers, and are left as Python starts them."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

ENDING = (signal.SIGTERM, signal.SIGHUP)


class ToldToEnd(SystemExit):
    """128 and the signal's number is its code, as a shell has it."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


def unwind() -> None:
    """From now on a signal to end raises ToldToEnd in the main thread, so that `finally` blocks run. A second one ends
    the process at once. What is ignored, as SIGHUP is under nohup, stays so."""
    for number in ENDING:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _raise)


def end_at_once() -> None:
    """As without `unwind`: for what handles signals itself."""
    for number in ENDING:
        if signal.getsignal(number) == _raise:
            signal.signal(number, signal.SIG_DFL)


def die_of(number: int) -> NoReturn:
    """End by the signal itself: whoever started this process sees that it was told to end."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    sys.exit(128 + number)  # where the signal is blocked


def _raise(number: int, frame: FrameType | None) -> None:
    end_at_once()
    raise ToldToEnd(number)

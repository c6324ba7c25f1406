"""Random delays where programs meet each other: of one process. See CONTRIBUTING.md. Standard library only."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

VARIABLE = "RLGPT_TEST_SHAKE"
"""Holds the seed of the delays. The seed repeats the delays of each process, not the order in which threads run."""
_sleep = time.sleep
_random = random.Random(f"{os.environ.get(VARIABLE)} {sys.orig_argv[1:4]}")


def length(share: float = 1.0) -> float:
    """Mostly 0, often some milliseconds, seldom up to 3 seconds. `share`: of the usual probabilities."""
    drawn = _random.random() / share
    most = 3.0 if drawn < 0.01 else 0.5 if drawn < 0.05 else 0.03 if drawn < 0.3 else 0.0
    return most * _random.random()


def pause(share: float = 1.0) -> None:
    if seconds := length(share):
        _sleep(seconds)


def before(function: Callable[..., Any], share: float = 1.0) -> Callable[..., Any]:
    @wraps(function)
    def shaken(*given: Any, **named: Any) -> Any:
        pause(share)
        return function(*given, **named)

    return shaken


def around(function: Callable[..., Any], share: float = 1.0) -> Callable[..., Any]:
    """Late to begin, and late to be heard of."""
    begun = before(function, share)

    @wraps(function)
    def shaken(*given: Any, **named: Any) -> Any:
        result = begun(*given, **named)
        pause(share)
        return result

    return shaken


_connect_before = sqlite3.connect


class _Connection(sqlite3.Connection):
    """Rows are seen late, and whoever writes them is told late that they are stored."""

    def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
        commit = sql == "COMMIT"
        if commit or sql == "BEGIN IMMEDIATE":
            pause(0.2)
        cursor = super().execute(sql, *given)
        if commit:
            pause(0.2)
        return cursor


def _connect(*given: Any, **named: Any) -> sqlite3.Connection:
    return _connect_before(*given, **{"factory": _Connection, **named})


def shake() -> None:
    """This process, from now on."""
    threading.Thread.run = before(threading.Thread.run)  # type: ignore[method-assign]
    subprocess.Popen.__init__ = around(subprocess.Popen.__init__)  # type: ignore[method-assign]
    time.sleep = around(time.sleep, 0.2)
    sqlite3.connect = _connect  # type: ignore[assignment]

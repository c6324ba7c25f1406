"""Halts a session's trainer in a state that passes by itself, so that a test can do something to it in that state.

`Running.halting` starts a session so. The first trainer that comes to the state stops itself (SIGSTOP) once its rows
are committed, and leaves a mark, so that it goes on when it is continued, and so does the next one.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

HALT = "RLGPT_TEST_HALT"
MARK = "halted"
"""File in the session's folder."""
TRAINING = "training"


def halt() -> None:
    """In every process; only a trainer that has not halted yet is changed."""
    if "rlgpt.training.worker" not in sys.orig_argv:
        return
    mark, state = Path(sys.orig_argv[-1]) / MARK, os.environ[HALT]
    if mark.exists():
        return
    from rlgpt.store.history import History
    from rlgpt.store.writer import Writer

    commit = Writer._commit

    def reached(history: History) -> bool:
        if state == TRAINING:  # PPO has made an update and goes on
            return any(run.state == "running" and run.updates >= 1 for run in history.runs.values())
        return history.phase.name == state

    def halting(writer: Writer, *given: object) -> None:
        commit(writer, *given)  # type: ignore[arg-type]
        if not mark.exists() and reached(writer.history):
            mark.touch()
            os.kill(os.getpid(), signal.SIGSTOP)

    Writer._commit = halting  # type: ignore[method-assign,assignment]

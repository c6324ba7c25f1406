"""A corridor whose episodes cannot be started, in the ways in which somebody else's code fails: `FAILS` names one."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.worlds.protocol import Task, WorldFailed
from tests.worlds.corridor import CorridorEnv, ScriptedCorridor

FAILS = "RLGPT_TEST_FAILS"
STARTED: list[str] = []
"""One process is enough."""


class FailingEnv(CorridorEnv):
    def reset(self, seed: int) -> None:
        super().reset(seed)
        how = os.environ.get(FAILS)
        if how == "raises":
            raise ValueError("the door is stuck\nand so is the window\n\n")
        if how == "leaves":
            sys.exit(0)
        if how == "ends the process":
            os._exit(0)
        if how == "leaves a thread":
            threading.Thread(target=threading.Event().wait, name="render loop").start()
        if how in ("leaves a process", "leaves a program", "is killed beside its game") and not STARTED:
            STARTED.append(how)
            if how == "leaves a process":
                multiprocessing.get_context("fork").Process(target=time.sleep, args=(3600,)).start()
            else:
                subprocess.Popen(["sleep", "3600"])
        if how == "is killed beside its game":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "gives up":
            atexit.register(print, "Goodbye from the simulator.", flush=True)
            raise WorldFailed("The simulator\nhas no licence.")

    def observe(self) -> NDArray[np.float32]:
        seen = super().observe()
        if os.environ.get(FAILS) == "sees nothing":
            seen[1] = np.nan
        if os.environ.get(FAILS) == "shrinks" and self.steps:
            return seen[1:]
        return seen


class FailingCorridor(ScriptedCorridor):
    @property
    def tasks(self) -> Mapping[str, Task]:  # type: ignore[override]
        every = ScriptedCorridor.tasks
        if os.environ.get(FAILS) == "has lost its tasks":
            return {name: task for name, task in every.items() if name == "take_coin"}
        return every

    @property
    def version(self) -> str:  # type: ignore[override]
        if os.environ.get(FAILS) == "has no version":
            raise RuntimeError("no\nversion here")
        return ScriptedCorridor.version

    def make(self, task: str, **kwargs: object) -> FailingEnv:
        made = super().make(task, **kwargs)  # type: ignore[arg-type]
        made.__class__ = FailingEnv
        return made  # type: ignore[return-value]


def make_failing() -> FailingCorridor:
    return FailingCorridor()

"""The worker of one session: folds the rows, asks the loop for the next step, does it, and appends its rows.

`python -P -m rlgpt.training.worker FOLDER`, started by the supervisor. Exit code 0: the session has ended or was
stopped, whatever its result. CANNOT: it cannot go on here, and the last line of standard error says why. Anything else
is a crash that the supervisor answers.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from rlgpt.agents import loop
from rlgpt.agents.errors import AgentError, BudgetReached
from rlgpt.agents.remaining import steps_ahead
from rlgpt.store import events
from rlgpt.store.errors import DiskFull, LeaseTaken, StoreError, WriteFailed
from rlgpt.training import last_words, leaving
from rlgpt.training.host.client.errors import HostError
from rlgpt.training.host.sandbox import libc
from rlgpt.training.opening import open_session
from rlgpt.training.ppo.machine import MachineLacks
from rlgpt.training.session.budgets import over_budget
from rlgpt.training.session.creation import CannotCreate
from rlgpt.training.session.runtime import Interrupted, SessionRuntime
from rlgpt.training.steps import coding, judging, learning, planning, waiting
from rlgpt.training.steps.ahead import Lookahead
from rlgpt.training.steps.decision_rows import write_decisions
from rlgpt.training.supervisor import CANNOT
from rlgpt.training.worlds.faults import one_line, world_fault
from rlgpt.training.worlds.protocol import WorldFailed
from rlgpt.training.worlds.registry import UnknownWorld

CRASHED = 1

STEPS: dict[type, Callable[[SessionRuntime, Any], None]] = {
    loop.PlanTasks: planning.plan_tasks,
    loop.OpenIteration: planning.open_iteration,
    loop.Plan: planning.plan,
    loop.Code: coding.code,
    loop.Trial: coding.trial,
    loop.JudgeItem: coding.judge_item,
    loop.Configure: learning.configure,
    loop.Train: learning.train,
    loop.Evaluate: judging.evaluate,
    loop.JudgeIteration: judging.judge_iteration,
    loop.Wait: waiting.wait,
}


def run(runtime: SessionRuntime) -> None:
    """Step until the loop says Done."""
    sentence, budgets, lookahead = "", runtime.history.budgets.copy(), Lookahead()
    opened = True
    while True:
        runtime.need_room()
        if not (opened and _goes_on_training(runtime)):
            runtime.apply(runtime)
        opened = False
        if runtime.history.budgets != budgets:  # the operator has set another, perhaps while the call was refused
            sentence, budgets = "", runtime.history.budgets.copy()
        write_decisions(runtime.writer)
        step = loop.next_step(runtime.history, runtime.limits, sentence or over_budget(runtime))
        lookahead.look(runtime, step)
        if isinstance(step, loop.Done):
            judging.end(runtime, step)
            return
        if not isinstance(step, loop.Wait) and not runtime.slot.take():
            runtime.take_slot()
            continue
        _announce(runtime, step)
        try:
            STEPS[type(step)](runtime, step)
        except Interrupted:
            continue
        except BudgetReached as reached:
            sentence = str(reached)


def _goes_on_training(runtime: SessionRuntime) -> bool:
    """Whether the next step continues a training that was cut off. It takes the commands that have come meanwhile
    itself, where it stands, so that it ends as it would have without the cut."""
    step = loop.next_step(runtime.history, runtime.limits, over_budget(runtime))
    return isinstance(step, loop.Train) and step.run is not None


def _announce(runtime: SessionRuntime, step: loop.Step) -> None:
    if isinstance(step, loop.Wait):
        return
    words = {k: v for k, v in vars(step).items() if v not in ("", (), None)}
    name = type(step).__name__
    runtime.progress.phase(" ".join([name, *map(str, words.values())]))
    ahead = steps_ahead(runtime.history, runtime.limits, step, runtime.env_steps_left())
    with runtime.writer.transaction() as tx:
        tx.event(events.Phase(name, **words, ahead=ahead))


def _die_with_parent() -> None:
    """Nothing of a session outlives its supervisor, not even by kill -9."""
    parent = os.getppid()
    if sys.platform == "linux":
        libc.call("prctl", 1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent or parent == 1:
        sys.exit("the supervisor is gone")


def _last_words(runtime: SessionRuntime, sentence: str) -> int:
    """The end that a resume may undo: one row, also on a full disk if it still fits (the writer keeps some room)."""
    for _ in range(2):  # what fails first gives up the room that the writer keeps
        with contextlib.suppress(StoreError):
            runtime.writer.event(events.Ended(status="stopped", reason=sentence))
            return 0
    last_words.say(sentence)
    return CANNOT


def _crash(sentence: str) -> int:
    """For an exception of any kind: a world of somebody else may raise SystemExit too."""
    traceback.print_exc()
    last_words.say(sentence)
    return CRASHED


def main(folder: Path) -> int:
    os.umask(0o077)
    _die_with_parent()
    try:
        runtime = open_session(folder)
    except LeaseTaken:  # by somebody who will be gone in a moment: try again
        raise
    except (AgentError, StoreError, HostError, UnknownWorld, CannotCreate, WorldFailed) as error:
        last_words.say(str(error))
        return CANNOT
    except BaseException as error:
        return _crash(one_line(error))

    def stop(number: int, frame: FrameType | None) -> None:
        runtime.stop_signal = True

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
    try:
        run(runtime)
    except (DiskFull, HostError, MachineLacks, WriteFailed) as error:
        # The machine lacks something, or another program holds the database: a resume goes on.
        return _last_words(runtime, str(error))
    except (AgentError, StoreError) as error:
        judging.end(runtime, loop.Done("failed", str(error)))
    except WorldFailed as error:
        last_words.say(str(error))
        return CANNOT
    except BaseException as error:
        return _crash(world_fault(error, runtime.world) or one_line(error))
    finally:
        runtime.close()
    return 0


if __name__ == "__main__":
    leaving.run(lambda: main(Path(sys.argv[1])))

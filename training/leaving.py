"""The end of a process that has run a world of somebody else, which may have started threads and processes that never
end.

The interpreter waits for every thread that is no daemon before it ends, and only then runs what `atexit` holds
(https://docs.python.org/3/library/threading.html#thread-objects). There `multiprocessing` waits, without a limit, for
its processes that are no daemons (https://docs.python.org/3/library/multiprocessing.html#programming-guidelines).
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

PATIENCE = 5.0
"""Seconds in which threads may end once `main` has returned, and after them the processes of `multiprocessing`."""


def run(main: Callable[[], int]) -> NoReturn:
    """Call `main` and exit with its code, within PATIENCE even where a thread goes on for ever. In that case nothing
    that `atexit` holds is run, and standard error names the threads. Processes of `multiprocessing` that go on PATIENCE
    later are killed."""
    code = 1
    try:
        code = main()
    finally:
        _watch(code)
    sys.exit(code)


def _watch(code: int) -> None:
    ended = threading.Event()
    atexit.register(ended.set)  # what is registered last is called first

    def end() -> None:
        if not ended.wait(PATIENCE):
            main_thread = threading.main_thread()
            left = {thread.name for thread in threading.enumerate() if not thread.daemon and thread is not main_thread}
            try:
                print(f"threads that do not end are left: {', '.join(sorted(left))}", file=sys.stderr, flush=True)
            finally:
                _end_processes(0.0)
                os._exit(code)
        _end_processes(PATIENCE)

    threading.Thread(target=end, daemon=True).start()


def _end_processes(patience: float) -> None:
    """Kill what the main thread would wait for, which cannot end meanwhile: its exit is what it waits in."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is None:
        return
    time.sleep(patience)
    for process in multiprocessing.active_children():
        process.kill()

"""Runs one session on the cluster that its folder names: `python -P -m rlgpt.training.cluster FOLDER`.

It takes the supervisor's part here: it holds the session's lock and ends with the session. SIGTERM and SIGINT end only
this process; the session goes on, and the same command finds it again.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType

from rlgpt.store.folder import SessionFolder
from rlgpt.store.placing import placed_on
from rlgpt.training.cluster.nodes import Nodes
from rlgpt.training.cluster.placed import Placed


def main(folder: Path) -> int:
    address = placed_on(folder)

    def leave(number: int, frame: FrameType | None) -> None:
        placed.terminate()

    def heed_signals() -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, leave)

    def reach() -> Nodes:
        nodes = Nodes(address)
        heed_signals()  # again: Ray's own handler of SIGTERM aborts the process
        return nodes

    placed = Placed(SessionFolder(folder), address, reach)
    heed_signals()
    placed.run()  # not as a thread: only the main one may say what a signal does
    return placed.code


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main(Path(sys.argv[1])))

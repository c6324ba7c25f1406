"""Seconds from a command that an operator sends on one machine until it shows there as seen by the worker of another.

    python -P benchmarks/steering.py ADDRESS [TRIES]

ADDRESS of an empty database that you own. Worker, keeper and colleague are processes of this machine, with a store each
of their own; between the worker and the colleague there is only the shared store.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rlgpt.store import inbox
from rlgpt.store.commands import parse_command
from rlgpt.store.lease import Lease
from rlgpt.store.reach import reached
from rlgpt.store.reader import Reader
from rlgpt.store.shared import admin
from rlgpt.store.writer import Writer
from rlgpt.training.session.inbox import Inbox
from tests.commands.conftest import make, write_plan
from tests.store.keeping import Keeper


def colleague(ident: str, tries: int) -> None:
    """As a console does that is attached to the session."""
    shown: list[float] = []
    with reached(ident) as folder, Reader(folder) as reader:
        for number in range(tries):
            time.sleep(random.Random(number).random())  # at any moment between two looks of the others
            began = time.perf_counter()
            name = inbox.send(folder, parse_command("advise", {"agent": "slow", "text": f"try {number}"}))
            while not (told := reader.history_at().commands.get(name)) or told.state not in ("seen", "applied"):
                time.sleep(0.01)
            shown.append(time.perf_counter() - began)
    shown.sort()
    print(f"{tries} commands: seen after {statistics.median(shown):.2f} s (median), {shown[-1]:.2f} s at most; {shown}")


def main(address: str, tries: int) -> int:
    admin.init(address)
    os.environ["RLGPT_HOME"] = tempfile.mkdtemp(prefix="rlgpt-bench-")
    session = make()
    with Lease.acquire(session.path), Writer(session) as writer:
        write_plan(writer)
        keeper = Keeper(session.path, address)
        keeper.ready()
        commands = Inbox(writer)
        commands.start()
        there = {"RLGPT_HOME": tempfile.mkdtemp(prefix="rlgpt-bench-"), "RLGPT_STORE": address}
        line = [sys.executable, "-P", __file__, "--colleague", session.id, str(tries)]
        code = subprocess.run(line, env=os.environ | there, check=False).returncode
        commands.close()
    keeper.end()
    return code


if __name__ == "__main__":
    if sys.argv[1] == "--colleague":
        colleague(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(main(sys.argv[1], int((sys.argv[2:3] or ["20"])[0])))

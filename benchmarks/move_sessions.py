"""Many sessions moved to a team's store and brought back, each time killed in the middle and gone on with.

    python -P benchmarks/move_sessions.py ADDRESS [SESSIONS]

ADDRESS of an empty database that you own; 1,000 sessions if left out, of 640 rows, two texts and a file of 100 kB each.
`rlgpt store move` and `rlgpt store pull` run as an operator runs them, and are killed with SIGKILL once half of the
sessions have come. Ends with 1 where a session is lost or is not the same to the last byte.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared_store import ROWS, renamed, template
from rlgpt.store import artifacts, upkeep
from rlgpt.store.folder import SessionFolder, sessions
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.home import home
from rlgpt.store.peers import digest
from rlgpt.store.shared import admin
from rlgpt.store.shared.store import SharedStore
from tests.store.copies import everything, files

FILE = 100_000
"""Bytes of the file of each session."""
SAMPLE = 20
"""Sessions of which every value and file is compared besides."""


def make(count: int) -> list[SessionFolder]:
    """Sessions of this store, each with texts and a file of its own."""
    pattern = template()
    whole = FolderPeer(pattern.path).since(0, set())
    made = []
    rng = random.Random(0)
    for number in range(count):
        session = SessionFolder(pattern.path.with_name(f"260101-000000-{number:05d}"))
        with contextlib.closing(FolderPeer(session.path)) as peer:
            body = rng.randbytes(FILE)
            peer.append(renamed(whole, session.id)._replace(artifacts={artifacts.digest(body): body}))
        made.append(session)
    upkeep.delete(pattern)
    return made


def digests(made: list[SessionFolder]) -> dict[str, str]:
    found = {}
    for session in made:
        with contextlib.closing(FolderPeer(session.path)) as peer:
            found[session.id] = digest(peer)
    return found


def values(made: list[SessionFolder]) -> dict[str, tuple[dict[str, Any], dict[str, bytes]]]:
    """Every raw value and file of a sample."""
    chosen = random.Random(1).sample(made, min(SAMPLE, len(made)))
    return {session.id: (everything(session.path), files(session.path)) for session in chosen}


def command(*words: str, until: Callable[[], bool] | None = None) -> tuple[float, float]:
    """(seconds, most MB) of `rlgpt`; killed once `until` holds."""
    began, most = time.perf_counter(), 0
    line = [sys.executable, "-P", "-m", "rlgpt.console.cli", *words]
    child = psutil.Popen(line, stdout=subprocess.DEVNULL, env=os.environ | {"RLGPT_HOME": str(home())})
    while child.poll() is None:
        with contextlib.suppress(psutil.Error):
            most = max(most, child.memory_info().rss)
        if until is not None and until():
            child.kill()
        time.sleep(0.05)
    if until is None and child.returncode:
        raise SystemExit(f"`rlgpt {' '.join(words)[:80]}` ended with {child.returncode}")
    return time.perf_counter() - began, most / 1e6


def main(address: str, count: int) -> int:
    os.environ["RLGPT_HOME"] = tempfile.mkdtemp(prefix="rlgpt-bench-")
    admin.init(address)
    made = make(count)
    before, kept = digests(made), values(made)
    ids = [session.id for session in made]
    print(f"{count} sessions of {ROWS} rows and {FILE // 1000} kB, load {os.getloadavg()[0]:.0f}", flush=True)

    half = count // 2
    first, _ = command("store", "move", "--to", address, until=lambda: len(sessions()) <= count - half)
    left = len(sessions())
    store = SharedStore(address)
    print(
        f"move killed after {first:.1f} s: {count - left} moved, {left} here, {len(store.sessions())} there", flush=True
    )
    second, memory = command("store", "move", "--to", address)
    there = len(store.sessions())
    print(
        f"moved, compared and deleted here: {first + second:.1f} s for both, {memory:.0f} MB of memory; {there} there, "
        f"{len(sessions())} here; {admin.total(address) / 1e6:.0f} MB on the server",
        flush=True,
    )
    third, _ = command("store", "pull", "--from", address, *ids, until=lambda: len(sessions()) >= half)
    print(f"pull killed after {third:.1f} s: {len(sessions())} here", flush=True)
    fourth, memory = command("store", "pull", "--from", address, *ids)
    print(f"pulled: {third + fourth:.1f} s for both, {memory:.0f} MB of memory", flush=True)
    after, found = digests(sessions()), values(made)
    same = sum(after.get(ident) == mark for ident, mark in before.items())
    equal = sum(found[ident] == value for ident, value in kept.items())
    left_over = sorted(path.name for path in made[0].path.parent.iterdir() if path.name.startswith("."))
    print(f"{same} of {count} digests equal, {equal} of {len(kept)} value for value; left over: {left_over}")
    return 0 if (same, equal, there, len(after)) == (count, len(kept), count, count) and not left_over else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int((sys.argv[2:3] or ["1000"])[0])))

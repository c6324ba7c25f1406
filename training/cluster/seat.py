"""A seat: the actor that runs one session on a node. It keeps the session's folder on the node's disk, runs the
ordinary supervisor there, and answers for both.

The supervisor is on a leash: its standard input is a pipe from the seat. Whatever ends the seat (its node is lost, Ray
kills it for its memory, its session has another one) ends the leash, and with it everything of the session here.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

from rlgpt.store import home as homes
from rlgpt.store.address import VARIABLE as STORE
from rlgpt.store.errors import LeaseTaken
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.lease import Lease
from rlgpt.store.peers import Batch, Head, RemoteWorker
from rlgpt.store.row_types import JsonObject
from rlgpt.store.skills import FORMAT
from rlgpt.store.spending import tell_elsewhere

ROLLOUTS = 30.0
"""Seconds between two rollout checkpoints that are sent: a session that is lost goes on from the last one."""
ABANDONED = 24 * 3600.0
"""Seconds without anybody who follows a session after which it is stopped here; after as many more the seat ends.
Folders whose seat has been gone for so long are deleted."""
LOCK = "seat.lock"
LAST_LINES = 20


class Ending(NamedTuple):
    """How the supervisor ended."""

    code: int
    words: list[str]
    """The end of `worker.log`."""
    skills: bytes
    """The skills that the session kept, as `skills.import_` reads them."""


class Seat:
    def __init__(self, name: str, session_id: str, abandoned: float = ABANDONED) -> None:
        """`name` is this actor's: each placing of a session has another one. Raises BadPlace."""
        self._abandoned = abandoned
        seats = homes.home() / "seats"
        _sweep(seats)
        self._home = seats / name
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lease = Lease.acquire(self._home, LOCK)
        self._folder = self._home / "sessions" / session_id
        self._peer = FolderPeer(self._folder, rollouts_every=ROLLOUTS)
        self._known: set[str] = set()
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._last_call = time.monotonic()

    def where(self) -> str:
        """The node's name."""
        return socket.gethostname()

    # ---- its folder as a peer -------------------------------------------------------------------
    def head(self) -> Head:
        return self._peer.head()

    def names(self) -> set[str]:
        return self._peer.names()

    def mark(self, seq: int) -> str:
        return self._peer.mark(seq)

    def since(self, seq: int, known: set[str], limit: int) -> Batch:
        """`known`: names that the caller has, and that it did not tell before."""
        self._known |= known
        return self._peer.since(seq, self._known, limit)

    def append(self, batch: Batch) -> None:
        self._peer.append(batch)

    def append_source(self, session_id: str, batch: Batch) -> None:
        """Of another session, whose recorded calls this one replays."""
        with contextlib.closing(FolderPeer(self._folder.with_name(session_id))) as peer:
            if peer.head().seq < batch.last:  # else it was told before
                peer.append(batch)

    def worker(self) -> RemoteWorker | None:
        self._last_call = time.monotonic()
        if self._over():
            self._peer.close()
            self._peer = FolderPeer(self._folder)  # nothing is held back any more
            return None
        return self._peer.worker()

    def send(self, command: JsonObject) -> None:
        self._peer.send(command)

    def spent_elsewhere(self, usd: float) -> None:
        tell_elsewhere(self._home, usd)

    # ---- its supervisor -------------------------------------------------------------------------
    def start(self, games_on: str = "") -> None:
        """`games_on`: see training/worlds/away. Told twice it starts one worker."""
        if self._supervisor is not None:
            return
        with (self._folder / "worker.log").open("ab") as log:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-P", "-m", "rlgpt.training.supervisor", str(self._folder), "--leash"],
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=_environment() | {homes.VARIABLE: str(self._home), homes.GAMES_ON: games_on},
            )
        threading.Thread(target=self._watch, name="seat", daemon=True).start()

    def started(self) -> bool:
        """Also where it is over; not where all of it is home."""
        return self._supervisor is not None and self._home.exists()

    def _over(self) -> bool:
        return self._supervisor is not None and self._supervisor.poll() is not None

    def ending(self) -> Ending | None:
        """None while the supervisor lives."""
        if self._supervisor is None or self._supervisor.poll() is None:
            return None
        lines = (self._folder / "worker.log").read_text(errors="replace").splitlines()
        records = [json.loads(path.read_bytes()) for path in sorted((self._home / "skills").glob("*.json"))]
        skills = json.dumps({"format": FORMAT, "skills": records}).encode() if records else b""
        return Ending(self._supervisor.returncode, lines[-LAST_LINES:], skills)

    def remove(self) -> None:
        """Its session is home: nothing of it is needed here any more."""
        self._peer.close()
        shutil.rmtree(self._home, ignore_errors=True)

    def _watch(self) -> None:
        """A session that nobody follows would use up its budget, or wait for an operator for ever."""
        while True:
            time.sleep(min(60.0, self._abandoned / 4))
            if time.monotonic() - self._last_call <= self._abandoned:
                continue
            if self._over():
                os._exit(0)
            self._stop(f"nobody has followed this session for {self._abandoned:g} s: it stops")
            self._last_call = time.monotonic()

    def _stop(self, why: str) -> None:
        assert self._supervisor is not None
        with (self._folder / "worker.log").open("a") as log:
            log.write(why + "\n")
        self._supervisor.terminate()


def _environment() -> dict[str, str]:
    """The node's, without what Ray set for this actor: a worker that reaches the cluster must not take itself for the
    actor. No store of a team: the session's rows go where it was placed from."""
    foreign = {"OMP_NUM_THREADS", STORE}
    return {
        name: value
        for name, value in os.environ.items()
        if name not in foreign and (not name.startswith("RAY_") or name.startswith("RAY_AUTH_"))
    }


def _sweep(seats: Path) -> None:
    """Delete what lost seats left here long ago."""
    for folder in seats.iterdir() if seats.is_dir() else ():
        with contextlib.suppress(OSError, LeaseTaken):
            if time.time() - folder.stat().st_mtime > ABANDONED:
                with Lease.acquire(folder, LOCK, patience=0.0):
                    shutil.rmtree(folder)

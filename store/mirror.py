"""A mirror: a session's folder that is kept up to a worker elsewhere, so that here it looks like any other session.

Its keeper holds the mirror's `worker.lock` exactly as long as the remote worker lives, with that worker's record in it;
it writes the worker's progress, and carries what operators send to the mirror's inbox to the real one. Whoever reads
the folder needs to know nothing of this.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from rlgpt.store import atomic, progress
from rlgpt.store.address import MARK
from rlgpt.store.database import connect
from rlgpt.store.errors import BadCommand, LeaseTaken, NotAllowed, TakesNothing
from rlgpt.store.folder import DATABASE
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.lease import Lease, Owner
from rlgpt.store.peers import COMMAND, Remote, RemoteWorker, bring, sync
from rlgpt.store.placing import placed_on

REFUSED = "refused.json"
"""In a mirror: why the store there refused commands of this inbox, by their ids; they are not sent again."""
EVERY = 0.5
"""Seconds between two rounds."""


class Mirror:
    """Raises what `sync` raises, LeaseTaken where a worker has the session in this folder, BadPlace."""

    def __init__(self, remote: Remote, folder: Path, lease: Lease | None = None) -> None:
        """`lease`: the folder's lock, of who places the session and holds it also while no worker lives there."""
        self.folder = folder
        self._placing = lease
        self._remote, self._local = remote, FolderPeer(folder)
        self._lease: Lease | None = None
        self._shown: Owner | None = None
        self._carried = 0
        self._seq: int | None = None
        self._names: set[str] = set()

    def step(self) -> bool:
        """One round; returns whether a worker lives there."""
        worker = self._remote.worker()  # before the rows, so that what it wrote until its end is among them
        if self._seq is None:
            sync(self._remote, self._local)
            self._seq, self._names = self._local.head().seq, self._local.names()
        else:  # nobody else writes the mirror
            self._seq = bring(self._remote, self._local, self._seq, self._names).seq
        self._show(worker)  # before the mark: a folder whose worker is here is no mirror, and is left as it is
        if not (self.folder / MARK).exists():
            atomic.write_bytes(self.folder / MARK, json.dumps({"of": self._remote.place}).encode())
        self._carry()
        return worker is not None

    def go_on(self, remote: Remote) -> None:
        """Over another connection, since the last one was lost. Meanwhile nobody knows whether the worker there lives,
        so the lock stays what it was: a free one would say that it has died."""
        self._remote, self._seq = remote, None

    def _carry(self) -> None:
        """What was sent here since, and did not come from there."""
        with contextlib.closing(connect(self.folder / DATABASE)) as base:
            sql = f"SELECT rowid, {', '.join(COMMAND)} FROM command WHERE rowid > ? ORDER BY rowid"
            queued = base.execute(sql, (self._carried,)).fetchall()
        remote_names = self._remote.names() if queued else set()
        for rowid, *values in queued:
            command = dict(zip(COMMAND, values, strict=True))
            self._names.add(command["id"])
            if command["id"] not in remote_names and not refusal(self.folder, command["id"]):
                try:
                    self._remote.send(command | {"payload": json.loads(command["payload"])})
                except BadCommand:  # of a later version of rlgpt: nobody there can decide it
                    pass
                except (NotAllowed, TakesNothing) as error:  # who may only look, or now can, goes on looking
                    _refuse(self.folder, command["id"], str(error))
            self._carried = rowid

    def _show(self, worker: RemoteWorker | None) -> None:
        if worker is None:
            self._release()
            return
        if worker.owner != self._shown:
            self._release()
            if self._placing is not None:
                self._placing.tell(worker.owner)
            else:
                self._lease = Lease.acquire(self.folder, holder=worker.owner)
            self._shown = worker.owner
        if worker.heartbeat:
            progress.show(self.folder, worker.heartbeat)

    def _release(self) -> None:
        if self._lease is not None:
            self._lease.release()
        if self._placing is not None and self._shown is not None:
            self._placing.tell()
        self._lease = self._shown = None

    def close(self) -> None:
        self._release()
        self._local.close()


def refusal(folder: Path, command: str) -> str:
    """Why a command that was sent here never went there, "" where it did or still may."""
    return _refusals(folder).get(command, "")


def _refuse(folder: Path, command: str, why: str) -> None:
    atomic.write_bytes(folder / REFUSED, json.dumps(_refusals(folder) | {command: why}).encode())


def _refusals(folder: Path) -> dict[str, str]:
    try:
        return dict(json.loads((folder / REFUSED).read_bytes()))
    except (OSError, ValueError, TypeError):
        return {}


def settle(folder: Path) -> None:
    """From now on the folder is a session of its own: its worker is here, or nowhere."""
    (folder / MARK).unlink(missing_ok=True)


def settle_if_left(folder: Path) -> None:
    """Settle a mirror whose worker elsewhere is gone. A folder that another process has, or that is placed on a
    cluster, is left as it is: its mark says where its worker is."""
    if not (folder / MARK).exists():
        return
    with contextlib.suppress(LeaseTaken), Lease.acquire(folder):
        if not placed_on(folder):
            settle(folder)

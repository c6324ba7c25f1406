"""Keeps a shared store up to a session whose worker is here: claims it, pushes what is new, brings operators' commands.

`python -P -m rlgpt.store.shared.keeper FOLDER ADDRESS [INCARNATION]`, started by the supervisor beside the worker. It
says `ready` and the incarnation on its standard output; its standard input ends when the worker has. The worker never
waits for it: while the store is away the session goes on, and what was not pushed is pushed later.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from rlgpt.store import atomic, catalog, progress
from rlgpt.store.address import CLAIM, behind
from rlgpt.store.errors import Away, BadCommand, LeaseTaken, StoreError
from rlgpt.store.folder import SessionFolder
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.history import History, fold_all
from rlgpt.store.inbox import whoami
from rlgpt.store.lease import owner
from rlgpt.store.limits import OFFLINE, limits
from rlgpt.store.peers import Fenced, RemoteWorker, bring, sync
from rlgpt.store.reader import Reader
from rlgpt.store.shared.connection import Connection, connect, place_of
from rlgpt.store.shared.peer import SharedPeer

ROUND = 0.25
"""Seconds between two looks at the session and at the commands for it."""
PUBLISH_EVERY = 1.0
"""Seconds between two signs of life."""
ROLLOUTS = 30.0
"""Seconds between two rollout checkpoints that are pushed."""
LAST_TRY = 10.0
"""Seconds that the last push may take where the store is away."""
REFUSED, FENCED = 4, 5
"""Exit codes: somebody else has the session; it was taken over."""


class Keeper:
    def __init__(self, folder: Path, address: str, incarnation: int, ended: threading.Event) -> None:
        self._folder, self._address, self._ended = SessionFolder(folder), address, ended
        self._incarnation = incarnation
        self._source = FolderPeer(folder, rollouts_every=ROLLOUTS)
        self._history = History()
        self._offline = 60.0 * float(limits(folder).get("offline", OFFLINE))
        """Seconds without the store after which the session pauses."""
        self._reached = time.monotonic()
        self._published_at = 0.0
        self._paused = False
        self._reported_ready = bool(incarnation)

    def keep(self) -> None:
        """Until the worker has ended. Raises Fenced, LeaseTaken, StoreError."""
        wait = ROUND
        while True:
            try:
                with contextlib.closing(connect(self._address)) as base, self._not_silent(base):
                    peer = SharedPeer(base, self._address, self._folder.id)
                    self._take(peer)
                    wait = ROUND
                    self._follow(peer)
                    return
            except Away as error:
                self._away(error)
            except LeaseTaken:  # by our own lost connection, until the server notices
                if not self._incarnation:
                    raise
                self._pause_if_late()
            if self._ended.is_set() and time.monotonic() - self._reached > LAST_TRY:
                print(behind(self._folder.id), file=sys.stderr)
                return
            if self._ended.wait(wait):
                time.sleep(ROUND)
            wait = min(2 * wait, 5.0)

    @contextlib.contextmanager
    def _not_silent(self, base: Connection) -> Iterator[None]:
        """Cut a connection that is open and does not answer (a frozen server, a proxy that lost its own): nothing else
        ends the wait for it, and it is a store that is away."""
        done, began = threading.Event(), time.monotonic()
        line = socket.socket(fileno=os.dup(base.fileno()))

        def watch() -> None:
            while not done.wait(ROUND):
                patience = 2 * LAST_TRY if self._ended.is_set() else self._offline / 2
                if time.monotonic() - max(self._reached, began) > patience:
                    with contextlib.suppress(OSError):
                        line.shutdown(socket.SHUT_RDWR)
                    return

        threading.Thread(target=watch, name="silence", daemon=True).start()
        try:
            yield
        finally:
            done.set()
            line.close()

    def _take(self, peer: SharedPeer) -> None:
        if self._incarnation:
            peer.reclaim(self._incarnation)
        else:
            peer.claim()
            if peer.head().seq > self._source.head().seq:  # somebody else went on with it: so do we
                sync(peer, self._source)
            sync(self._source, peer)
        self._mark(peer.incarnation)
        self._ready()

    def _away(self, error: Away) -> None:
        """The first time it matters whether somebody else may have the session by now."""
        if not self._reported_ready and (self._folder.path / CLAIM).exists():
            raise StoreError(
                f"{error}; only the store knows whether somebody else has session {self._folder.id}: try again later, "
                "or unset RLGPT_STORE to go on alone"
            ) from error
        self._ready()
        self._pause_if_late()

    def _pause_if_late(self) -> None:
        if time.monotonic() - self._reached > self._offline and not self._paused and not self._ended.is_set():
            self._paused = True
            command = {"id": uuid.uuid4().hex, "author": f"keeper ({whoami()})", "kind": "pause", "payload": {}}
            self._source.send(command | {"revision": None})

    def _follow(self, peer: SharedPeer) -> None:
        """Push and carry, until the worker has ended."""
        names, seq, seen = peer.names(), peer.head().seq, -1
        carried: set[int] = set()
        while True:
            over = self._ended.is_set()
            if over:
                self._source = FolderPeer(self._folder.path)  # nothing is held back any more
            changed = self._source.changed()
            if changed != seen or over:
                seq = bring(self._source, peer, seq, names).seq
                seen = changed
            for command in peer.inbox(carried):
                with contextlib.suppress(BadCommand):  # of a later rlgpt
                    self._source.send(command)
                carried.add(command["n"])
            self._reached, self._paused = time.monotonic(), False
            if over or self._reached - self._published_at >= PUBLISH_EVERY:
                self._publish(peer, over)
            if over:
                peer.release()
                return
            self._ended.wait(ROUND)

    def _publish(self, peer: SharedPeer, over: bool) -> None:
        self._published_at = time.monotonic()
        with Reader(self._folder) as reader:
            fold_all(reader.folded_since(self._history.seq, None), self._history)
        summary = catalog.summarised(self._folder.id, self._history)
        lock = owner(self._folder.path)
        worker = RemoteWorker(lock, progress.read(self._folder.path)) if lock and not over else None
        peer.tell(worker, dataclasses.replace(summary, tags=catalog.tags(self._folder)))
        self._mark(peer.incarnation)

    def _mark(self, incarnation: int) -> None:
        self._incarnation = incarnation
        words = {"of": place_of(self._address), "incarnation": incarnation, "reached": time.time()}
        with contextlib.suppress(OSError):
            atomic.write_bytes(self._folder.path / CLAIM, json.dumps(words).encode())

    def _ready(self) -> None:
        if not self._reported_ready:
            print(f"ready {self._incarnation}", flush=True)
            self._reported_ready = True


def main(folder: Path, address: str, incarnation: int) -> int:
    os.umask(0o077)
    ended = threading.Event()

    def watch() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=watch, name="stdin", daemon=True).start()
    try:
        Keeper(folder, address, incarnation, ended).keep()
    except Fenced as error:
        print(error, file=sys.stderr)
        return FENCED
    except StoreError as error:
        print(error, file=sys.stderr)
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0))

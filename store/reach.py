"""Sessions of a team's store as if they were here: one list of both, and a mirror as long as one is looked at."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from rlgpt.store import catalog
from rlgpt.store.address import has_store, is_shared, named, source_of
from rlgpt.store.catalog import Summary
from rlgpt.store.errors import Ambiguous, Away, LeaseTaken, NoSession, StoreError
from rlgpt.store.folder import SessionFolder, root
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.lease import Lease
from rlgpt.store.mirror import EVERY, Mirror, settle
from rlgpt.store.peers import sync
from rlgpt.store.placing import placed_on
from rlgpt.store.reader import Reader
from rlgpt.store.stores import Store, open_store

LOCK = "mirror.lock"
"""Held by the one process that keeps the mirror up: several consoles may look at it."""
AGAIN = 2.0
"""Seconds before a store that is away is asked again."""
ENDED_WELL = ("succeeded", "finished")
"""A session that ended so does not go on any more."""


@contextlib.contextmanager
def reached(session: str) -> Iterator[SessionFolder]:
    """The session: its folder here, or, where it is run elsewhere, a mirror that is kept up until the block ends.
    Raises NoSession, StoreError."""
    remote = _elsewhere(session)
    if remote is None:
        yield catalog.find(session)
        return
    address, ident = remote
    follower = _Follower(address, ident)
    follower.begin()
    try:
        yield follower.folder
    finally:
        follower.end()


def fetched(session: str) -> tuple[SessionFolder, bool]:
    """The session brought up to what the team's store has, to go on with it here, and whether a worker elsewhere has
    it: if none does, it is no mirror any more. Raises NoSession, StoreError."""
    copy_elsewhere = _elsewhere(session)
    if copy_elsewhere is None:
        return catalog.find(session), False
    address, ident = copy_elsewhere
    folder = SessionFolder(root() / ident)
    with contextlib.closing(open_store(address)) as store:
        remote = store.remote(ident)
        alive = remote.worker() is not None
        sync(remote, FolderPeer(folder.path))
    if not alive:
        settle(folder.path)
    return folder, alive


def _elsewhere(session: str) -> tuple[str, str] | None:
    """(store, id) of a session that is not here, or here as a mirror."""
    try:
        folder = catalog.find(session)
    except Ambiguous:  # though one of them alone may be in the store: it is not meant any more than the others here
        raise
    except NoSession:
        if not is_shared(address := named()):
            raise
        with contextlib.closing(open_store(address)) as store:
            names = store.sessions()
        return address, catalog.chosen(session, list(names), lambda: names, f" here or in {store.place}")
    if not source_of(folder.path) or placed_on(folder.path) or not is_shared(address := named()):
        return None
    return address, folder.id


class _Follower(threading.Thread):
    def __init__(self, address: str, ident: str) -> None:
        super().__init__(name=f"mirror of {ident}", daemon=True)
        self.folder = SessionFolder(root() / ident)
        self._address = address
        self._ending = threading.Event()
        self._begun = threading.Event()
        self._first: Exception | None = None

    def begin(self) -> None:
        """The mirror is up to date when this returns."""
        self.start()
        self._begun.wait()
        if self._first is not None:
            raise self._first

    def end(self) -> None:
        self._ending.set()
        self.join(timeout=10)

    def run(self) -> None:
        while not self._ending.is_set():
            try:
                self._follow()
            except LeaseTaken:  # another console keeps it up
                pass
            except StoreError as error:
                if not self._begun.is_set():
                    self._first = error
            except Exception as error:  # or who waits for the first look would wait for ever
                if self._begun.is_set():
                    raise
                self._first = error
                return
            finally:
                self._begun.set()
            self._ending.wait(AGAIN)

    def _follow(self) -> None:
        with contextlib.ExitStack() as undo:
            store = undo.enter_context(contextlib.closing(open_store(self._address)))
            remote = store.remote(self.folder.id)
            if not self.folder.path.exists():
                sync(remote, FolderPeer(self.folder.path))
            undo.enter_context(Lease.acquire(self.folder.path, LOCK))
            mirror = undo.enter_context(contextlib.closing(Mirror(remote, self.folder.path)))
            alive = mirror.step()
            self._begun.set()
            while not self._ending.wait(EVERY):
                try:
                    alive = mirror.step()
                except Away:
                    self._ending.wait(AGAIN)
                    with contextlib.suppress(Away):
                        mirror.go_on(store.remote(self.folder.id))
            if not alive and self._is_over():
                settle(self.folder.path)

    def _is_over(self) -> bool:
        """Whether nobody goes on with it any more. Else its store is asked at the next look too: a worker elsewhere may
        have it by then, and a copy that was taken for a session of this machine would call it dead."""
        with Reader(self.folder) as reader:
            history = reader.history_at()
        return history.status == "ended" and history.result in ENDED_WELL


class Listing:
    """All sessions, here and in the team's store, for who looks again and again. `patience`: seconds to wait for that
    store; what it answers later is in the next list."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._asking: threading.Thread | None = None
        self._store: Store | None = None
        self._there: list[Summary] = []
        self.fault = ""
        """Why those of the store are not among them now."""

    def summaries(self) -> list[Summary]:
        """Newest first. Raises BadPlace."""
        if has_store() and not self.asking:
            self._asking = threading.Thread(target=self._ask, name="team's store", daemon=True)
            self._asking.start()
        here = catalog.summaries()
        if self._asking is not None:
            self._asking.join(self._patience)
        local_ids = {summary.id for summary in here if not source_of(root() / summary.id)}
        elsewhere = [summary for summary in self._there if summary.id not in local_ids]
        mirrored = {summary.id for summary in elsewhere}
        every = [*(summary for summary in here if summary.id not in mirrored), *elsewhere]
        return sorted(every, key=lambda summary: summary.id, reverse=True)

    @property
    def asking(self) -> bool:
        """Whether the team's store has not answered yet."""
        return self._asking is not None and self._asking.is_alive()

    @property
    def why_missing(self) -> str:
        """Why those of the store are not in the last list; "" where they are."""
        if self.asking:
            return f"the store {named().partition('?')[0]} did not answer within {self._patience:g} s"
        return self.fault

    def _ask(self) -> None:
        try:
            if self._store is None:
                self._store = open_store(named())
            self._there, self.fault = self._store.summaries(), ""
        except StoreError as error:
            self._there, self.fault = [], str(error)
            self.close()

    def close(self) -> None:
        if self._store is not None:
            with contextlib.suppress(StoreError):
                self._store.close()
        self._store = None


def everywhere(patience: float) -> tuple[list[Summary], str]:
    """All sessions now, newest first, and why those of the team's store are not among them. Raises BadPlace."""
    listing = Listing(patience)
    summaries, why = listing.summaries(), listing.why_missing
    listing.close()
    return summaries, why

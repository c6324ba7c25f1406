"""Other places that hold sessions: the home folder of another rlgpt, and the store that a team shares."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from rlgpt.store import catalog
from rlgpt.store.address import checked, is_shared
from rlgpt.store.catalog import Summary
from rlgpt.store.errors import BadPlace, StoreError
from rlgpt.store.folder import SessionFolder, require_outside, sessions_in
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.home import home, named_path
from rlgpt.store.lease import Lease
from rlgpt.store.peers import Peer, Remote


class Store(Protocol):
    @property
    def place(self) -> str: ...

    def sessions(self) -> Mapping[str, str]:
        """Name by id, oldest first."""

    def remote(self, session_id: str) -> Remote:
        """The session there, whether it is there yet or not."""

    def target(self, session_id: str) -> AbstractContextManager[Peer]:
        """The same, to be written. Raises LeaseTaken while a worker has it there."""

    def summaries(self) -> list[Summary]:
        """Newest first; `alive` is told by the worker's lock there."""

    def tags(self, session_id: str) -> tuple[str, ...]: ...

    def describe(self, session: SessionFolder) -> None:
        """What is told of a session that was copied there, besides its rows: tags, and its line in the list."""

    def close(self) -> None: ...


class FolderStore:
    """What `RLGPT_HOME` names elsewhere: another disk, another user's, a mounted one."""

    def __init__(self, path: Path) -> None:
        self._root = path / "sessions"

    @property
    def place(self) -> str:
        return str(self._root.parent)

    def sessions(self) -> dict[str, str]:
        try:
            folders = sessions_in(self._root)
        except OSError as error:
            raise BadPlace(f"there are no sessions in {self._root}: {error.strerror or error}") from error
        return {folder.id: folder.name for folder in folders}

    def remote(self, session_id: str) -> FolderPeer:
        return FolderPeer(self._root / session_id)

    @contextlib.contextmanager
    def target(self, session_id: str) -> Iterator[FolderPeer]:
        yield self.remote(session_id)

    def tags(self, session_id: str) -> tuple[str, ...]:
        return catalog.tags(SessionFolder(self._root / session_id))

    def summaries(self) -> list[Summary]:
        folders = [SessionFolder(self._root / name) for name in reversed(self.sessions())]
        return [
            dataclasses.replace(catalog.summary(session), alive=Lease.held(session.path), store=self.place)
            for session in folders
        ]

    def describe(self, session: SessionFolder) -> None:
        tags, copy = catalog.tags(session), SessionFolder(self._root / session.id)
        if tags != catalog.tags(copy):  # also where the last one was taken away
            catalog.set_tags(copy, tags)

    def close(self) -> None:
        pass


def open_store(where: str) -> Store:
    """Raises StoreError, MissingExtra."""
    if is_shared(checked(where)):
        from rlgpt.store.shared.store import SharedStore  # late: an extra

        return SharedStore(where)
    path = named_path(where).absolute()
    if os.path.realpath(path) == os.path.realpath(home()):
        raise StoreError(f"{path} is this store itself")
    require_outside(path)
    return FolderStore(path)

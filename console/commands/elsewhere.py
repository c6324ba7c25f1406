"""Sessions in other stores: `store push|pull|move`. A copy is a prefix of the session and can be brought up to it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import typer

from rlgpt.console.commands import output
from rlgpt.console.commands.failure import Exit, Failure, code_of
from rlgpt.console.commands.words import Json, Some
from rlgpt.console.view.numbers import many
from rlgpt.store import address, catalog, foreign, stores, upkeep
from rlgpt.store.address import source_of
from rlgpt.store.errors import Away, StoreError
from rlgpt.store.folder import SessionFolder, root, sessions
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.mirror import EVERY, Mirror, settle_if_left
from rlgpt.store.peers import digest, sync
from rlgpt.store.placing import placed_on
from rlgpt.store.stores import Store

HELP = "The home folder of another rlgpt, or postgresql://HOST/DATABASE; RLGPT_STORE if left out."
To = Annotated[str, typer.Option("--to", metavar="STORE", help=HELP)]
From = Annotated[str, typer.Option("--from", metavar="STORE", help=HELP)]
Work = Callable[[SessionFolder], int]
"""Copies a session; how many rows were new."""
TRIES, AGAIN = 6, 2.0
"""How often a store that is away is asked, and the seconds in between."""
LASTED = 30.0
"""Seconds after which a copy had begun well: its loss is another one."""


def push(session: Some = None, to: To = "", json: Json = False) -> None:
    """Copy sessions to another store, or bring the copies there up to date; safe while they run."""
    with _opened(to) as store:
        _each(_chosen(session), lambda folder: _push(store, folder), "copied", store, json)


def move(
    session: Some = None,
    to: To = "",
    keep: Annotated[bool, typer.Option("--keep", help="Compare, but delete nothing here.")] = False,
    json: Json = False,
) -> None:
    """Copy sessions to another store and, when both sides are equal to the last byte, delete them here."""

    def moved(folder: SessionFolder) -> int:
        with upkeep.at_rest(folder):
            copied = _push(store, folder)
            remote = store.remote(folder.id)
            if digest(FolderPeer(folder.path)) != digest(remote):
                raise StoreError(f"session {folder.id} is kept here: its copy at {remote.place} differs")
            if not keep:
                upkeep.remove(folder)
        return copied

    with _opened(to) as store:
        _each(_chosen(session), moved, "compared" if keep else "moved", store, json)


def pull(
    session: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Id or a prefix of it, or name, in that store; all if left out."),
    ] = None,
    where: From = "",
    follow: Annotated[bool, typer.Option("--follow", help="Until its worker there has ended: a mirror.")] = False,
    json: Json = False,
) -> None:
    """Copy sessions from another store to this one, or bring the copies here up to date."""
    with _opened(where) as store:
        names = store.sessions()
        said = [catalog.chosen(one, list(names), lambda: names, f" in {store.place}") for one in session or ()]
        chosen = said if session else list(names)
        if follow and len(chosen) != 1:
            raise Failure("one session can be followed at a time.", Exit.USAGE)
        folders = [SessionFolder(root() / ident) for ident in chosen]
        _each(folders, lambda folder: _bring(store, folder, follow), "copied", store, json)


def _push(store: Store, folder: SessionFolder) -> int:
    if (source := source_of(folder.path)) and not placed_on(folder.path):
        raise StoreError(f"session {folder.id} is a mirror of {source}: copy it from there")
    with store.target(folder.id) as target:
        copied = sync(FolderPeer(folder.path), target)
        store.describe(folder)
    return copied


def _bring(store: Store, folder: SessionFolder, follow: bool) -> int:
    """A session that comes for the first time is somebody else's until its settings are trusted here."""
    is_new = not folder.database.exists()
    try:
        return (_follow if follow else _pull)(store, folder)
    finally:
        if is_new and folder.database.exists():
            foreign.mark(folder.path)


def _pull(store: Store, folder: SessionFolder) -> int:
    _refuse_placed(folder)
    remote = store.remote(folder.id)
    alive = remote.worker() is not None
    copied = sync(remote, FolderPeer(folder.path))
    if not alive:
        settle_if_left(folder.path)
    tags = store.tags(folder.id)
    if tags != catalog.tags(folder):  # also where the last one was taken away
        catalog.set_tags(folder, tags)
    return copied


def _follow(store: Store, folder: SessionFolder) -> int:
    """Until the worker there is gone, or Ctrl-C."""
    _refuse_placed(folder)
    with contextlib.closing(Mirror(store.remote(folder.id), folder.path)) as mirror:
        while mirror.step():
            time.sleep(EVERY)
    return _pull(store, folder)


def _refuse_placed(folder: SessionFolder) -> None:
    """Raises StoreError for a session that a cluster runs: its rows come from there, and nobody else may write here."""
    if cluster := placed_on(folder.path):
        raise StoreError(f"session {folder.id} is placed on the Ray cluster {cluster}: its rows come from there")


def _each(folders: Sequence[SessionFolder], work: Work, done: str, store: Store, json: bool) -> None:
    """One session after the other: what refuses one does not keep the others from being copied, but a store that stays
    away does."""
    results: list[dict[str, Any]] = []
    refused: list[StoreError] = []
    for number, folder in enumerate(folders):
        try:
            rows = _patiently(work, folder)
        except Away as error:
            left = folders[number:]
            results += [{"id": one.id, "rows": 0, "error": str(error)} for one in left]
            left_over = f"{len(left)} of {many(len(folders), 'session')} left: the same command goes on"
            refused.append(Away(f"{error}; {left_over}"))
            break
        except StoreError as error:
            results.append({"id": folder.id, "rows": 0, "error": str(error)})
            refused.append(error)
        else:
            results.append({"id": folder.id, "rows": rows, "error": None})
            if not json:
                output.say(f"{folder.id}: {done}, {many(rows, 'new row')}")
    if json:
        output.document({"store": store.place, "sessions": results})
    end_with(refused, json or len(folders) > 1)


def end_with(refused: Sequence[StoreError], listed: bool) -> None:
    """The end of a command about several sessions, some of which refused. `listed`: each in a line of its own."""
    if refused and not listed:
        raise refused[0]
    for error in refused:
        output.note(f"rlgpt: {error}")
    if refused:
        raise typer.Exit(code_of(refused[0]))


def _patiently(work: Work, folder: SessionFolder) -> int:
    """Try again when the network drops for a moment; what was copied stays. Raises Away after TRIES in a row."""
    tries = 0
    while True:
        began = time.monotonic()
        try:
            return work(folder)
        except Away:
            tries = 1 if time.monotonic() - began > LASTED else tries + 1
            if tries >= TRIES:
                raise
            time.sleep(AGAIN)


@contextlib.contextmanager
def _opened(where: str) -> Iterator[Store]:
    place = where or address.named()
    if not place:
        raise Failure(f"say which store: its home folder or address, or set {address.VARIABLE}.", Exit.USAGE)
    with contextlib.closing(stores.open_store(place)) as store:
        yield store


def _chosen(names: Sequence[str] | None) -> list[SessionFolder]:
    return [catalog.find(one) for one in names] if names else sessions()

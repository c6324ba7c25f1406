"""`rlgpt resume`: a paused session goes on, a dead one gets a worker again."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from rlgpt.console.commands import children, operate, output
from rlgpt.console.commands.elsewhere import end_with
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.follow import is_cut_off
from rlgpt.console.commands.words import GamesOn, Json, On, complete_session
from rlgpt.store import foreign
from rlgpt.store.address import has_store, reached_at, source_of
from rlgpt.store.errors import StoreError
from rlgpt.store.folder import SessionFolder, sessions
from rlgpt.store.lease import Lease
from rlgpt.store.placing import place, placed_on
from rlgpt.store.reach import ENDED_WELL, fetched
from rlgpt.store.reader import Reader


def register(app: typer.Typer) -> None:
    app.command()(resume)


def resume(
    session: Annotated[str, typer.Argument(metavar="[ID]", autocompletion=complete_session)] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Every session whose worker died, or was ended by a signal.")
    ] = False,
    trust_settings: Annotated[
        bool, typer.Option("--trust-settings", help="Let a session from elsewhere use the key or world that it names.")
    ] = False,
    games_on: GamesOn = "",
    on: On = "",
    json: Json = False,
) -> None:
    """Go on with a paused session, or start the worker of a dead one again."""
    if bool(session) == everything:
        raise Failure("say which session to resume, or --all for every one that died.", Exit.USAGE)
    if everything and trust_settings:
        raise Failure("--all trusts no settings: name the session that --trust-settings is for.", Exit.USAGE)
    if everything and on:
        raise Failure("--all starts each session where it was: name the one that is to move with --on.", Exit.USAGE)
    children.play_games_on(games_on, on)
    refused: list[StoreError] = []
    if not everything:
        folder, elsewhere = fetched(session)
        if trust_settings:
            foreign.trust(folder.path)
        if elsewhere or (Lease.held(folder.path) and not _starts(folder)):
            operate.send_command(session, "resume", {}, json)
            return
        _await_choice(folder)
        if not Lease.held(folder.path):
            children.need_trust(folder.path)
            _need_cluster(on or placed_on(folder.path))
            if on:
                place(folder.path, on)
            _restart(folder)
        resumed = [folder]
    else:
        resumed = []
        for folder in sessions():
            try:
                is_mirror = source_of(folder.path) and not placed_on(folder.path)  # its own store resumes it
                if is_cut_off(folder) and not is_mirror:
                    children.need_trust(folder.path)
                    _need_cluster(placed_on(folder.path))
                    _need_world(folder)
                    children.start_worker(folder.path)
                    resumed.append(folder)
            except StoreError as error:  # one that is damaged keeps no other from going on
                refused.append(error)
            except Failure as error:  # nor does one whose cluster or world is gone
                refused.append(StoreError(f"session {folder.id}: {error}"))
    if json:
        output.document({"resumed": [folder.id for folder in resumed]})
    else:
        output.say("resumed " + (", ".join(folder.id for folder in resumed) or "nothing: no session is dead"))
    end_with(refused, True)


def _starts(folder: SessionFolder) -> bool:
    """Whether the worker that has the session was started to resume it, and has not said so yet."""
    with Reader(folder) as reader:
        return reader.history_at().status == "ended"


def _await_choice(folder: SessionFolder) -> None:
    """A worker that has an ended session has been started to resume it, or is leaving: it says so, or is gone soon."""
    until = time.monotonic() + operate.PATIENCE
    while Lease.held(folder.path) and _starts(folder) and time.monotonic() < until:
        time.sleep(0.05)


def _need_cluster(address: str) -> None:
    """Raises Failure where a session's cluster does not answer: who follows it there could say so in its log only."""
    if address:
        children.ask("cluster_reached", {"on": address, "settings": {}})


def _need_world(folder: SessionFolder) -> None:
    """Raises Failure where this shell does not find a session's world or its task (a path, a variable that is not set):
    its worker would end the session as failed, which `--all` then leaves alone. On a cluster the nodes have them."""
    if not placed_on(folder.path):
        with Reader(folder) as reader:
            settings = reader.history_at().session["settings"]
        children.ask("task", {"world": settings["world"], "task": settings["task"]})


def _restart(folder: SessionFolder) -> None:
    if (source := source_of(folder.path)) and not placed_on(folder.path):
        raise Failure(f"session {folder.id} is a mirror of {source}: resume it there.", Exit.REFUSED)
    with Reader(folder) as reader:
        history = reader.history_at()
    final = history.status == "ended" and history.result in ENDED_WELL
    if final and not placed_on(folder.path):  # else its seat may still be there
        raise Failure(f"session {folder.id} has ended ({history.result}): {history.reason}")
    _need_world(folder)
    began = time.time()
    children.start_worker(folder.path)
    until = time.monotonic() + operate.PATIENCE
    while not Lease.held(folder.path) and time.monotonic() < until:
        time.sleep(0.02)
    if not has_store():
        return
    while reached_at(folder.path) < began and time.monotonic() < until:  # or it may not begin, or the store is away
        if not Lease.held(folder.path):
            words = folder.log.read_text(errors="replace").strip().splitlines()
            raise Failure(words[-1] if words else f"session {folder.id} did not begin.", Exit.REFUSED)
        time.sleep(0.05)

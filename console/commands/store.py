"""What is kept: `store size|check|repair|prune|backup|delete` and `tag`. What `store` does with stores elsewhere is in
`elsewhere.py` and `shared.py`."""

from __future__ import annotations

import dataclasses
import sqlite3
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from rlgpt.console.commands import elsewhere, output, shared
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.words import Json, Session, Some, path_from
from rlgpt.console.view.numbers import count, many
from rlgpt.console.view.numbers import size as octets
from rlgpt.store import catalog, upkeep
from rlgpt.store.catalog import find
from rlgpt.store.errors import BadValue, Damaged, LeaseTaken, StoreError
from rlgpt.store.folder import SessionFolder, sessions
from rlgpt.store.soundness import explained

Done = TypeVar("Done")
In = Annotated[str, typer.Option("--in", metavar="STORE", help="In the shared store at postgresql://HOST/DATABASE.")]


def register(app: typer.Typer) -> None:
    family = typer.Typer(help="Size, soundness and copies of the stored sessions.")
    for command in (size, check, repair, prune, backup, delete, elsewhere.push, elsewhere.pull, elsewhere.move):
        family.command()(command)
    family.command()(shared.init)
    family.command()(shared.upgrade)
    app.add_typer(family, name="store")
    app.command()(tag)


def size(session: Some = None, where: In = "", json: Json = False) -> None:
    """What each session takes on the disk, and what the storage law allows it."""
    if where:
        shared.size(where, json)
        return
    chosen = _chosen(session)
    sizes, refused = _each(chosen, upkeep.size)
    if json:
        _tell([dataclasses.asdict(s) | {"allowed": s.allowed} for s in sizes], "sessions", refused)
        return
    titles = ("id", "total", "allowed", "database", "artifacts", "logs", "env steps", "largest table")
    rows = []
    for s in sizes:
        largest = max(s.tables, key=lambda name: s.tables[name])
        parts = (octets(s.total), octets(s.allowed), octets(s.database), octets(s.artifacts), octets(s.logs))
        rows.append((s.id, *parts, count(s.env_steps), f"{largest} {octets(s.tables[largest])}"))
    output.table(titles, rows)
    output.say(f"{many(len(sizes), 'session')}, {octets(sum(s.total for s in sizes))}")
    elsewhere.end_with(refused, len(chosen) > 1)


def check(session: Some = None, where: In = "", json: Json = False) -> None:
    """Check databases, files and hashes; safe while sessions run."""
    if where:
        checked, problems = shared.check(where, session)
    else:
        chosen = _chosen(session)
        checked, problems = [folder.id for folder in chosen], [p for folder in chosen for p in upkeep.check(folder)]
    if json:
        output.document({"checked": checked, "problems": problems})
    else:
        for problem in problems:
            output.say(problem)
        counted = many(len(problems), "problem") if problems else "no problems"
        output.say(f"{many(len(checked), 'session')} checked, {counted}")
    if problems:
        raise typer.Exit(Exit.DIFFERENT)


def repair(session: Session, json: Json = False) -> None:
    """Save what is sound of a damaged session as a new one; the damaged one stays as it is."""
    from rlgpt.store.repair import repair as save  # late: it needs the whole schema

    folder = find(session)
    if not upkeep.check(folder):
        raise Failure(f"session {folder.id} is sound: there is nothing to repair.", Exit.REFUSED)
    saved = save(folder)
    if json:
        output.document(saved._asdict() | {"parent": folder.id})
        return
    output.say(f"{saved.id} holds the {count(saved.rows)} sound rows of {folder.id}, up to row {saved.seq}")
    if saved.reason:
        output.say(f"there it ends: {saved.reason}; {count(saved.lost)} rows behind it are not in it")


def prune(
    session: Some = None,
    frames: Annotated[bool, typer.Option("--frames", help="Frames too: replay loses its world pane.")] = False,
    json: Json = False,
) -> None:
    """Free what no resume and no fork needs. Of all sessions those that run are left as they are."""
    chosen = _chosen(session)
    done, refused = _each(chosen, lambda folder: upkeep.prune(folder, frames=frames))
    running = [] if session else [error for error in refused if isinstance(error, LeaseTaken)]
    refused = [error for error in refused if error not in running]
    left = [str(error) for error in running]
    if json:
        _tell([dataclasses.asdict(pruned) for pruned in done], "sessions", refused, running=left)
        return
    for pruned in done:
        what = f"{octets(pruned.freed)} freed, {many(pruned.checkpoints, 'file')}, {many(pruned.films, 'film')}"
        output.say(f"{pruned.id}: {what}")
    for sentence in left:
        output.say(sentence)
    output.say(f"{many(len(done), 'session')}, {octets(sum(pruned.freed for pruned in done))} freed")
    elsewhere.end_with(refused, len(chosen) > 1)


def backup(
    target: Annotated[Path, typer.Argument(help="A folder, on another disk.", parser=path_from)],
    session: Some = None,
    json: Json = False,
) -> None:
    """Copy sessions, running or not, to a folder."""
    chosen = _chosen(session)
    copies, refused = _each(chosen, lambda folder: upkeep.backup(folder, target))
    if json:
        _tell([str(copy) for copy in copies], "copies", refused)
        return
    for copy in copies:
        output.say(str(copy))
    output.say(f"{many(len(copies), 'session')} copied")
    elsewhere.end_with(refused, len(chosen) > 1)


def delete(
    session: Session,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    where: In = "",
    json: Json = False,
) -> None:
    """Remove a session for good."""
    folder = None if where else find(session)
    ident = folder.id if folder else shared.chosen(where, session)
    if not yes and (json or not sys.stdin.isatty()):
        raise Failure(f"deleting {ident} cannot be undone: say --yes.", Exit.USAGE)
    if not yes and not typer.confirm(f"Delete session {ident} for good?", err=True):
        raise Failure(f"session {ident} is kept.", Exit.REFUSED)
    if folder:
        upkeep.delete(folder)  # what was asked about: `last` may mean another one by now
    else:
        shared.delete(where, ident)
    if json:
        output.document({"deleted": ident})
    else:
        output.say(f"session {ident} is deleted")


def tag(
    session: Session,
    tags: Annotated[list[str] | None, typer.Argument(help="The new tags; none removes all.")] = None,
    json: Json = False,
) -> None:
    """Set the tags of a session, which the list of sessions can be filtered by."""
    folder = find(session)
    if tags and not all(map(str.strip, tags)):
        raise BadValue("a tag is empty; to remove all tags, name none")
    stored = catalog.set_tags(folder, tags or [])
    if json:
        output.document({"id": folder.id, "tags": stored})
    else:
        output.say(f"{folder.id}: " + (", ".join(stored) or "no tags"))


def _each(
    folders: Sequence[SessionFolder], work: Callable[[SessionFolder], Done]
) -> tuple[list[Done], list[StoreError]]:
    """What came of each session, and what refused: one that is damaged keeps no other from its turn."""
    done: list[Done] = []
    refused: list[StoreError] = []
    for folder in folders:
        try:
            done.append(work(folder))
        except StoreError as error:
            refused.append(error)
        except sqlite3.Error as error:
            refused.append(explained(folder.database) or Damaged(f"session {folder.id} cannot be read: {error}"))
    return done, refused


def _tell(done: list[Any], key: str, refused: list[StoreError], **more: object) -> None:
    """One document, of what was done and what refused; the error's alone where nothing was done."""
    if refused and not done:
        raise refused[0]
    output.document({key: done, **more, "refused": [str(error) for error in refused]})
    elsewhere.end_with(refused, True)


def _chosen(words: Sequence[str] | None) -> list[SessionFolder]:
    return [find(one) for one in words] if words else sessions()

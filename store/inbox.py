"""Sends a command to a session. This is all that a console ever writes."""

from __future__ import annotations

import getpass
import json
import os
import socket
import sqlite3
import time
import uuid

from rlgpt.store.commands import Command, check_revision
from rlgpt.store.database import connect
from rlgpt.store.errors import DiskFull, NoSession, ReadOnly, StoreError, WriteFailed
from rlgpt.store.folder import Place, SessionFolder, path_of
from rlgpt.store.plain import plain, text
from rlgpt.store.revision import REVISION, found
from rlgpt.store.soundness import explained


def send(
    place: Place,
    command: Command,
    revision: int | None = None,
    author: str | None = None,
    name: str | None = None,
    *,
    patience: float = 10.0,
) -> str:
    """Queue a command; returns its id, under which events tell its fate. `revision`: the plan its author saw.
    `name`: an id that it had in another session. `patience`: seconds that another writer may have the database.

    Raises BadCommand where the revision is missing, ReadOnly, BadSchema, DiskFull.
    """
    check_revision(command, revision)
    kind, payload = command.kind, json.dumps(plain(command.payload()))
    folder = SessionFolder(path_of(place))
    if not folder.path.exists():
        raise NoSession(f"session {folder.id} is no longer in this store: it was deleted or moved")
    if not os.access(folder.path, os.W_OK):
        raise ReadOnly(f"session {folder.id} lies on read-only media: it can be looked at, not commanded")
    name = name or uuid.uuid4().hex
    base = connect(folder.database, "rw", patience)
    try:
        if found(base, folder.database) < REVISION:
            raise ReadOnly(f"session {folder.id} has an older schema: resume it first")
        base.execute("PRAGMA wal_autocheckpoint=0")  # the worker is the only checkpointer
        base.execute("PRAGMA synchronous=FULL")
        base.execute("BEGIN IMMEDIATE")
        session = base.execute("SELECT session_id FROM session").fetchone()
        if session is None:
            raise StoreError(f"{folder.database} holds no session")
        base.execute(
            "INSERT INTO command (id, session_id, at, author, kind, payload, revision) VALUES (?,?,?,?,?,?,?)",
            (name, session[0], time.time(), text(author or whoami()), kind, payload, revision),
        )
        base.execute("COMMIT")
    except sqlite3.Error as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            raise DiskFull(f"the disk of {folder.path} is full: the {kind} command was not sent") from error
        if damage := explained(folder.database):
            raise damage from error
        raise WriteFailed(f"the {kind} command could not be sent to session {folder.id}: {error}") from error
    finally:
        base.close()
    return name


def whoami() -> str:
    """user@host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no such user in this container
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"

"""Making a session: its folder, its database with the one row that never changes, and a name that is free."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence

from pydantic import BaseModel

from rlgpt.store import artifacts, schema, tables
from rlgpt.store.catalog import names
from rlgpt.store.errors import BadPlace, DiskFull
from rlgpt.store.folder import ARTIFACTS, DATABASE, SessionFolder, Staging, prepare, root
from rlgpt.store.row_types import JsonObject, TaskInfo
from rlgpt.store.rows import encode
from rlgpt.store.settings import MOST_LETTERS
from rlgpt.store.sqlite_errors import is_full


def create(
    settings: BaseModel,
    *,
    task_info: TaskInfo,
    world_version: str,
    versions: JsonObject,
    name: str | None = None,
    parent: tuple[str, int] | None = None,
    files: Sequence[bytes] = (),
    session_id: str = "",
) -> SessionFolder:
    """A new session, whole on the disk or not there at all. Raises BadPlace; AlreadyThere for a `session_id` in use.

    `settings` needs `task` and `world`; its dump is stored as it is. `parent` is (session id, seq) of a fork, `files`
    are artifacts that it has from the beginning.
    """
    tree = settings.model_dump(mode="json")
    staged = prepare(session_id or None)
    try:
        with making(staged):
            row = tables.Session(
                seq=1,
                session_id=staged.id,
                at=time.time(),
                name=name or tree.get("name") or free_name(f"{tree['task']}-{tree.get('seed', 0)}".replace("_", "-")),
                task=tree["task"],
                world=tree["world"],
                world_version=world_version,
                settings=tree,
                versions=dict(versions),
                task_info=dict(task_info),
                parent_id=parent[0] if parent else None,
                parent_seq=parent[1] if parent else None,
            )
            base = sqlite3.connect(staged.staging / DATABASE)
            with contextlib.closing(base):
                schema.create(base)
                schema.insert(base, encode(row))
                base.commit()
            for body in files:
                artifacts.put(staged.staging / ARTIFACTS, body)
            return staged.publish()
    except (sqlite3.Error, OSError) as error:
        raise BadPlace(f"cannot make a session in {root()}: {error}") from error


@contextlib.contextmanager
def making(staged: Staging) -> Iterator[None]:
    """From the choice of a free name until the session is there with it: who begins at the same moment waits. What was
    filled of a session that fails is removed. Raises DiskFull."""
    descriptor = os.open(root(), os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    except sqlite3.Error as error:
        staged.drop()
        if is_full(error):
            raise DiskFull(f"the disk of {root()} is full: no session was made there ({error})") from error
        raise
    except BaseException:
        staged.drop()
        raise
    finally:
        os.close(descriptor)


def free_name(stem: str) -> str:
    """`make-stone-pickaxe-1` for the first session with that task and seed, then `make-stone-pickaxe-1-2`; within
    `making`. A stem that forks of forks made long is cut."""
    names_in_use = set(names().values())
    tails = itertools.chain([""], (f"-{n}" for n in itertools.count(2)))
    return next(name for tail in tails if (name := stem[: MOST_LETTERS - len(tail)] + tail) not in names_in_use)

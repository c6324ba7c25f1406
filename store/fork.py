"""A new session that starts where an old one was: its rows up to the last complete step before a cursor.

The copy holds the history, the texts, the checkpoints and the skill snapshot, so its worker continues as the
parent's did: left alone it repeats the parent's next iteration exactly. Commands are not copied; send the
fork its own before its worker starts. What the parent did behind its first test episode is never copied:
nothing may be decided by a test.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlgpt.store import artifacts, foreign, query, schema, tables
from rlgpt.store.creation import free_name, making
from rlgpt.store.database import address
from rlgpt.store.errors import BadValue, StoreError
from rlgpt.store.event_payloads import DECISIONS, kind_of, payload_of
from rlgpt.store.events import Forked
from rlgpt.store.folder import DATABASE, Place, SessionFolder, path_of, prepare
from rlgpt.store.reader import Reader
from rlgpt.store.row_types import CheckpointRow, EventRow, JsonObject
from rlgpt.store.rows import encode
from rlgpt.store.settings import Refused, Settings, changed, require_name, stored
from rlgpt.store.skills import export
from rlgpt.store.snapshot import copy_database

KEPT_SETTINGS = ("task", "world", "observation", "seed", "skills")
"""What a fork shares with its parent, or its history would not be its own."""


class BadFork(StoreError):
    """There is nothing to start from, or a change that the copied history contradicts."""


class BadChange(BadFork, BadValue):
    """A name or a setting that no session can have."""


def fork(
    place: Place,
    at_seq: int | None = None,
    *,
    name: str | None = None,
    changes: JsonObject | None = None,
) -> SessionFolder:
    """Fork at the cursor (the end by default); `changes` is a partial tree of settings.

    Raises BadFork, BadPlace.
    """
    try:
        require_name(name or "")
    except Refused as refused:
        raise BadChange(str(refused)) from refused
    parent = SessionFolder(path_of(place))
    with Reader(parent) as reader:
        older = bool(reader.notice)
        cut = boundary(reader, at_seq)
        artifacts_kept = _artifacts(reader, cut)
        history = reader.history_at(cut)
    old = history.session
    skills = old["versions"].get("skills")
    no_skills = export([])
    if skills and skills not in (*artifacts_kept, artifacts.digest(no_skills)):
        raise BadFork(
            f"session {parent.id} lacks the file of its skills, as a bundle of evidence does: "
            "it can be looked at and replayed, not forked"
        )
    ended = (run for run in history.runs.values() if run.state in ("finished", "stopped"))
    policies = [run.checkpoint for run in ended if run.checkpoint]
    lost = [checkpoint for checkpoint in policies if checkpoint.artifact not in artifacts_kept]
    if lost:
        raise BadFork(
            f"session {parent.id} lacks the checkpoint of a policy, as a bundle of evidence does: "
            f"fork it before that was trained (`--at {lost[0].seq}`), or start a new session"
        )
    checked = settings_of(old["settings"], changes or {}).model_dump(mode="json")
    staged = prepare()
    with making(staged):
        row = tables.Session(
            task=old["task"],
            world=old["world"],
            world_version=old["world_version"],
            versions=dict(old["versions"]),
            task_info=dict(old["task_info"]),
            seq=1,
            session_id=staged.id,
            at=time.time(),
            name=name or free_name(f"{old['name']}-fork"),
            settings=checked,
            parent_id=old["session_id"],
            parent_seq=cut,
        )
        with contextlib.closing(sqlite3.connect(staged.staging / DATABASE, uri=True)) as base:
            schema.create(base)
            schema.insert(base, encode(row))
            with _in_this_schema(parent, older) as database:
                _copy_rows(base, database, staged.id, cut)
            mark = Forked(parent.id, cut, sorted(changes or {}))
            schema.insert(base, encode(forked_event(base, staged.id, mark)))
            base.commit()
        needed = {skills, *(checkpoint.artifact for checkpoint in policies)}
        for artifact in artifacts_kept:
            try:
                link_file(parent.artifacts / artifact, staged.staging / "artifacts" / artifact)
            except FileNotFoundError as error:  # most likely a rollout checkpoint, superseded meanwhile
                if artifact in needed:
                    raise BadFork(f"session {parent.id} lost the file {artifact} while it was forked") from error
        if skills and skills not in artifacts_kept:
            artifacts.put(staged.staging / "artifacts", no_skills)
        if foreign.is_foreign(parent.path):
            foreign.mark(staged.staging)
        return staged.publish()


def settings_of(old: JsonObject, changes: JsonObject) -> Settings:
    """The settings of a fork whose parent has the `old` ones. Raises BadFork, BadSchema."""
    settings = stored(old).model_dump(mode="json")
    tree = _merged(settings, changes)
    moved = [key for key in KEPT_SETTINGS if tree.get(key) != settings.get(key)]
    if moved:
        raise BadFork(f"a fork keeps its parent's {moved[0]}; start a new session to change it")
    try:
        return changed(tree)
    except Refused as refused:
        raise BadChange(f"the changed settings cannot be: {refused}") from refused


def boundary(reader: Reader, at_seq: int | None = None) -> int:
    """Seq of the last row of the last complete step at the cursor. Raises BadFork before the first.

    Every step is announced by a `phase` event; one announced again (after a pause or a crash) goes on. What stands
    before a `forked` event is complete: a fork that no worker has run yet announces no further step.
    """
    last = reader.last_seq()
    if at_seq is not None and at_seq > last:
        raise BadFork(f"session {reader.folder.id} has {last} rows and no row {at_seq}")
    cursor = last if at_seq is None else at_seq
    for table in ("evaluation", "episode"):
        for row in reader.rows(table, {"split": "test"}, columns=["seq"], limit=1):
            cursor = min(cursor, row["seq"] - 1)
    decisions = {row["seq"] for row in reader.rows(EventRow, columns=["seq", "kind"]) if row["kind"] in DECISIONS}
    while cursor + 1 in decisions:  # what the step led to is part of it
        cursor += 1
    best, before = 0, None
    for event in reader.rows(EventRow, upto_seq=cursor + 1):
        if event["kind"] not in ("phase", "ended", "forked") or event["payload"] == before:
            continue
        before = event["payload"]
        best = event["seq"] - 1
    if best < 2:
        raise BadFork(f"session {reader.folder.id} has no complete step at seq {cursor}: start a new session instead")
    return best


def _merged(tree: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(tree)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(value, Mapping) and isinstance(old, Mapping) else value
    return merged


def _artifacts(reader: Reader, cut: int) -> list[str]:
    """Every file but the checkpoints behind the cut."""
    later = {row["artifact"] for row in reader.rows(CheckpointRow) if row["seq"] > cut}
    later -= {row["artifact"] for row in reader.rows(CheckpointRow, upto_seq=cut)}
    names = (path.name for path in reader.folder.artifact_files())
    return sorted(n for n in names if n not in later and not n.startswith("."))


@contextlib.contextmanager
def _in_this_schema(parent: SessionFolder, older: bool) -> Iterator[Path]:
    """The parent's database, or a copy brought up to this schema: only its worker may change the parent itself."""
    if not older:
        yield parent.database
        return
    from rlgpt.store.migrations import upgrade  # late: Alembic costs half a second

    with tempfile.TemporaryDirectory(prefix="rlgpt-") as scratch:
        copy = Path(scratch) / DATABASE
        copy_database(parent.database, copy)
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as base:
            upgrade(base, parent.database)
        yield copy


def _copy_rows(base: sqlite3.Connection, database: Path, session_id: str, cut: int) -> None:
    """All rows with seq <= cut but the session's, under the new session's id, and all texts."""
    base.execute("ATTACH ? AS parent", (address(database),))
    for name, table in query.sequenced(base).items():
        if name == "session":
            continue
        columns = ", ".join(query.quoted(c) for c in table.columns)
        values = ", ".join("?" if c == "session_id" else query.quoted(c) for c in table.columns)
        quoted = query.quoted(name)
        base.execute(
            f"INSERT INTO main.{quoted} ({columns}) SELECT {values} FROM parent.{quoted} WHERE seq <= ? ORDER BY seq",
            (session_id, cut),
        )
    base.execute("INSERT INTO main.text (hash, body) SELECT hash, body FROM parent.text")
    base.commit()
    base.execute("DETACH parent")


def forked_event(base: sqlite3.Connection, session_id: str, event: Forked) -> tables.Event:
    names = list(query.sequenced(base))
    seq = query.last_seq(base, names)
    spans = [
        base.execute(f"SELECT incarnation, active FROM {query.quoted(n)} WHERE seq = ?", (seq,)).fetchone()
        for n in names
    ]
    incarnation, active = next(span for span in spans if span)
    return tables.Event(
        seq=seq + 1, session_id=session_id, incarnation=incarnation, at=time.time(), active=active,
        kind=kind_of(event), payload=payload_of(event),
    )  # fmt: skip


def link_file(old: Path, new: Path) -> None:
    """Files are named by their content and never changed, so both sessions may share one."""
    try:
        os.link(old, new)
    except OSError:
        shutil.copyfile(old, new)
        new.chmod(0o600)

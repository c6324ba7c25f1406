"""All sessions at a glance: a cache of summaries in `catalog.db`, rebuilt whenever it is in doubt.

The sessions' own databases are the truth; a summary is as old as the files it was folded from, which are its
key. A heading is what is looked for in all sessions at once, by two short queries each: a session that is running is
looked at again each time, and folding it would take seconds. Tags are the operator's: one
small file in the session's folder.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rlgpt.store import atomic
from rlgpt.store.address import has_store
from rlgpt.store.artifacts import digest
from rlgpt.store.database import connect
from rlgpt.store.errors import Ambiguous, BadPlace, BadValue, NoSession, StoreError
from rlgpt.store.folder import DATABASE, SessionFolder, root, sessions
from rlgpt.store.history import History, Measured, fold_all
from rlgpt.store.home import home
from rlgpt.store.lease import owner
from rlgpt.store.reader import Reader
from rlgpt.store.row_types import JsonObject, ListedSettings
from rlgpt.store.row_values import fits
from rlgpt.store.sqlite_errors import is_passing
from rlgpt.store.timeline import no_collection

NAME = "catalog.db"
TAGS = "tags.json"
LONGEST_TAG = 40
MOST_TAGS = 20
MOST_UNWRITTEN = 50
"""Sessions whose summaries are lost when a long first list is interrupted."""
_VERSION = 9

UNREADABLE = (StoreError, sqlite3.Error, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)
"""What reading a damaged session may raise."""


@dataclass(frozen=True)
class Summary:
    id: str
    name: str = ""
    task: str = ""
    world: str = ""
    model: str = ""
    """`rules`, or the name of the language model, or replay:ID."""
    status: str = ""
    """created | running | waiting | paused | ended, as its rows say; whether a worker lives is `alive`."""
    result: str = ""
    reason: str = ""
    iteration: int | None = None
    revision: int = 0
    phase: str = ""
    waiting_for: str = ""
    waiting_since: float = 0.0
    dev_successes: int = 0
    dev_episodes: int = 0
    dev_score: float | None = None
    """Of the incumbent, else of the last iteration; the score, in [0, 1], where the task's result is one."""
    dev_part: int = 0
    """The sub-task, from 1, whose task these episodes were of; 0: the session's own."""
    test_successes: int = 0
    test_episodes: int = 0
    test_score: float | None = None
    env_steps: int = 0
    tokens: int = 0
    cost: float = 0.0
    unknown_price: bool = False
    started_at: float = 0.0
    at: float = 0.0
    """UTC seconds of the last row."""
    active: float = 0.0
    parent_id: str | None = None
    parent_seq: int | None = None
    """The last row that a fork has of its parent."""
    settings: JsonObject = dataclasses.field(default_factory=dict)
    """As fixed at creation."""
    fault: str = ""
    """A sentence when the session cannot be read; the rest is then empty."""
    passing: bool = False
    """Whether the fault may pass without a change of the files, as a lock or a permission does."""
    alive: bool = False
    node: str = ""
    """The machine of its worker, where that is another one."""
    tags: tuple[str, ...] = ()
    size: int = 0
    """Bytes on the disk."""
    store: str = ""
    """The team's store it is in, where it is not here."""

    @property
    def dev(self) -> Measured:
        return Measured(self.dev_successes, self.dev_episodes, self.dev_score)

    @property
    def test(self) -> Measured:
        return Measured(self.test_successes, self.test_episodes, self.test_score)


class Heading(NamedTuple):
    name: str
    """Empty where it cannot be read."""
    costs: dict[str, float]
    """USD by day (UTC, ISO). None of a replay, whose rows repeat what the recorded calls cost."""
    parent: str
    """Id of the session it was forked from; empty if it was not."""
    inherited: dict[str, float]
    """What of `costs` stands in rows that a fork has of its parent: it was paid once."""
    passing: bool
    """Whether it could not be read for a reason that may pass without a change of the files."""


def headings() -> dict[str, Heading]:
    """Of all sessions, by id, oldest first."""
    headings_by_id = _cached("heading", sessions(), heading)
    return {name: Heading(**body) for name, body in headings_by_id.items()}


def find(session: str) -> SessionFolder:
    """By id, a prefix of it, or name; `last` is the newest; or the path of a session's folder. Raises NoSession."""
    if os.sep in session and (Path(session) / DATABASE).is_file():
        return SessionFolder(Path(session).resolve())  # `./` has no name to show or to call a file by
    where = " here (`rlgpt store pull` brings one of the team's store)" if has_store() else ""
    return SessionFolder(root() / chosen(session, [s.id for s in sessions()], names, where))


def chosen(session: str, every: Sequence[str], names: Callable[[], Mapping[str, str]], where: str = "") -> str:
    """Of these ids, oldest first, the one that is meant; `names` are asked for only if no single id fits: all ids of a
    decade begin alike, and a session may be called 2. Raises NoSession."""
    if session == "last" and every:
        return every[-1]
    matching = [s for s in every if s == session] or [s for s in every if session and s.startswith(session)]
    if len(matching) != 1 and session:
        called = names()
        matching = [s for s in every if called.get(s) == session] or matching
    if len(matching) == 1:
        return matching[0]
    if matching:
        some = ", ".join(matching[:5]) + (", ..." if len(matching) > 5 else "")
        raise Ambiguous(f"{session!r} may mean {len(matching)} sessions: {some}")
    raise NoSession(f"there is no session {session!r}{where}; `rlgpt sessions` lists them")


def names() -> dict[str, str]:
    """Of all sessions, by id; empty where it cannot be read."""
    return {ident: heading.name for ident, heading in headings().items()}


def heading(session: SessionFolder) -> JsonObject:
    """As a tree; never raises for a damaged session."""
    costs: dict[str, float] = {}
    inherited: dict[str, float] = {}
    parent = ""
    passing = False
    try:
        with contextlib.closing(connect(session.database)) as base:
            row = base.execute("SELECT parent_id, parent_seq FROM session WHERE parent_id IS NOT NULL").fetchone()
            parent, cut = row or ("", 0)
            days = (
                "SELECT date(at, 'unixepoch'), total(cost), total(cost) FILTER (WHERE seq <= ?) FROM llm_call "
                "WHERE cost > 0 AND NOT EXISTS "
                "(SELECT 1 FROM session WHERE json_extract(settings, '$.llm.kind') LIKE 'replay:%') GROUP BY 1"
            )
            for day, cost, of_parent in base.execute(days, (cut,)):
                costs[str(day)], inherited[str(day)] = float(cost), float(of_parent)
    except (StoreError, sqlite3.Error, ValueError, TypeError) as error:
        passing = may_pass(error)
    return Heading(session.name, costs, parent, inherited, passing)._asdict()


def may_pass(error: Exception) -> bool:
    """Whether the next look at the same files may succeed: another program locks the session, a permission is missing,
    the disk did not answer. What is kept of such a look would stand for the session until its next row."""
    return isinstance(error, BadPlace) or is_passing(error)


def why_unreadable(folder: Path, error: Exception) -> str:
    """In one sentence why a session cannot be read. `error`: one of `UNREADABLE`, or an OSError."""
    if isinstance(error, StoreError | OSError):
        return str(error)
    if may_pass(error):
        return f"session {folder.name} cannot be read now: {error}"
    from rlgpt.store.soundness import explained  # late: it needs the whole schema

    if damage := explained(folder / DATABASE):  # rows that do not fold raise what tells a reader nothing
        return str(damage)
    return f"session {folder.name} cannot be shown: {type(error).__name__}: {error}; `rlgpt store check` says more"


def summaries() -> list[Summary]:
    """All sessions, newest first; a damaged one with its fault instead of numbers."""
    every = sessions()[::-1]
    with no_collection():
        summaries_by_id = _cached("summary", every, lambda session: dataclasses.asdict(summary(session)))
    return [_living(Summary(**summaries_by_id[session.id]), session) for session in every]


def _living(summary: Summary, session: SessionFolder) -> Summary:
    """With what its rows do not say. A session of another user (of root, after `sudo rlgpt run`) takes no other one off
    the list."""
    try:
        worker = owner(session.path)
    except (BadPlace, OSError) as error:
        why = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        fault = summary.fault or f"session {session.id} cannot be read: {why}"
        return dataclasses.replace(summary, fault=fault)
    return dataclasses.replace(
        summary,
        alive=worker is not None,
        node=worker.host if worker and worker.host != socket.gethostname() else "",
        tags=tags(session),
        size=disk_bytes(session.path),
    )


def summary(session: SessionFolder) -> Summary:
    """Folded from its rows; never raises for a damaged session."""
    try:
        with Reader(session) as reader:
            history = fold_all(reader.folded_since(0, None))  # once, to the end: no states are kept for a seek
        return require_shown(summarised(session.id, history))
    except UNREADABLE as error:
        return Summary(session.id, fault=why_unreadable(session.path, error), passing=may_pass(error))


def require_shown(summary: Summary) -> Summary:
    """The summary itself. Raises ValueError for one that a list could not show: values that no writer writes fold, and
    one session must not take down the list of all."""
    if not fits(summary.settings, ListedSettings):
        raise ValueError("its settings cannot be")
    for measured in (summary.dev, summary.test):
        if measured.episodes < 0 or not 0.0 <= measured.value <= 1.0:
            raise ValueError(f"a result of {measured.value:g} cannot be")
        _ = measured.interval
    return summary


def summarised(ident: str, h: History) -> Summary:
    """What the fold of its rows comes to."""
    settings = h.session["settings"]
    llm = settings.get("llm", {})
    shown = h.outcome or h.iteration
    dev = h.developed(shown) if shown else Measured(0, 0)
    tested = [h.pooled(i, "test", "full") for i in h.iterations]
    test = next((t for t in tested if t.episodes), Measured(0, 0))
    return Summary(
        id=ident,
        name=str(h.session["name"]),
        task=str(h.session["task"]),
        world=str(h.session["world"]),
        model=str(llm.get("model", "")) if llm.get("kind") == "openai" else str(llm.get("kind", "")),
        status=h.status,
        result=h.result,
        reason=h.reason,
        iteration=h.iteration.number if h.iteration else None,
        revision=h.revision,
        phase=h.phase.name,
        waiting_for=h.waiting_for,
        waiting_since=h.waiting_since,
        dev_successes=dev.successes,
        dev_episodes=dev.episodes,
        dev_score=dev.score,
        dev_part=shown.sub_task + 1 if shown and h.part(shown.sub_task) else 0,
        test_successes=test.successes,
        test_episodes=test.episodes,
        test_score=test.score,
        env_steps=h.spent.env_steps,
        tokens=h.spent.tokens,
        cost=h.spent.cost,
        unknown_price=h.spent.unknown_price,
        started_at=h.started_at,
        at=h.at,
        active=h.active,
        parent_id=h.session.get("parent_id"),
        parent_seq=h.session.get("parent_seq"),
        settings=settings,
    )


def tags(session: SessionFolder) -> tuple[str, ...]:
    try:
        stored = json.loads((session.path / TAGS).read_bytes())
    except (OSError, ValueError):
        return ()
    return tuple(str(tag)[:LONGEST_TAG] for tag in stored) if isinstance(stored, list) else ()


def set_tags(session: SessionFolder, requested: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Returns the tags as kept: stripped, each once, in order. Raises StoreError."""
    stored = tuple(dict.fromkeys(tag.strip() for tag in requested if tag.strip()))
    if len(stored) > MOST_TAGS or any(len(tag) > LONGEST_TAG or not tag.isprintable() for tag in stored):
        raise BadValue(f"a session has at most {MOST_TAGS} tags of at most {LONGEST_TAG} printable characters")
    try:
        atomic.write_bytes(session.path / TAGS, json.dumps(stored).encode())
    except OSError as error:
        raise BadPlace(f"the tags of session {session.id} cannot be written: {error.strerror}") from error
    return stored


def disk_bytes(folder: Path) -> int:
    """Of all files below the folder; those that vanish meanwhile count nothing."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(path) / name).stat().st_blocks * 512
    return total


# ---- the cache ------------------------------------------------------------------------------------
def _cached(
    table: str, chosen_sessions: Sequence[SessionFolder], make: Callable[[SessionFolder], JsonObject]
) -> dict[str, JsonObject]:
    """What the table keeps of these sessions, by id, made anew where a session has changed since."""
    bodies: dict[str, JsonObject] = {}
    fresh: list[tuple[str, str, bytes]] = []
    with _cache() as base:
        cached = _kept(base, table)

        def write() -> None:
            with contextlib.suppress(sqlite3.DatabaseError):  # another process writes, the disk is full, it is damaged
                base.execute("BEGIN IMMEDIATE")
                base.executemany(f"REPLACE INTO {table} (id, key, body) VALUES (?, ?, ?)", fresh)
                base.execute("COMMIT")
            fresh.clear()

        for session in chosen_sessions:
            key = _key(session.database)
            cached_key, body = cached.pop(session.id, ("", b""))
            if cached_key == _signed(key, body):
                bodies[session.id] = json.loads(body)
                continue
            bodies[session.id] = make(session)
            if bodies[session.id]["passing"]:
                if table == "heading" and _is_whole(cached_key, body):  # what it cost and was called so far
                    bodies[session.id] = json.loads(body)
                continue
            body = json.dumps(bodies[session.id]).encode()
            fresh.append((session.id, _signed(key, body), body))
            if len(fresh) == MOST_UNWRITTEN:
                write()
        if fresh:
            write()
        with contextlib.suppress(sqlite3.DatabaseError):
            base.executemany(f"DELETE FROM {table} WHERE id = ?", [(name,) for name in cached])
    return bodies


def _kept(base: sqlite3.Connection, table: str) -> dict[str, tuple[str, bytes]]:
    """Key and body by id; {} of a damaged cache, which the next process then makes anew. As bytes: what was flipped in
    it may be no text any more."""
    columns = ", ".join(f"CAST({name} AS BLOB)" for name in ("id", "key", "body"))
    try:
        rows = base.execute(f"SELECT {columns} FROM {table}").fetchall()
    except sqlite3.OperationalError:
        return {}
    except sqlite3.DatabaseError:
        (home() / NAME).unlink(missing_ok=True)
        return {}
    return {ident.decode(errors="replace"): (key.decode(errors="replace"), body) for ident, key, body in rows}


def _signed(key: str, body: bytes) -> str:
    """A key with the hash of its body: SQLite does not notice a flipped byte in a text."""
    return f"{key}/{digest(body)}"


def _is_whole(cached_key: str, body: bytes) -> bool:
    """Whether a body that was kept of earlier files is what was written then."""
    key = cached_key.rpartition("/")[0]
    return cached_key == _signed(key, body) and key.startswith(f"{_VERSION}/")


def _key(database: Path) -> str:
    """What changes whenever the session does."""
    parts = []
    for path in (database, database.with_name(f"{DATABASE}-wal")):
        with contextlib.suppress(OSError):
            state = path.stat()
            if state.st_size:  # a mere reader leaves an empty log
                parts.append(f"{state.st_size}.{state.st_mtime_ns}")
    return "/".join((str(_VERSION), *parts))


@contextlib.contextmanager
def _cache() -> Iterator[sqlite3.Connection]:
    """The cache, made anew when it is damaged; one in memory where nothing can be written."""
    path = home() / NAME
    try:
        base = _open(path)
    except (sqlite3.OperationalError, OSError):
        base = _open(None)
    except sqlite3.DatabaseError:
        path.unlink(missing_ok=True)
        base = _open(path)
    with contextlib.closing(base):
        yield base


def _open(path: Path | None) -> sqlite3.Connection:
    if path is not None and path.parent.is_dir():
        path.touch(mode=0o600)
    base = sqlite3.connect(path or ":memory:", timeout=5, isolation_level=None)
    try:
        base.execute("PRAGMA synchronous=OFF")  # what a power cut takes is made again
        for table in ("summary", "heading"):
            columns = "id TEXT PRIMARY KEY, key TEXT NOT NULL, body TEXT NOT NULL"
            base.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
            base.execute(f"SELECT count(*) FROM {table}").fetchone()
    except BaseException:
        base.close()
        raise
    return base

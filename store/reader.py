"""Reading a session: what the console, the command line and the loop's tools ask. Standard library only.

A reader never writes: not a row, not a lock, not a checkpoint. It reads a session while it is written, after
its worker died, and from a bundle on a medium that cannot be written at all.
"""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast, overload

from rlgpt.store import artifacts, query
from rlgpt.store.database import connect
from rlgpt.store.errors import StoreError
from rlgpt.store.folder import Place, SessionFolder, path_of
from rlgpt.store.history import History
from rlgpt.store.lease import owner
from rlgpt.store.revision import REVISION, found
from rlgpt.store.row_types import TABLES, Change, CommandRow, Row
from rlgpt.store.timeline import Timeline

R = TypeVar("R", bound=Row)
HEAVY = frozenset({"metric", "frame", "episode", "log", "llm_call"})
"""Tables that panes read for themselves, as rows up to the cursor."""


class Reader:
    """May be shared by threads; calls queue. Raises BadPlace, BadSchema."""

    def __init__(self, place: Place) -> None:
        self.folder = SessionFolder(path_of(place))
        self._lock = threading.RLock()
        self._base = connect(self.folder.database)
        try:
            revision = found(self._base, self.folder.database)
            if revision < REVISION:
                from rlgpt.store.migrations import upgraded_copy  # late: Alembic costs half a second

                with contextlib.closing(self._base) as older:  # a reader never writes to the session itself
                    self._base = upgraded_copy(older, self.folder.database)
            with self._reading():
                self._tables = query.every(self._base)
        except BaseException:
            self._base.close()
            raise
        self.notice = (
            f"this session has the older schema {revision} (now {REVISION}); you see a copy that was brought up to "
            "date, the session itself will be when it is resumed"
            if revision < REVISION
            else ""
        )
        """A sentence to show, empty for a session of this schema."""
        self._sequenced = {n: t for n, t in self._tables.items() if "seq" in t.columns}
        self._folded = query.folded(self._sequenced)
        self._timeline = Timeline(self._folded_rows)

    # ---- the stream of changes ------------------------------------------------------------------
    def data_version(self) -> int:
        """Another number whenever anybody committed since; costs microseconds."""
        with self._reading():
            return int(self._base.execute("PRAGMA data_version").fetchone()[0])

    def is_outdated(self) -> bool:
        """Whether this is a copy of an older session that was brought up to date itself meanwhile."""
        if not self.notice:
            return False
        with contextlib.closing(connect(self.folder.database)) as base:
            return found(base, self.folder.database) >= REVISION

    def changes_since(self, seq: int, limit: int | None = 1000, *, without: Collection[str] = ()) -> list[Change]:
        """The first `limit` rows behind `seq`, in order; [] at the end. `without`: tables to leave out."""
        chosen = [t.selection() for n, t in self._sequenced.items() if n not in without]
        with self._snapshot():
            return query.changes(self._base, chosen, seq, limit=limit)

    def folded_since(self, seq: int, limit: int | None = 1000, upto: int | None = None) -> list[Change]:
        """Like changes_since, of heavy tables only what the fold looks at: the live console's stream."""
        return self._folded_rows(seq, upto, limit)

    def last_seq(self) -> int:
        with self._snapshot():
            return query.last_seq(self._base, self._sequenced)

    def history_at(self, seq: int | None = None) -> History:
        """The fold up to `seq` (all of it by default). The caller may change what it gets."""
        with self._reading():
            return self._timeline.at(seq)

    # ---- rows -----------------------------------------------------------------------------------
    @overload
    def rows(
        self, table: type[R], where: Mapping[str, object] | None = None, *, after_seq: int = 0,
        upto_seq: int | None = None, columns: Sequence[str] | None = None, newest_first: bool = False,
        limit: int | None = None,
    ) -> list[R]: ...  # fmt: skip
    @overload
    def rows(
        self, table: str, where: Mapping[str, object] | None = None, *, after_seq: int = 0,
        upto_seq: int | None = None, columns: Sequence[str] | None = None, newest_first: bool = False,
        limit: int | None = None,
    ) -> list[Row]: ...  # fmt: skip
    def rows(
        self,
        table: type[R] | str,
        where: Mapping[str, object] | None = None,
        *,
        after_seq: int = 0,
        upto_seq: int | None = None,
        columns: Sequence[str] | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[R] | list[Row]:
        """Rows of one table by seq. `table`: the type of its rows, or a name where any table may be asked for.

        `where`: columns and the values they must have (None: NULL). `columns`: rows have only these.
        """
        name = table if isinstance(table, str) else TABLES[table]
        sequenced = self._sequenced.get(name)
        if sequenced is None:
            raise StoreError(f"session {self.folder.id} has no table {name!r}")
        conditions = [f"{query.quoted(column)} IS ?" for column in where or {}]
        bound = list((where or {}).values())
        if after_seq:
            conditions.append("seq > ?")
            bound.append(after_seq)
        if upto_seq is not None:
            conditions.append("seq <= ?")
            bound.append(upto_seq)
        clause = f"WHERE {' AND '.join(conditions)} " if conditions else ""
        clause += f"ORDER BY seq {'DESC' if newest_first else 'ASC'}"
        if limit is not None:
            clause += f" LIMIT {int(limit)}"
        with self._reading():
            return cast(list[R], sequenced.selection(columns).rows(self._base, clause, bound))

    def tables(self) -> list[str]:
        """The tables in the shared sequence."""
        return list(self._sequenced)

    def columns(self, table: str) -> tuple[str, ...]:
        return self._tables[table].columns

    def texts(self) -> list[str]:
        """The hashes of all texts."""
        with self._reading():
            return [row[0] for row in self._base.execute("SELECT hash FROM text ORDER BY hash")]

    def matrix(self, table: str, columns: Sequence[str], *, upto_seq: int | None = None) -> list[tuple[Any, ...]]:
        """Plain columns of a whole table as tuples by seq: several times faster than rows, nothing decoded."""
        names = ", ".join(query.quoted(name) for name in columns)
        sql = f"SELECT {names} FROM {query.quoted(table)} WHERE seq <= ? ORDER BY seq"
        with self._reading():
            return self._base.execute(sql, (2**62 if upto_seq is None else upto_seq,)).fetchall()

    def text(self, name: str | None) -> str:
        """A text by its hash, "" for None. Raises StoreError if it was left out of a bundle, or is damaged."""
        if not name:
            return ""
        with self._reading():
            row = self._base.execute("SELECT body FROM text WHERE hash = ?", (name,)).fetchone()
        if row is None:
            raise StoreError(f"the text {name} is not kept in {self.folder.path}")
        return artifacts.unpacked_text(name, row[0])

    def artifact(self, name: str) -> bytes:
        return artifacts.get(self.folder.artifacts, name)

    def commands(self, after_rowid: int = 0) -> list[CommandRow]:
        """The inbox, taken or not; `rowid` is its order. Their fate is in `history.commands`, by id."""
        table = self._tables["command"]
        selection = table.selection()
        selection = selection._replace(
            sql=selection.sql.replace("SELECT ", "SELECT rowid, ", 1), names=("rowid", *selection.names)
        )
        with self._reading():
            commands = selection.rows(self._base, "WHERE rowid > ? ORDER BY rowid", (after_rowid,))
            return cast(list[CommandRow], commands)

    # ---- life -----------------------------------------------------------------------------------
    def alive(self) -> bool:
        """Whether a worker has the session now."""
        return owner(self.folder.path) is not None

    def close(self) -> None:
        with self._lock:
            self._base.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- inside ---------------------------------------------------------------------------------

    def _folded_rows(self, after: int, upto: int | None, limit: int | None) -> list[Change]:
        with self._snapshot():
            return query.changes(self._base, self._folded, after, upto, limit)

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[None]:
        """One read transaction, so that a commit is seen whole or not at all."""
        with self._reading():
            self._base.execute("BEGIN")
            try:
                yield
            finally:
                self._base.execute("COMMIT")

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """One thread at a time. Where reading fails because the database is damaged, that is what is raised."""
        with self._lock:
            try:
                yield
            except StoreError:
                raise
            except Exception as error:
                from rlgpt.store.soundness import explained  # late: it needs the whole schema

                # A statement that failed half way keeps the database locked as long as the frames of its error live.
                traceback.clear_frames(error.__traceback__)
                if damage := explained(self.folder.database):
                    raise damage from error
                raise

"""One session of a shared store as a peer.

Every append moves the session's head by a compare-and-swap in the transaction that writes the rows. That one statement
is fencing, order and idempotence: who holds an older incarnation, or does not begin where the rows end, changes no row
and writes nothing; after an acknowledgement that was lost, the head says how far the rows are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import psycopg
from psycopg.sql import SQL, Identifier

from rlgpt.store.catalog import Summary
from rlgpt.store.errors import LeaseTaken, StoreError
from rlgpt.store.lease import Owner
from rlgpt.store.peers import COMMAND, LIMIT, NOTHING, PRUNABLE, Batch, Behind, Fenced, Head, RemoteWorker, row_bytes
from rlgpt.store.progress import Heartbeat
from rlgpt.store.row_values import fits
from rlgpt.store.shared.connection import Connection, place_of, store_errors
from rlgpt.store.shared.summaries import text_of
from rlgpt.store.transactions import first_rows

OUTSIDE = ("text", "artifact", "command", "inbox", "head", "version")
BODIES = ("text", "artifact")
LOCKED = """
    hashtextextended(session_id, 0) IN (SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"""
"""Whether a keeper has the session of a head now."""


class Claim(NamedTuple):
    """The right to write a session, as long as the lock of this connection is held and nobody claims it again."""

    incarnation: int


def layout(base: Connection) -> dict[str, dict[str, str]]:
    """The tables of the sequence: table -> column -> the revision of the schema that it came with."""
    columns: dict[str, dict[str, str]] = {}
    rows = base.execute(
        "SELECT c.relname, a.attname, coalesce(col_description(c.oid, a.attnum), '0001') "
        "FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
        "WHERE c.relnamespace = to_regnamespace('rlgpt') AND c.relkind = 'r' ORDER BY c.relname, a.attnum"
    )
    for table, column, since in rows:
        if table not in OUTSIDE:
            columns.setdefault(table, {})[column] = since
    return columns


class SharedPeer:
    """`claim`: what `claimed` gave; without it the session can be read, and commands sent to it."""

    def __init__(self, base: Connection, address: str, session_id: str, claim: Claim | None = None) -> None:
        self.session_id = session_id
        self._base, self._address, self._claim = base, address, claim
        self._nothing_since: tuple[int, int, int] | None = None
        """The row, the changes of the head and the number of known names for which there was nothing new."""
        self._published_summary = ""
        """The summary that was told last."""
        with store_errors(address):
            self._layout = layout(base)

    @property
    def place(self) -> str:
        return f"{place_of(self._address)} ({self.session_id})"

    @property
    def incarnation(self) -> int:
        return self._claim.incarnation if self._claim else 0

    # ---- what is there --------------------------------------------------------------------------
    def head(self) -> Head:
        sql = "SELECT session_id, seq, incarnation, schema FROM head WHERE session_id = %s AND seq > 0"
        with store_errors(self._address):
            row = self._base.execute(sql, (self.session_id,)).fetchone()
        return Head(*row) if row else NOTHING

    def names(self) -> set[str]:
        sql = " UNION ALL ".join(
            f"SELECT {name} FROM {table} WHERE session_id = %(id)s"
            for table, name in (("text", "hash"), ("artifact", "hash"), ("command", "id"))
        )
        with store_errors(self._address):
            return {row[0] for row in self._base.execute(sql, {"id": self.session_id})}

    def mark(self, seq: int) -> str:
        tables = [table for table in self._layout if table not in PRUNABLE]
        sql = SQL(" UNION ALL ").join(
            SQL("SELECT max(seq), {} FROM {} WHERE session_id = %(id)s AND seq <= %(seq)s").format(
                table, Identifier(table)
            )
            for table in tables
        )
        with store_errors(self._address), self._base.cursor(binary=True) as cursor:
            fetched = cursor.execute(sql, {"id": self.session_id, "seq": seq}).fetchall()
            last, table = max(((number, table) for number, table in fetched if number), default=(0, ""))
            if not last:
                return blake2b(b"", digest_size=16).hexdigest()
            columns = self._columns(table, self.head().schema)
            row = cursor.execute(_select(table, columns, "seq = %(seq)s"), {"id": self.session_id, "seq": last})
            return blake2b(row_bytes(table, columns, row.fetchall()[0]), digest_size=16).hexdigest()

    def since(self, seq: int, names: set[str], limit: int = LIMIT) -> Batch:
        with store_errors(self._address):
            sql = "SELECT changes, schema FROM head WHERE session_id = %s"
            row = self._base.execute(sql, (self.session_id,)).fetchone()
        changes, schema = row or (0, "")
        state = (seq, changes, len(names))
        if self._nothing_since == state:
            return Batch(seq, seq, schema, {}, {}, [], {}, [])
        batch = self._read(seq, names, limit)
        self._nothing_since = None if batch else state
        return batch

    def _read(self, seq: int, names: set[str], limit: int) -> Batch:
        """Asks in two pipelines: on a busy server each round trip waits for its turn."""
        with store_errors(self._address), self._base.pipeline(), self._base.transaction():
            self._base.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            head = self._ask("SELECT schema FROM head WHERE session_id = %(id)s")
            grown = self._ask(self._grown(), seq=seq)
            texts, files = (self._ask(f"SELECT hash FROM {name} WHERE session_id = %(id)s") for name in BODIES)
            sent = self._ask(f"SELECT {', '.join(COMMAND)} FROM command WHERE session_id = %(id)s ORDER BY place")

            schema = (head.fetchone() or ("",))[0]
            columns = {table: self._columns(table, schema) for table in self._layout}
            bodies = [self._bodies(*asked, names) for asked in zip(BODIES, (texts, files), strict=True)]
            rows, last = self._rows_behind([row[0] for row in grown.fetchall()], columns, seq, limit)
            return Batch(
                seq,
                last,
                schema,
                {name: columns[name] for name in rows},
                rows,
                bodies[0].fetchall() if bodies[0] else [],
                dict(bodies[1].fetchall()) if bodies[1] else {},
                [row for row in sent.fetchall() if row[0] not in names],
            )

    def _ask(self, sql: Any, **values: object) -> psycopg.Cursor[Any]:
        """The answer comes when it is fetched, with those of all that were asked before."""
        return self._base.cursor(binary=True).execute(sql, {"id": self.session_id, **values})

    def _rows_behind(
        self, grown: list[str], columns: Mapping[str, tuple[str, ...]], seq: int, limit: int
    ) -> tuple[dict[str, list[tuple[Any, ...]]], int]:
        sql = "seq > %(seq)s ORDER BY seq LIMIT %(limit)s"
        results = {table: self._ask(_select(table, columns[table], sql), seq=seq, limit=limit + 1) for table in grown}
        rows = {table: answer.fetchall() for table, answer in results.items()}
        cut = first_rows(rows, columns, limit)
        return (cut[0], cut[1] or seq) if cut else self._rows_behind(grown, columns, seq, 2 * limit)

    def _grown(self) -> Any:
        """The tables that have rows behind a number: mostly one or two, so that the others are not asked one by one."""
        return SQL(" UNION ALL ").join(
            SQL("SELECT {} WHERE EXISTS (SELECT 1 FROM {} WHERE session_id = %(id)s AND seq > %(seq)s)").format(
                table, Identifier(table)
            )
            for table in self._layout
        )

    def _bodies(self, table: str, every: psycopg.Cursor[Any], names: set[str]) -> psycopg.Cursor[Any] | None:
        """Of those that are not known."""
        missing = sorted({row[0] for row in every.fetchall()} - names)
        sql = f"SELECT hash, body FROM {table} WHERE session_id = %(id)s AND hash = ANY(%(wanted)s) ORDER BY hash"
        return self._ask(sql, wanted=missing) if missing else None

    def _columns(self, table: str, schema: str) -> tuple[str, ...]:
        return tuple(name for name, since in self._layout[table].items() if since <= schema)

    # ---- the worker there -----------------------------------------------------------------------
    def worker(self) -> RemoteWorker | None:
        """A worker lives while its keeper's lock is held: nothing else says so."""
        sql = f"SELECT beat::text, {LOCKED} FROM head WHERE session_id = %s"
        with store_errors(self._address):
            row = self._base.execute(sql, (self.session_id,)).fetchone()
        if not row or not row[1] or not row[0]:
            return None
        try:
            stored = json.loads(row[0])
            if not (worker := stored.get("worker")):
                return None
            pid, host, since = worker
            beat = stored.get("progress")
            return RemoteWorker(Owner(int(pid), str(host), float(since)), beat if fits(beat, Heartbeat) else {})
        except (ValueError, TypeError, AttributeError, OverflowError):  # whoever may write a head may write anything
            return RemoteWorker(Owner(0, "another machine", 0.0), {})

    def send(self, command: Mapping[str, Any]) -> None:
        row = {**command, "session_id": self.session_id, "payload": json.dumps(command["payload"])}
        values = [row[name] for name in COMMAND]
        sql = f"INSERT INTO inbox ({', '.join(COMMAND)}) VALUES ({', '.join(['%s'] * len(COMMAND))})"
        with store_errors(self._address):
            self._base.execute(f"{sql} ON CONFLICT DO NOTHING", values)

    def inbox(self, known: Collection[int] = ()) -> list[dict[str, Any]]:
        """What operators sent, but for the places that are known, as COMMAND columns with the payload as a tree; `n` is
        the place. Of two that send at once the one with the later place may be there first, so no place is a mark
        behind which all that is new stands."""
        sql = f"SELECT n, {', '.join(COMMAND)} FROM inbox WHERE session_id = %s AND n <> ALL(%s::bigint[]) ORDER BY n"
        with store_errors(self._address), self._base.cursor(binary=True) as cursor:
            rows = cursor.execute(sql, (self.session_id, list(known))).fetchall()
        names = ("n", *COMMAND)
        commands = [dict(zip(names, row, strict=True)) for row in rows]
        return [row | {"payload": json.loads(row["payload"])} for row in commands]

    # ---- writing --------------------------------------------------------------------------------
    def claim(self) -> int:
        """Take the session for this connection; returns the incarnation it may write with. Raises LeaseTaken."""
        with store_errors(self._address):
            self._lock()
            row = self._base.execute(
                "INSERT INTO head (session_id, seq, incarnation, schema) VALUES (%s, 0, 1, '') "
                "ON CONFLICT (session_id) DO UPDATE SET incarnation = head.incarnation + 1 RETURNING incarnation",
                (self.session_id,),
            ).fetchone()
        assert row is not None
        self._claim = Claim(row[0])
        return int(row[0])

    def reclaim(self, incarnation: int) -> None:
        """Go on with a claim after the connection was lost. Raises LeaseTaken, and Fenced where it is over."""
        self._need_last_claim(incarnation)  # whoever claimed it since has the lock while they run it
        with store_errors(self._address):
            self._lock()
        self._need_last_claim(incarnation)
        self._claim = Claim(incarnation)

    def _need_last_claim(self, incarnation: int) -> None:
        with store_errors(self._address):
            row = self._base.execute(
                "SELECT incarnation, beat->'worker'->>1 FROM head WHERE session_id = %s", (self.session_id,)
            ).fetchone()
        if not row or row[0] != incarnation:
            raise self._fenced(row)

    def borrow(self) -> None:
        """Take the session to bring it up to date while no worker has it; its incarnation stays. Raises LeaseTaken."""
        with store_errors(self._address):
            self._lock()
            row = self._base.execute(
                "INSERT INTO head (session_id, seq, incarnation, schema) VALUES (%s, 0, 0, '') "
                "ON CONFLICT (session_id) DO UPDATE SET seq = head.seq RETURNING incarnation",
                (self.session_id,),
            ).fetchone()
        assert row is not None
        self._claim = Claim(row[0])

    def _lock(self) -> None:
        sql = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
        row = self._base.execute(sql, (self.session_id,)).fetchone()
        if not row or not row[0]:
            if (worker := self.worker()) is None:  # no keeper has told of one: perhaps nobody runs it
                raise LeaseTaken(f"session {self.session_id} is already run or copied elsewhere: try again in a moment")
            by = f"process {worker.owner.pid} on {worker.owner.host}"
            raise LeaseTaken(f"session {self.session_id} is already run by {by}; attach to it, or stop it first")

    def append(self, batch: Batch) -> None:
        """Raises Fenced, Behind, Away, StoreError."""
        if self._claim is None:
            raise StoreError(f"session {self.session_id} was not claimed in {self.place}")
        self._check_columns(batch)
        with store_errors(self._address), self._base.transaction(), self._base.cursor() as cursor:
            moved = cursor.execute(
                "UPDATE head SET seq = %(last)s, schema = %(schema)s, changes = changes + 1 "
                "WHERE session_id = %(id)s AND incarnation = %(mine)s AND seq = %(first)s "
                "AND schema <= %(schema)s",
                {
                    "last": batch.last,
                    "schema": batch.schema,
                    "id": self.session_id,
                    "mine": self._claim.incarnation,
                    "first": batch.first,
                },
            )
            if moved.rowcount != 1:
                raise self._why_not(batch)
            self._write(cursor, batch)

    def _write(self, cursor: psycopg.Cursor[Any], batch: Batch) -> None:
        texts = [(self.session_id, name, body) for name, body in batch.texts]
        files = [(self.session_id, name, body) for name, body in batch.artifacts.items()]
        for table, bodies in (("text", texts), ("artifact", files)):
            if bodies:
                sql = f"INSERT INTO {table} (session_id, hash, body) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
                cursor.executemany(sql, bodies)
        for table, rows in [*batch.rows.items(), ("command", batch.commands)]:
            columns = batch.columns.get(table, COMMAND)
            if not rows:
                continue
            names = SQL(", ").join(map(Identifier, columns))
            with cursor.copy(SQL("COPY {} ({}) FROM STDIN").format(Identifier(table), names)) as copy:
                for row in rows:
                    copy.write_row(row)
        if "session" in batch.rows:
            name = batch.rows["session"][0][batch.columns["session"].index("name")]
            cursor.execute("UPDATE head SET name = %s WHERE session_id = %s", (name, self.session_id))
        if "checkpoint" in batch.rows:
            cursor.execute(_SUPERSEDED, {"id": self.session_id})

    def _check_columns(self, batch: Batch) -> None:
        for table, columns in batch.columns.items():
            if unknown := set(columns) - set(self._layout.get(table, {})):
                raise StoreError(
                    f"the store {place_of(self._address)} does not know {table}.{min(unknown)}, which this rlgpt "
                    "writes: its owner runs `rlgpt store upgrade`"
                )
            place = columns.index("session_id")
            if any(row[place] != self.session_id for row in batch.rows[table]):
                raise StoreError(f"there are rows of another session among those of {self.session_id}")

    def _why_not(self, batch: Batch) -> StoreError:
        row = self._base.execute(
            "SELECT incarnation, beat->'worker'->>1, seq, schema FROM head WHERE session_id = %s", (self.session_id,)
        ).fetchone()
        assert self._claim is not None
        if not row or row[0] != self._claim.incarnation:
            return self._fenced(row)
        return Behind(
            f"{self.place} ends at row {row[2]} of schema {row[3]}, and what came goes on from row {batch.first} of "
            f"schema {batch.schema}"
        )

    def _fenced(self, row: tuple[Any, ...] | None) -> Fenced:
        if not row:
            return Fenced(f"session {self.session_id} was deleted from {place_of(self._address)}")
        return Fenced(f"session {self.session_id} was taken over by {row[1] or 'another'} (incarnation {row[0]})")

    def tell(self, worker: RemoteWorker | None, summary: Summary | None = None) -> None:
        """Show who works on it, how far that is, and the session at a glance. Raises Fenced."""
        assert self._claim is not None
        beat = json.dumps({"worker": worker.owner, "progress": worker.heartbeat}) if worker else None
        summary_text = text_of(summary) if summary else self._published_summary
        values: tuple[object, ...] = (beat,)
        sql = "UPDATE head SET beat = %s"
        if summary_text != self._published_summary:  # a list reads a summary again only where it is told again
            sql, values = f"{sql}, told_at = clock_timestamp(), summary = %s", (beat, summary_text)
        with store_errors(self._address):
            where = (self.session_id, self._claim.incarnation)
            moved = self._base.execute(f"{sql} WHERE session_id = %s AND incarnation = %s", (*values, *where))
            if moved.rowcount != 1:
                row = self._base.execute(
                    "SELECT incarnation, beat->'worker'->>1 FROM head WHERE session_id = %s", (self.session_id,)
                ).fetchone()
                raise self._fenced(row)
        self._published_summary = summary_text

    def release(self) -> None:
        """Give the claim back. The server does so by itself when the connection ends."""
        with store_errors(self._address):
            self._base.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", (self.session_id,))
        self._claim = None


_SUPERSEDED = """
    DELETE FROM artifact WHERE session_id = %(id)s
    AND hash IN (SELECT artifact FROM checkpoint WHERE session_id = %(id)s AND kind = 'rollout')
    AND hash NOT IN (SELECT artifact FROM checkpoint WHERE session_id = %(id)s AND kind = 'boundary')
    AND hash NOT IN (SELECT DISTINCT ON (c.run) c.artifact FROM checkpoint c JOIN artifact a
                     ON a.session_id = c.session_id AND a.hash = c.artifact WHERE c.session_id = %(id)s
                     ORDER BY c.run, c.seq DESC)"""


def _select(table: str, columns: tuple[str, ...], condition: str) -> Any:
    names = SQL(", ").join(map(Identifier, columns))
    return SQL("SELECT {} FROM {} WHERE session_id = %(id)s AND " + condition).format(names, Identifier(table))

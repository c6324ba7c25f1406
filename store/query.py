"""Reading rows as plain dicts in the order of `seq`, on any open connection. Standard library only.

What a table has is asked of the database itself, so an older schema reads as far as it goes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast

from rlgpt.store.row_types import Change

_ORDER = ("seq", "incarnation", "at", "active")
FOLDED: Mapping[str, Sequence[str]] = {
    "frame": _ORDER,
    "episode": _ORDER,
    "log": _ORDER,
    "metric": (*_ORDER, "run", "update", "env_steps", "decisions", "episodes", "successes"),
    "llm_call": (*_ORDER, "state", "tokens_in", "tokens_out", "cost"),
}
"""The columns of the heavy tables that the fold looks at; of every other table it may look at all."""


class Table(NamedTuple):
    name: str
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    """Declared types, in upper case."""

    def selection(self, columns: Sequence[str] | None = None) -> Selection:
        """The named columns (all by default), those that this schema lacks left out."""
        chosen = [c for c in columns if c in self.columns] if columns else list(self.columns)
        kind = dict(zip(self.columns, self.kinds, strict=True))
        decoders = [(c, _DECODE[kind[c]]) for c in chosen if kind[c] in _DECODE]
        names = ", ".join(quoted(c) for c in chosen)
        sql = f"SELECT {names} FROM {quoted(self.name)}"
        return Selection(self.name, sql, tuple(chosen), tuple(decoders))


class Selection(NamedTuple):
    table: str
    sql: str
    names: tuple[str, ...]
    decoders: tuple[tuple[str, Callable[[Any], Any]], ...]

    def rows(self, base: sqlite3.Connection, clauses: str = "", values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        names = self.names
        found = base.execute(f"{self.sql} {clauses}", values).fetchall()
        dicts = [dict(zip(names, row, strict=False)) for row in found]  # as long as each other: `sql` selects the names
        for name, decode in self.decoders:
            for row in dicts:
                value = row[name]
                if value is not None:
                    row[name] = decode(value)
        return dicts


def _json(text: str) -> Any:
    """json.loads of what the writer wrote, without its search for white space; the same for anything else."""
    try:
        value, end = _SCAN(text, 0)
    except StopIteration:
        end = -1
    return value if end == len(text) else json.loads(text)


_SCAN: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_DECODE: Mapping[str, Callable[[Any], Any]] = {"JSON": _json, "BOOLEAN": bool}


def quoted(name: str) -> str:
    """An SQL identifier. Names come from code and from the schema; this keeps a stray quote a mere name."""
    return '"' + name.replace('"', '""') + '"'


def sequenced(base: sqlite3.Connection) -> dict[str, Table]:
    """The tables in the shared sequence."""
    return {name: table for name, table in every(base).items() if "seq" in table.columns}


def every(base: sqlite3.Connection) -> dict[str, Table]:
    names = base.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    by_name = {}
    for (name,) in names:
        info = base.execute(f"PRAGMA table_info({quoted(name)})").fetchall()
        by_name[name] = Table(name, tuple(i[1] for i in info), tuple(str(i[2]).upper() for i in info))
    return by_name


def changes(
    base: sqlite3.Connection,
    selections: Collection[Selection],
    after: int,
    upto: int | None = None,
    limit: int | None = None,
) -> list[Change]:
    """Rows with after < seq <= upto of all the selections in one order, the first `limit` of them.

    Call it inside one transaction: rows of one commit must not be seen half.
    """
    last = 2**62 if upto is None else upto
    most = -1 if limit is None else limit
    where = "WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
    merged: list[tuple[str, dict[str, Any]]] = []
    for selection in selections:
        merged += [(selection.table, row) for row in selection.rows(base, where, (after, last, most))]
    merged.sort(key=lambda change: change[1]["seq"])
    return cast(list[Change], merged[:limit])


def folded(tables: Mapping[str, Table]) -> list[Selection]:
    """What the fold needs of every table."""
    return [table.selection(FOLDED.get(name)) for name, table in tables.items()]


def last_seq(base: sqlite3.Connection, tables: Collection[str]) -> int:
    every_last = (base.execute(f"SELECT max(seq) FROM {quoted(name)}").fetchone()[0] for name in tables)
    return max((seq for seq in every_last if seq is not None), default=0)

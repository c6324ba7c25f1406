"""A story written to disk by the store's own schema, exactly as its rows are."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import zstandard

from rlgpt.store import folder, schema
from rlgpt.store.rows import Encoded


def write(ident: str, rows: Iterable[tuple[str, Mapping[str, Any]]], texts: Mapping[str, str]) -> Path:
    """The folder of a new session `ident` in RLGPT_HOME; what a worker would have written."""
    made = folder.prepare(ident)
    base = sqlite3.connect(made.staging / folder.DATABASE)
    with contextlib.closing(base):
        schema.create(base)
        insert(base, rows, texts)
        base.commit()
    return made.publish().path


def insert(base: sqlite3.Connection, rows: Iterable[tuple[str, Mapping[str, Any]]], texts: Mapping[str, str]) -> None:
    press = zstandard.ZstdCompressor(level=1)
    for table, row in rows:
        schema.insert(base, Encoded(table, dict(row)))
    for name, body in texts.items():
        base.execute(
            "INSERT OR IGNORE INTO text (hash, body) VALUES (?, ?)",
            (name, press.compress(body.encode("utf-8", "replace"))),
        )


def append(place: Path, rows: Iterable[tuple[str, Mapping[str, Any]]], texts: Mapping[str, str]) -> None:
    """More rows to a session, as its worker would."""
    base = sqlite3.connect(place / folder.DATABASE)
    with contextlib.closing(base):
        insert(base, rows, texts)
        base.commit()

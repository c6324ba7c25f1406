"""For tests of copies: what two folders must have in common, and bundles as folders."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlgpt.store import query, soundness
from rlgpt.store.folder import SessionFolder

ROOT = Path(__file__).parents[2]
BUNDLES = sorted((ROOT / "tests" / "sessions").glob("*.rlgpt"))
SAMPLE = 2


def _of_the_evidence() -> Iterator[Any]:
    """Of an experiment with many sessions a part, spread over its arms and seeds; all of them where a test is slow."""
    for folder in sorted(path for path in (ROOT / "evidence").iterdir() if path.is_dir()):
        bundles = sorted(folder.glob("*.rlgpt"))
        part = bundles[:: -(-len(bundles) // SAMPLE)]
        yield pytest.param(part, id=folder.name)
        if len(part) < len(bundles):
            yield pytest.param(bundles, id=f"{folder.name}-all", marks=pytest.mark.slow)


EVIDENCE = list(_of_the_evidence())
"""Parameters of a test: the bundles of each experiment."""


def unpacked(bundle: Path, where: Path) -> SessionFolder:
    """As it was packed: nothing is checked or upgraded."""
    with zipfile.ZipFile(bundle) as archive:
        folder = where / json.loads(archive.read("manifest.json"))["id"]
        (folder / "artifacts").mkdir(parents=True)
        archive.extractall(folder, [name for name in archive.namelist() if name != "manifest.json"])
    return SessionFolder(folder)


def everything(folder: Path, upto: int = 2**62) -> dict[str, Any]:
    """The raw values of all tables, with their types; texts and files too. Rows up to a number."""
    with contextlib.closing(sqlite3.connect(folder / "session.db")) as base:
        found: dict[str, Any] = {}
        for name, table in query.every(base).items():
            columns = sorted(table.columns)
            names = ", ".join(query.quoted(column) for column in columns)
            where = f"WHERE seq <= {upto}" if "seq" in columns else ""
            rows = base.execute(f"SELECT {names} FROM {query.quoted(name)} {where}").fetchall()
            found[name] = sorted(map(repr, rows))
        found["schema"] = soundness.shape(base)
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "artifacts").iterdir()}


def change(database: Path, statement: str) -> None:
    """What the guards of a session forbid and no import would let in: a store written before there was that check."""
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as base:
        guards = base.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            base.execute(f"DROP TRIGGER {name}")
        base.execute(statement)
        for _, made in guards:
            base.execute(made)

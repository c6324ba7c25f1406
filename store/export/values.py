"""CSV: a folder with one file a table, for spreadsheets and notebooks. JSON columns stay JSON, bytes are counted."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

from rlgpt.store.atomic import new_folder
from rlgpt.store.folder import Place
from rlgpt.store.reader import Reader

PIECE = 5000
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export_csv(place: Place, target: Path) -> Path:
    """Write the folder `target`, whole or not at all. A cell never begins like a formula: it gets a quote mark."""
    with new_folder(target) as folder, Reader(place) as reader:
        for table in reader.tables():
            _table(reader, table, folder / f"{table}.csv")
        with _open(folder / "text.csv") as file:
            writer = csv.writer(file)
            writer.writerow(["hash", "text"])
            writer.writerows([name, cell(reader.text(name))] for name in reader.texts())
    return target


def _table(reader: Reader, table: str, path: Path) -> None:
    with _open(path) as file:
        writer = csv.writer(file)
        writer.writerow(reader.columns(table))
        seq = 0
        while rows := reader.rows(table, after_seq=seq, limit=PIECE):
            writer.writerows([cell(value) for value in row.values()] for row in rows)
            seq = rows[-1]["seq"]


def cell(value: Any) -> Any:
    """What a spreadsheet takes as mere text or number."""
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        plain = value.replace("\x00", "")
        return f"'{plain}" if plain.startswith(_FORMULA) else plain
    return value


def _open(path: Path) -> Any:
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL | os.O_CLOEXEC, 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8", newline="")

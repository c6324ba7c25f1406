"""All rows of a session as JSON lines, or as one CSV file per table."""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlgpt.store.reader import Reader

CHUNK = 1000
HASHES = ("source_hash", "request_hash", "reply_hash")
"""Columns that name a text; the JSON lines carry each text once."""


def json_lines(reader: Reader) -> Iterator[str]:
    """{"table": ..., columns...} in order of seq; a text that a row names comes before the row."""
    told: set[str] = set()
    for table, row in _rows(reader):
        for column in HASHES:
            name = row.get(column)
            if name and name not in told:
                told.add(name)
                yield json.dumps({"table": "text", "hash": name, "text": reader.text(name)})
        yield json.dumps({"table": table, **{key: _plain(value) for key, value in row.items()}})


def write_json_lines(reader: Reader, target: Path) -> None:
    with target.open("w", encoding="utf-8") as file:
        for line in json_lines(reader):
            file.write(line + "\n")


def write_csv(reader: Reader, folder: Path) -> list[Path]:
    """<table>.csv for every table with rows; nested values are JSON, bytes are base64. Returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, Any] = {}
    writers: dict[str, Any] = {}
    try:
        for table, row in _rows(reader):
            if table not in writers:
                files[table] = (folder / f"{table}.csv").open("w", encoding="utf-8", newline="")
                writers[table] = csv.writer(files[table])
                writers[table].writerow(row)
            writers[table].writerow([_cell(value) for value in row.values()])
    finally:
        for file in files.values():
            file.close()
    return [folder / f"{table}.csv" for table in files]


def _rows(reader: Reader) -> Iterator[tuple[str, dict[str, Any]]]:
    seq = 0
    while rows := reader.changes_since(seq, CHUNK):
        yield from rows
        seq = rows[-1][1]["seq"]


def _plain(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _cell(value: Any) -> Any:
    """A cell that a spreadsheet takes as text, whatever a model wrote into it (no formula)."""
    if isinstance(value, (dict, list)):
        value = json.dumps(value)
    value = _plain(value)
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value

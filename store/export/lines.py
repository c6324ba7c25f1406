"""JSON lines: a head, every row in order, the texts and the commands, and how many lines that is. For tools, and to
import.

{"format": "rlgpt-jsonl-1", "id": ..., "schema": ..., "counted": true}
{"table": "plan", "row": {"seq": 7, ...}}          bytes as base64
{"table": "text", "row": {"hash": ..., "text": ...}}
{"lines": 3}                                       before this one; else the file was cut off
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlgpt.store import foreign, query, revision
from rlgpt.store.artifacts import digest
from rlgpt.store.atomic import new_file
from rlgpt.store.errors import BadBundle, BadPlace
from rlgpt.store.folder import DATABASE, ID, Place, SessionFolder, prepare, root
from rlgpt.store.plain import is_plain
from rlgpt.store.reader import Reader
from rlgpt.store.row_types import SessionRow
from rlgpt.store.soundness import check_database
from rlgpt.store.sqlite_errors import is_full

FORMAT = "rlgpt-jsonl-1"
LONGEST = 64_000_000
"""Characters of one line."""
PIECE = 5000


def export_lines(place: Place, target: Path) -> Path:
    """Write to the file `target`, whole or not at all. Raises FileExistsError."""
    with (
        new_file(target, must_be_new=True) as partial,
        partial.open("w", encoding="utf-8", newline="\n") as file,
        Reader(place) as reader,
    ):
        count = 0
        for count, line in enumerate(lines(reader), 1):  # noqa: B007 - used behind the loop
            file.write(_written(line))
        file.write(_written({"lines": count}))
    return target


def _written(line: Mapping[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"


def lines(reader: Reader) -> Iterator[dict[str, Any]]:
    """The session as the objects of its lines, without the last, which counts them."""
    session_id = reader.rows(SessionRow, columns=["session_id"])[0]["session_id"]  # a copied folder may be called else
    yield {"format": FORMAT, "id": session_id, "schema": revision.REVISION, "counted": True}
    seq = 0
    while rows := reader.changes_since(seq, PIECE):
        for table, row in rows:
            yield {"table": table, "row": {name: _out(value) for name, value in row.items()}}
        seq = rows[-1][1]["seq"]
    for name in reader.texts():
        yield {"table": "text", "row": {"hash": name, "text": reader.text(name)}}
    for command in reader.commands():
        yield {"table": "command", "row": {k: v for k, v in command.items() if k != "rowid"}}


def import_lines(source: Path) -> SessionFolder:
    """A session of this store again, without its checkpoints. Raises AlreadyThere, BadBundle, BadPlace."""
    try:
        with source.open(encoding="utf-8") as file:
            objects = _objects(source, file)
            head = next(objects, None) or {}
            session_id, schema = _head(source, head)
            if head.get("counted"):  # exports of earlier versions are not
                objects = _counted(source, objects)
            staged = prepare(session_id)
            try:
                _fill(staged.staging / DATABASE, objects, schema)
                check_database(staged.staging / DATABASE, session_id)
                foreign.mark(staged.staging)
                return staged.publish()
            except BaseException:
                staged.drop()
                raise
    except sqlite3.Error as error:
        raise BadPlace(f"cannot make a session in {root()}: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadBundle(f"{source} cannot be read: {error}") from error


def _objects(source: Path, file: Any) -> Iterator[Mapping[str, Any]]:
    number = 0
    while line := file.readline(LONGEST):
        number += 1
        try:
            parsed = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadBundle(f"line {number} of {source} is no JSON, or too long: {error}") from error
        if not isinstance(parsed, dict):
            raise BadBundle(f"line {number} of {source} is no object")
        if not is_plain(parsed):
            raise BadBundle(f"line {number} of {source} holds what no row can: an infinite number, or a broken text")
        yield parsed


def _counted(source: Path, objects: Iterator[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The lines between the head and the last. Raises BadBundle where some of them are missing."""
    number = 1
    for found in objects:
        if "lines" in found:
            if found["lines"] != number or next(objects, None) is not None:
                raise BadBundle(f"{source} has not the lines that it was written with")
            return
        number += 1
        yield found
    raise BadBundle(f"{source} is cut off: the line that counts the others is missing")


def _head(source: Path, head: Mapping[str, Any]) -> tuple[str, str]:
    """(session id, schema)."""
    if head.get("format") != FORMAT or not ID.match(str(head.get("id"))):
        raise BadBundle(f"{source} is no exported session: its first line is not that of {FORMAT}")
    if head.get("schema") not in revision.REVISIONS:
        readable = f"{revision.REVISIONS[0]} to {revision.REVISION}"
        raise BadBundle(f"{source} has schema {head.get('schema')!r:.20}, this rlgpt reads {readable}")
    return str(head["id"]), str(head["schema"])


def _fill(database: Path, objects: Iterator[Mapping[str, Any]], revision: str) -> None:
    import zstandard  # late, like SQLAlchemy: for importing only

    from rlgpt.store import schema
    from rlgpt.store.rows import Encoded

    compressor = zstandard.ZstdCompressor(level=3)
    with contextlib.closing(sqlite3.connect(database)) as base:
        schema.create(base, revision)
        tables = query.every(base)
        for found in objects:
            table, row = tables.get(str(found.get("table"))), found.get("row")
            if table is None or not isinstance(row, dict) or table.name == "alembic_version":
                raise BadBundle(f"a line names no table: {str(found)[:80]!r}")
            if table.name == "text":
                row = _text(row, compressor)
            elif set(row) != set(table.columns):
                raise BadBundle(f"a row of {table.name} has not its columns: {sorted(row)!r:.120}")
            kinds = dict(zip(table.columns, table.kinds, strict=True))
            values = {name: _in(value, kinds[name]) for name, value in row.items()}
            try:
                schema.insert(base, Encoded(table.name, values))
            except (sqlite3.Error, OverflowError, UnicodeEncodeError) as error:
                if is_full(error):
                    raise  # says nothing of the row
                raise BadBundle(f"a row of {table.name} cannot be stored: {error}") from error
        base.commit()


def _text(row: Mapping[str, Any], compressor: Any) -> dict[str, Any]:
    body = row.get("text")
    if (
        set(row) != {"hash", "text"}
        or not isinstance(body, str)
        or digest(body.encode("utf-8", "replace")) != row["hash"]
    ):
        raise BadBundle(f"the text {row.get('hash')!r:.40} is not what its name says")
    return {"hash": row["hash"], "body": compressor.compress(body.encode())}


def _out(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _in(value: Any, kind: str) -> Any:
    if kind != "BLOB" or value is None or isinstance(value, bytes):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise BadBundle(f"bytes are not base64: {error}") from error

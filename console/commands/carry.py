"""`export` and `import`: sessions to and from files."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rlgpt.console.commands import output
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.words import Json, Session
from rlgpt.store import bundle
from rlgpt.store.folder import SessionFolder, find
from rlgpt.store.reader import Reader


class Format(StrEnum):
    bundle = "bundle"
    evidence = "evidence"
    jsonl = "jsonl"
    csv = "csv"
    tensorboard = "tensorboard"
    html = "html"


ENDINGS = {
    Format.bundle: ".rlgpt",
    Format.evidence: ".evidence.rlgpt",
    Format.jsonl: ".jsonl",
    Format.csv: "-csv",
    Format.tensorboard: "-tensorboard",
    Format.html: ".html",
}
FOLDERS = (Format.csv, Format.tensorboard)


def register(app: typer.Typer) -> None:
    app.command()(export)
    app.command("import")(import_)


def export(
    session: Session,
    format: Annotated[
        Format,
        typer.Option(
            help="bundle: all of it, importable. evidence: a small bundle without frames, prompts and checkpoints. "
            "jsonl, csv: rows. tensorboard: curves. html: a report."
        ),
    ] = Format.bundle,
    target: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file; for csv and tensorboard a folder.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a session to a file."""
    folder = find(session)
    target = target or Path(f"{folder.id}{ENDINGS[format]}")
    if target.is_dir() and format not in FOLDERS:
        target = target / f"{folder.id}{ENDINGS[format]}"
    try:
        written = _write(folder, format, target)
    except OSError as error:
        raise Failure(f"{target} cannot be written: {error.strerror or error}", Exit.UNAVAILABLE) from error
    if json:
        output.document({"session": folder.id, "format": format.value, "path": str(written)})
    else:
        output.say(str(written))


def import_(
    file: Annotated[Path, typer.Argument(help="A bundle that `rlgpt export` wrote.")], json: Json = False
) -> None:
    """Make a bundle's session one of this store, after checking every part of it."""
    if not file.is_file():
        raise Failure(f"there is no file {file}.", Exit.NOT_FOUND)
    made = bundle.import_bundle(file)
    if json:
        output.document({"id": made.id, "name": made.name})
    else:
        output.say(f"{made.id} ({made.name}) is in the store")


def _write(folder: SessionFolder, format: Format, target: Path) -> Path:
    if format in (Format.bundle, Format.evidence):
        return bundle.export_bundle(folder, target, evidence=format is Format.evidence)
    from rlgpt.console.exports import report, rows, tensorboard

    with Reader(folder) as reader:
        if format is Format.jsonl:
            rows.write_json_lines(reader, target)
        elif format is Format.csv:
            rows.write_csv(reader, target)
        elif format is Format.tensorboard:
            return tensorboard.write(reader, target)
        else:
            target.write_text(report.page(reader), encoding="utf-8")
    return target

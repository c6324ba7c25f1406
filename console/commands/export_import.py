"""`export` and `import`: sessions to and from files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rlgpt.console.commands import output, piped
from rlgpt.console.commands.elsewhere import end_with
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.words import Json, Session, path_from
from rlgpt.store.catalog import find
from rlgpt.store.errors import StoreError

FOLDERS = ("csv", "tensorboard")
FORMATS = ("bundle", "evidence", "jsonl", *FOLDERS)
ABOUT = (
    "bundle: all of it, importable; evidence: at most 1 MB, without frames, prompts and checkpoints; jsonl, csv: "
    "rows; tensorboard: curves. `rlgpt report` writes a page."
)


def register(app: typer.Typer) -> None:
    app.command()(export)
    app.command("import")(import_)


def export(
    session: Session,
    format: Annotated[str, typer.Option(help=ABOUT, autocompletion=lambda: list(FORMATS))] = "bundle",
    target: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", parser=path_from, help="A file, - is standard output; for csv and tensorboard a folder."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write a session to a file, as it is now."""
    from rlgpt.store.export import export as write

    if format not in FORMATS:
        raise Failure(f"there is no format {format!r}; there are {', '.join(FORMATS)}.", Exit.USAGE)
    folder = find(session)
    if piped.is_standard_output(target, json):
        if format in FOLDERS:
            raise Failure(f"{format} is a folder of files: name it with --output.", Exit.USAGE)
        piped.write_to_standard_output(lambda path: write(folder, format, path))
        return
    written = target
    if target and piped.is_device(target) and format not in FOLDERS:
        piped.write_to_device(lambda path: write(folder, format, path), target)
    else:
        written = write(folder, format, target)
    if json:
        output.document({"session": folder.id, "format": format, "path": str(written)})
    elif not piped.is_device(written):  # it may be standard output
        output.say(str(written))


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Bundles or files of JSON lines that `rlgpt export` wrote."),
    ],
    json: Json = False,
) -> None:
    """Make exported sessions some of this store, after checking every part of them. What refuses one does not keep the
    others from being imported."""
    from rlgpt.store.export import import_ as read

    for file in files:
        if not file.is_file():
            there = file.exists()
            raise Failure(f"{file} is no regular file." if there else f"there is no file {file}.", Exit.USAGE)
    results: list[dict[str, str | None]] = []
    refused: list[StoreError] = []
    for file in files:
        try:
            session = read(file)
        except StoreError as error:
            results.append({"file": str(file), "id": None, "name": None, "error": str(error)})
            named = len(files) == 1 or str(file) in str(error)
            refused.append(error if named else type(error)(f"{file}: {error}"))
            continue
        results.append({"file": str(file), "id": session.id, "name": session.name, "error": None})
        if not json:
            output.say(f"{session.id} ({session.name}) is in the store")
    if json and len(files) > 1:
        output.document({"sessions": results})
    elif json and not refused:
        output.document({"id": results[0]["id"], "name": results[0]["name"]})
    end_with(refused, len(files) > 1)

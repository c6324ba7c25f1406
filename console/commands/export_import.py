"""`export` and `import`: sessions to and from files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rlgpt.console.commands import output, piped
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.words import Json, Session, path_from
from rlgpt.store.catalog import find

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
    file: Annotated[Path, typer.Argument(help="A bundle or a file of JSON lines that `rlgpt export` wrote.")],
    json: Json = False,
) -> None:
    """Make an exported session one of this store, after checking every part of it."""
    from rlgpt.store.export import import_ as read

    if not file.is_file():
        there = file.exists()
        raise Failure(f"{file} is no regular file." if there else f"there is no file {file}.", Exit.USAGE)
    session = read(file)
    if json:
        output.document({"id": session.id, "name": session.name})
    else:
        output.say(f"{session.id} ({session.name}) is in the store")

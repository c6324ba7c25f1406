"""`report`: one HTML page of a session, for people who were not there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rlgpt.console.commands import output, piped
from rlgpt.console.commands.insight import At, moment_of
from rlgpt.console.commands.words import Json, Session, path_from


def register(app: typer.Typer) -> None:
    app.command()(report)


def report(
    session: Session,
    target: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            parser=path_from,
            help="The file to write; - is standard output.",
            show_default="ID-report.html",
        ),
    ] = None,
    at: At = None,
    json: Json = False,
) -> None:
    """Write one self-contained HTML page: goal, funnel, plans, verdicts, curves, failing episodes, code and cost."""
    from rlgpt.console.report.file import file_name, write_page  # late: numpy comes with it

    if piped.is_standard_output(target, json):
        with moment_of(session, at) as moment:
            piped.write_to_standard_output(lambda path: write_page(moment, path))
        return
    with moment_of(session, at) as moment:
        ident = str(moment.history.session["session_id"])
        path = target or Path(file_name(ident))
        write_page(moment, path)
    if json:
        output.document({"session": ident, "path": str(path)})
    else:
        output.say(str(path))

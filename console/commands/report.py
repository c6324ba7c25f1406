"""`report`: one HTML page of a session, for people who were not there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rlgpt.console.commands import output
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.insight import At, moment_of
from rlgpt.console.commands.words import Json, Session
from rlgpt.console.view.moment import Moment


def register(app: typer.Typer) -> None:
    app.command()(report)


def report(
    session: Session,
    target: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write.", show_default="ID-report.html")
    ] = None,
    at: At = None,
    json: Json = False,
) -> None:
    """Write one self-contained HTML page: goal, funnel, plans, verdicts, curves, failing episodes, code and cost."""
    with moment_of(session, at) as moment:
        ident = str(moment.history.session["session_id"])
        path = target or Path(file_name(ident))
        write_page(moment, path)
    if json:
        output.document({"session": ident, "path": str(path)})
    else:
        output.say(str(path))


def file_name(ident: str) -> str:
    return f"{ident}-report.html"


def write_page(moment: Moment, path: Path) -> None:
    """Raises Failure, also where a file is already there."""
    from rlgpt.console.report.document import page
    from rlgpt.store.atomic import new_file

    if path.exists():
        raise Failure(f"{path} is already there.", Exit.UNAVAILABLE)
    text = page(moment)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(path) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror or error}", Exit.UNAVAILABLE) from error

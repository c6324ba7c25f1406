"""The report as a new file."""

from __future__ import annotations

from pathlib import Path

from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.report.document import page
from rlgpt.console.view.moment import Moment
from rlgpt.store.atomic import new_file


def file_name(ident: str) -> str:
    return f"{ident}-report.html"


def write_page(moment: Moment, path: Path) -> None:
    """Raises Failure, also where a file is already there."""
    if path.exists():
        raise Failure(f"{path} is already there.", Exit.REFUSED)
    text = page(moment)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(path) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror or error}", Exit.UNAVAILABLE) from error

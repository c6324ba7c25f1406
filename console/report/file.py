"""The report as a new file."""

from __future__ import annotations

from pathlib import Path

from rlgpt.console.commands.files import new_file
from rlgpt.console.report.document import page
from rlgpt.console.view.moment import Moment


def file_name(ident: str) -> str:
    return f"{ident}-report.html"


def write_page(moment: Moment, path: Path) -> None:
    """Raises Failure, also where a file is already there."""
    with new_file(path) as partial:
        partial.write_text(page(moment), encoding="utf-8")

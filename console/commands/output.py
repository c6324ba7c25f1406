"""What the command line prints: text for people, JSON for programs (a document, or an object a line)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rlgpt.console.sanitise import clean
from rlgpt.console.view.cells import cell_width


def say(text: str = "") -> None:
    """One line for a person; whatever a model or a world wrote into it is made harmless."""
    print(clean(text), flush=True)


def note(text: str) -> None:
    """One line beside the result: progress, hints."""
    print(clean(text), file=sys.stderr, flush=True)


def document(value: Any) -> None:
    """The whole answer of a command with --json. ASCII only: escapes cannot reach the terminal."""
    print(json.dumps(value, indent=2, default=str), flush=True)


def record(value: Any) -> None:
    """One object of a stream with --json."""
    print(json.dumps(value, separators=(",", ":"), default=str), flush=True)


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as their widest cell; numbers to the right."""
    cells = [[clean("" if cell is None else str(cell), 200) for cell in row] for row in rows]
    numeric = [bool(cells) and all(_is_number(row[i]) for row in cells) for i in range(len(titles))]
    widths = [max(cell_width(row[i]) for row in [list(titles), *cells]) for i in range(len(titles))]
    for row in [list(titles), *cells]:
        parts = [
            " " * (width - cell_width(cell)) + cell if right else cell + " " * (width - cell_width(cell))
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        print("  ".join(parts).rstrip(), flush=True)


def _is_number(cell: str) -> bool:
    return not cell or cell.lstrip("-$").replace(",", "").replace(".", "").replace("%", "").isdigit()

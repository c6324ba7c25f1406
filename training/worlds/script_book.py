"""Reading a script book: one folder a script, one file a version, `1.py` the shortest.

The files are the sources of coded actions, read as text: they are never imported, because only the action host runs
such code, and the functions they call are the world's library there. A first line `# parts: NAME, NAME` puts the
files `parts/NAME.py` in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rlgpt.training.worlds.protocol import Script

PARTS = "# parts: "


def read_versions(book: Path, name: str) -> tuple[str, ...]:
    """The sources of one script, by version."""
    files = sorted((book / name).glob("*.py"), key=lambda file: int(file.stem))
    return tuple(_source(book, file.read_text(encoding="utf-8")) for file in files)


def first_tries(scripts: Sequence[Script]) -> tuple[Script, ...]:
    """The scripts with their first version and no repairs: code as it is before anything failed."""
    return tuple(replace(script, sources=script.sources[:1]) for script in scripts)


def _source(book: Path, text: str) -> str:
    if not text.startswith(PARTS):
        return text
    head, _, body = text.partition("\n")
    parts = [(book / "parts" / f"{part}.py").read_text(encoding="utf-8") for part in head[len(PARTS) :].split(", ")]
    return "\n".join([*parts, body.lstrip("\n")])

"""Reads a script book: a folder for each script with a file for each version, `1.py` the shortest.

The files are the sources of coded actions and are read as text. They are never imported, because only the action host
runs such code, and the functions they call are those of the world's library there. A first line `# parts: NAME, NAME`
inserts the files `parts/NAME.py` before the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rlgpt.training.worlds.protocol import Script

PARTS = "# parts: "


def read_versions(book: Path, name: str) -> tuple[str, ...]:
    """The sources of one script, version 1 first."""
    files = sorted((book / name).glob("*.py"), key=lambda file: int(file.stem))
    return tuple(_source(book, file.read_text(encoding="utf-8")) for file in files)


def first_tries(scripts: Sequence[Script]) -> tuple[Script, ...]:
    """The scripts with their first version only: the code before anything has failed."""
    return tuple(replace(script, sources=script.sources[:1]) for script in scripts)


def entries(scripts: Sequence[Script]) -> list[dict[str, Any]]:
    """The scripts as a world sheet has them; a trigger only where there is one."""
    return [{name: value for name, value in asdict(s).items() if name != "trigger" or value} for s in scripts]


def _source(book: Path, text: str) -> str:
    if not text.startswith(PARTS):
        return text
    head, _, body = text.partition("\n")
    parts = [(book / "parts" / f"{part}.py").read_text(encoding="utf-8") for part in head[len(PARTS) :].split(", ")]
    return "\n".join([*parts, body.lstrip("\n")])

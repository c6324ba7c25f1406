"""Files of a session by the hash of their content. Standard library only."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from rlgpt.store import atomic
from rlgpt.store.errors import StoreError

_NAME = re.compile(r"[0-9a-f]{32}\Z")


def digest(body: bytes) -> str:
    """blake2b-16 as hex: the name of texts and files everywhere."""
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def put(folder: Path, body: bytes) -> str:
    """Returns the hash. The file is there whole, or not at all. Raises OSError."""
    name = digest(body)
    if not (folder / name).exists():
        atomic.write_bytes(folder / name, body, durable=True)
    return name


def get(folder: Path, name: str) -> bytes:
    """Raises StoreError if it is not there or not what its name says."""
    if not _NAME.match(name):
        raise StoreError(f"{name!r:.80} is not the hash of a file")
    try:
        body = (folder / name).read_bytes()
    except FileNotFoundError as error:
        raise StoreError(f"the file {name} is no longer kept in {folder}") from error
    if digest(body) != name:
        raise StoreError(f"the file {name} in {folder} is damaged: its content is not what its name says")
    return body


def discard(folder: Path, name: str) -> None:
    if _NAME.match(name):
        (folder / name).unlink(missing_ok=True)

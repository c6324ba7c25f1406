"""Files of a session by the hash of their content. Standard library only."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from rlgpt.store.errors import StoreError

_NAME = re.compile(r"[0-9a-f]{32}\Z")


def digest(body: bytes) -> str:
    """blake2b-16 as hex: the name of texts and files everywhere."""
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def put(folder: Path, body: bytes) -> str:
    """Returns the hash. The file is there whole, or not at all. Raises OSError."""
    name = digest(body)
    final = folder / name
    if final.exists():
        return name
    partial = folder / f".{name}.{os.getpid()}"
    try:
        descriptor = os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(final)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    directory = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
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

"""Files and texts of a session by the hash of their content."""

from __future__ import annotations

import hashlib
import re
from io import BytesIO
from pathlib import Path

from rlgpt.store import atomic
from rlgpt.store.errors import Damaged, StoreError

_NAME = re.compile(r"[0-9a-f]{32}\Z")
LONGEST_TEXT = 100_000_000
"""Bytes of a text."""


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


def unpacked(body: bytes) -> bytes:
    """A text's bytes from the body of its row. Never more than a text may have is unpacked: the size that the body
    claims is not believed. Raises Damaged."""
    import zstandard  # late: the first frame needs no text

    try:
        with zstandard.ZstdDecompressor().stream_reader(BytesIO(body)) as reader:
            text = reader.read(LONGEST_TEXT + 1)
    except zstandard.ZstdError as error:
        raise Damaged(f"it cannot be unpacked: {error}") from error
    if len(text) > LONGEST_TEXT:
        raise Damaged("it is longer than any text")
    return text


def unpacked_text(name: str, body: bytes) -> str:
    """The text of this hash from the body of its row. Raises Damaged."""
    try:
        text = unpacked(body)
        if digest(text) != name:
            raise Damaged("its content is not what its name says")
        return text.decode()
    except (Damaged, UnicodeDecodeError) as error:
        raise Damaged(f"the text {name:.80} is damaged: {error}") from error

"""Rows straight from the pages of an SQLite file, for a database that SQLite itself cannot read any more.

Only the leaves of tables are looked at (https://www.sqlite.org/fileformat2.html, 1.6 and 2.1): a damaged root,
schema or free list then costs no row. What cannot be decoded is left out. Standard library only.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

LEAF = 0x0D
_OTHERS = (0, 2, 5, 10)
"""First bytes of overflow pages and of the b-tree pages beside leaves of tables."""
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Serial type -> bytes."""
Value = int | float | str | bytes | None


class Stored(NamedTuple):
    rowid: int
    values: tuple[Value, ...]
    """As stored: the column that is the rowid is NULL, and a real may be a whole number."""
    orderly: bool
    """Its rowid lies between those beside it, as those of a leaf do."""
    pages: tuple[int, ...]
    """Where it lies, from 0."""


class Leaf(NamedTuple):
    page: int
    cells: tuple[Stored | None, ...]
    """In order; None where nothing can be decoded."""
    is_full: bool
    """Its cells fill it as its header says, so none is missing at its end."""


def stored_rows(file: bytes) -> list[Stored]:
    """All rows of all tables."""
    return [cell for leaf in leaves(file) for cell in leaf.cells if cell is not None]


def leaves(file: bytes) -> list[Leaf]:
    """The leaves of all tables. The size of a page stands in the header, which may be what was damaged."""
    return list(_leaves(file, page_size(file)))


@lru_cache(maxsize=1)
def page_size(file: bytes) -> int:
    """That of which there are the most rows."""
    size_field = int.from_bytes(file[16:18], "big")
    sizes = {4096, 65536 if size_field == 1 else size_field}
    return max(
        (size for size in sorted(sizes) if size >= 512 and size & (size - 1) == 0),
        key=lambda size: sum(cell is not None for leaf in _leaves(file, size) for cell in leaf.cells),
    )


def _leaves(file: bytes, size: int) -> Iterator[Leaf]:
    for number in range(len(file) // size):
        kind = file[header(number, size)]
        if kind == LEAF:
            yield leaf(file, size, number)
        elif kind not in _OTHERS:  # its first byte is damaged: a leaf, if the rest of it is one
            read = leaf(file, size, number)
            if read.cells and read.is_full and None not in read.cells:
                yield read


def header(number: int, size: int) -> int:
    """Where the header of a page begins."""
    return number * size + (100 if number == 0 else 0)


def places(file: bytes, size: int, number: int, width: int) -> list[int]:
    """Where the cells of a page are, within it; its header has `width` bytes."""
    head = header(number, size)
    count = int.from_bytes(file[head + 3 : head + 5], "big")
    first = head + width
    return [int.from_bytes(file[at : at + 2], "big") for at in range(first, min(first + 2 * count, len(file)), 2)]


def leaf(file: bytes, size: int, number: int) -> Leaf:
    """The page read as a leaf, whatever its first byte says."""
    head = header(number, size)
    starts = places(file, size, number, 8)
    cells = [_cell(file, size, number, place) if 8 <= place < size else None for place in starts]
    rowids = [-(2**63), *(cell.rowid for cell in cells if cell), 2**63]
    orders = iter(before < rowid < after for before, rowid, after in zip(rowids, rowids[1:], rowids[2:], strict=False))
    read = tuple(cell and cell._replace(orderly=next(orders)) for cell in cells)
    lowest = int.from_bytes(file[head + 5 : head + 7], "big") or 65536
    return Leaf(number, read, lowest == min(starts, default=size))


def _cell(file: bytes, size: int, number: int, place: int) -> Stored | None:
    start = number * size
    try:
        length, at = varint(file, start + place)
        rowid, at = varint(file, at)
        body, pages = _payload(file, size, number, at, length)
        return Stored(rowid - (1 << 64 if rowid >> 63 else 0), _record(body), True, (number, *pages))
    except (ValueError, IndexError, struct.error):
        return None


def _payload(file: bytes, size: int, number: int, at: int, length: int) -> tuple[bytes, list[int]]:
    if not 0 < length <= len(file):
        raise ValueError("longer than the file")
    most, least = size - 35, (size - 12) * 32 // 255 - 23
    here = length
    if length > most:
        here = least + (length - least) % (size - 4)
        here = here if here <= most else least
    if at + here > (number + 1) * size:
        raise ValueError("beyond its page")
    parts, pages = [file[at : at + here]], []
    left, following = length - here, int.from_bytes(file[at + here : at + here + 4], "big")
    while left > 0:
        page = following - 1
        if page in pages or not 0 < page < len(file) // size:
            raise ValueError("no such page")
        pages.append(page)
        following = int.from_bytes(file[page * size : page * size + 4], "big")
        parts.append(file[page * size + 4 : page * size + 4 + min(left, size - 4)])
        left -= size - 4
    return b"".join(parts), pages


def _record(body: bytes) -> tuple[Value, ...]:
    length, at = varint(body, 0)
    kinds = []
    while at < length:
        kind, at = varint(body, at)
        kinds.append(kind)
    values: list[Value] = []
    for kind in kinds:
        if kind in (0, 8, 9):
            values.append({0: None, 8: 0, 9: 1}[kind])
            continue
        width = _INTEGERS.get(kind, 8 if kind == 7 else (kind - 12) // 2)
        piece = body[at : at + width]
        if len(piece) != width or kind in (10, 11):
            raise ValueError("no such value")
        at += width
        if kind in _INTEGERS:
            values.append(int.from_bytes(piece, "big", signed=True))
        elif kind == 7:
            values.append(struct.unpack(">d", piece)[0])
        else:
            values.append(piece.decode() if kind % 2 else piece)
    if at != len(body):
        raise ValueError("longer than its values")
    return tuple(values)


def varint(body: bytes, at: int) -> tuple[int, int]:
    value = 0
    for step in range(8):
        byte = body[at + step]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + step + 1
    return value << 8 | body[at + 8], at + 9

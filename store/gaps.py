"""Finds up to which row number a damaged session can have lost no row unnoticed.

Numbers of rows are consecutive, so a lost row leaves a gap; but so do frames that were pruned. What tells the two
apart are the pages of the file: a gap is a lost row only if a page that can have held it cannot be read. Pages above
the damaged one say where in its table its rows belong (https://www.sqlite.org/fileformat2.html, 1.6). Standard library
only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from rlgpt.store import pages
from rlgpt.store.pages import Leaf, Stored

_TABLE, _INDEX, _INDEX_LEAF, _OVERFLOW = 5, 2, 10, 0
"""First bytes of pages beside leaves of tables. An overflow page begins with a page number, below 2^24 here."""
NEVER = 2**62


def sure_upto(file: bytes, table_of: Callable[[Stored], str | None], sequenced: Collection[str]) -> int:
    """No row with a number up to this one is lost, unless `NEVER`: none at all. `table_of`: the table a row fits,
    None if none; `sequenced`: the tables whose rows have numbers."""
    return min(_Pages(file, table_of, sequenced).bounds(), default=NEVER)


@dataclass(frozen=True)
class _Above:
    """Where an interior page says that the rows of a page are."""

    page: int
    after: int | None
    """They follow this rowid; None: the page is the first one there."""


class _Pages:
    def __init__(self, file: bytes, table_of: Callable[[Stored], str | None], sequenced: Collection[str]) -> None:
        self.file, self.size = file, pages.page_size(file)
        self.table_of, self.sequenced = table_of, sequenced
        self.leaves = {leaf.page: leaf for leaf in pages.leaves(file)}
        self.above: dict[int, _Above] = {}
        self.suspects: list[int] = []
        for page in range(len(file) // self.size):
            if page not in self.leaves and not self._is_accounted_for(page):
                self.suspects.append(page)

    def bounds(self) -> Iterator[int]:
        """For everything that cannot be read and may have held rows: the number that those rows follow."""
        for page in self.suspects:
            if self._may_have_held_rows(page):
                yield self._after(page)
        for leaf in self.leaves.values():
            yield from self._lost_in(leaf)

    # ---- what a page is -------------------------------------------------------------------------------
    def _is_accounted_for(self, page: int) -> bool:
        """Whether a page that is no leaf of a table is sound, as far as that can be seen."""
        kind = self.file[pages.header(page, self.size)]
        if kind in (_TABLE, _INDEX):
            return self._read_interior(page, kind)
        if kind == _INDEX_LEAF:
            starts = pages.places(self.file, self.size, page, 8)
            return all(8 <= start < self.size for start in starts)
        return kind == _OVERFLOW or self._is_blank(page)

    def _is_blank(self, page: int) -> bool:
        """A table without rows: nothing behind the header."""
        return not any(self.file[pages.header(page, self.size) + 8 : (page + 1) * self.size])

    def _read_interior(self, page: int, kind: int) -> bool:
        head = pages.header(page, self.size)
        children, keys = [], []
        for start in pages.places(self.file, self.size, page, 12):
            at = page * self.size + start
            if not 12 <= start < self.size - 4:
                return False
            children.append(int.from_bytes(self.file[at : at + 4], "big") - 1)
            keys.append(pages.varint(self.file, at + 4)[0] if kind == _TABLE else 0)
        children.append(int.from_bytes(self.file[head + 8 : head + 12], "big") - 1)
        if not all(0 < child < len(self.file) // self.size for child in children):
            return False
        if len(set(children)) < len(children) or (kind == _TABLE and any(b <= a for a, b in pairwise(keys))):
            return False
        for child, after, upto in zip(children, [None, *keys], [*keys, NEVER], strict=True):
            cells = self.leaves[child].cells if child in self.leaves else ()
            rows = [cell.rowid for cell in cells if cell and cell.orderly]
            whole = len(rows) == len(cells)
            if kind == _TABLE and whole and any(not (after or -NEVER) < rowid <= upto for rowid in rows):
                return False
        self.above |= {child: _Above(page, key) for child, key in zip(children, [None, *keys], strict=True)}
        return True

    # ---- where its rows belong ------------------------------------------------------------------------
    @cached_property
    def _roots(self) -> dict[int, str]:
        """Root page -> its table, "" for an index. A row of the schema is (type, name, table, root page, SQL)."""
        names_by_page = {0: ""}
        for leaf in self.leaves.values():
            for cell in leaf.cells:
                if cell and len(cell.values) == 5 and isinstance(root := cell.values[3], int) and root > 0:
                    names_by_page[root - 1] = str(cell.values[1]) if cell.values[0] == "table" else ""
        return names_by_page

    @cached_property
    def _rows(self) -> dict[str, list[tuple[int, int]]]:
        """(rowid, page) by table."""
        places: dict[str, list[tuple[int, int]]] = {}
        for leaf in self.leaves.values():
            for cell in leaf.cells:
                if cell and cell.orderly and (table := self.table_of(cell)):
                    places.setdefault(table, []).append((cell.rowid, leaf.page))
        return places

    def _top(self, page: int) -> int:
        seen = {page}
        while page in self.above and self.above[page].page not in seen:
            page = self.above[page].page
            seen.add(page)
        return page

    def _may_have_held_rows(self, page: int) -> bool:
        top = self._top(page)
        table = self._roots.get(top)
        if table is None:
            return True
        if table not in self.sequenced:
            return False
        return top != page or not self._rows.get(table)  # a root above other pages holds no rows itself

    def _after(self, page: int) -> int:
        above = self.above.get(page)
        seen = {page}
        while above is not None and above.after is None and above.page not in seen:
            seen.add(above.page)
            above = self.above.get(above.page)
        return above.after or 0 if above is not None else 0

    def _lost_in(self, leaf: Leaf) -> Iterator[int]:
        """What the rows follow of which only the cells are left."""
        names = [self.table_of(cell) if cell and cell.orderly else None for cell in leaf.cells]
        named = {name for name in names if name}
        if (None not in names and leaf.is_full and len(named) <= 1) or self._is_blank(leaf.page):
            return
        if named and not named & set(self.sequenced):
            return
        if not named and not self._may_have_held_rows(leaf.page):
            return
        last = self._before(leaf, named)
        for cell, name in zip(leaf.cells, names, strict=True):
            if cell is None or name is None:
                yield last
            else:
                last = cell.rowid
        if not leaf.is_full:
            yield last

    def _before(self, leaf: Leaf, tables: Collection[str]) -> int:
        first = min((cell.rowid for cell in leaf.cells if cell and cell.orderly), default=0)
        earlier = [
            rowid for t in tables for rowid, page in self._rows.get(t, ()) if page != leaf.page and rowid < first
        ]
        return max([self._after(leaf.page), *earlier])

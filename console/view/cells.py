"""Terminal cells of text, by the width table that the painter uses too."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size


def cell_width(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def cut_cells(text: str, width: int) -> str:
    """The longest prefix of at most `width` cells."""
    if width <= 0:
        return ""
    if text.isascii():
        return text[:width]
    if cell_len(text) <= width:
        return text
    cut = set_cell_size(text, width)
    return cut if text.startswith(cut) else cut.rstrip(" ")

"""A widget that draws lines of spans: each different line is made into terminal cells once, then kept."""

from __future__ import annotations

from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from rlgpt.console.palette import Palette
from rlgpt.console.shell import shell_of
from rlgpt.console.view.cells import cell_width
from rlgpt.console.view.text import Line, fit, plain, width_of

KEPT = 2_000
"""Strips after which all are forgotten."""


class Painted(Widget):
    """`painted` is for use in `render_line`."""

    _ground: Style | None = None
    """What lies under every line; looked up once a paint at most, as that walks up the whole tree."""
    _palette: Palette | None = None
    _looked = False
    _strips: dict[tuple[Line, int, str], Strip]

    def render_lines(self, crop: Region) -> list[Strip]:
        self._looked = False
        return super().render_lines(crop)

    def _look(self) -> None:
        ground, palette = self.rich_style, self.palette
        if ground != self._ground or palette is not self._palette:
            self._ground, self._palette, self._strips = ground, palette, {}
        self._looked = True

    @property
    def palette(self) -> Palette:
        return shell_of(self).palette

    def painted(self, line: Line, width: int, extra: str = "") -> Strip:
        """`width` cells; `extra` lies under every style of the line and fills what is left of it."""
        if not self._looked:
            self._look()
        key = (line, width, extra)
        strips = self._strips.get(key)
        if strips is None:
            if len(self._strips) >= KEPT:
                self._strips.clear()
            fill = self.palette.style(extra) if extra else None
            is_cut = width_of(line) > width and cell_width(plain(line).rstrip()) > width  # blanks may be missing
            shown = fit(line, width) if is_cut else line
            strip = Strip(self.palette.segments(shown, extra)).adjust_cell_length(width, fill)
            strips = self._strips[key] = strip.apply_style(self._ground or Style.null())
        return strips

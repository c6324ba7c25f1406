"""A text area for Python whose colours are those of the code pane."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import TextArea

from rlgpt.console.shell import shell_of
from rlgpt.console.view import syntax
from rlgpt.console.view.text import Line, plain

MOST = 2_000
"""Lines that are coloured."""


class CodeArea(TextArea):
    _coloured: tuple[Line, ...] = ()

    def on_mount(self) -> None:
        self._colour()

    def on_text_area_changed(self) -> None:
        self._colour()

    def _colour(self) -> None:
        """In a thread; of several texts only the last is waited for."""
        source = self.text
        if self.document.line_count <= MOST:
            self.run_worker(lambda: self._colour_in_thread(source), thread=True, exclusive=True, exit_on_error=False)

    def _colour_in_thread(self, source: str) -> None:
        self.app.call_from_thread(self._take, tuple(syntax.coloured(source)))

    def _take(self, coloured: tuple[Line, ...]) -> None:
        self._coloured = coloured
        self.notify_style_update()
        self.refresh()

    def get_line(self, line_index: int) -> Text:
        """The line, coloured unless it is newer than its colours."""
        text = super().get_line(line_index)
        spans = self._coloured[line_index] if line_index < len(self._coloured) else ()
        if plain(spans) == text.plain:
            start = 0
            for span in spans:
                if span.style:
                    text.stylize(shell_of(self).palette.style(span.style), start, start + len(span.text))
                start += len(span.text)
        return text

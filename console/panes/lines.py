"""The list that most panes show: entries of lines with a cursor, a filter, a fixed head and its own scrolling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from rlgpt.console.keymap import bindings
from rlgpt.console.panes.painted import Painted
from rlgpt.console.view.text import Entry, Line, has_words, line, plain

LONG = 8
"""Lines of an entry from which only the first shows the cursor: it would flood the pane."""


class Lines(ScrollView, Painted, can_focus=True, inherit_bindings=False):
    """Draws prebuilt entries; a redraw touches only the visible lines. The scrolling keys of a ScrollView are not
    taken over: left and right belong to the screen."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list")
    follow = False
    """Whether the cursor stays at the end while it is there and the end is in sight (logs)."""
    cursor_shown = True

    class Chosen(Message):
        """Enter or a double click on an entry."""

        def __init__(self, pane: Lines, entry: Entry) -> None:
            super().__init__()
            self.pane, self.entry = pane, entry

    class Moved(Message):
        """The cursor stands on another entry."""

        def __init__(self, pane: Lines, entry: Entry | None) -> None:
            super().__init__()
            self.pane, self.entry = pane, entry

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, Lines.Moved) and message.pane is self.pane

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.entries: list[Entry] = []
        """After the filter."""
        self.filter = ""
        self.matching = 0
        """Entries that the filter leaves."""
        self.head: list[Line] = []
        self._all: list[Entry] = []
        self._starts: list[int] = []
        self._lines: list[tuple[int, Line]] = []
        self._cursor_key = ""
        self._cursor = -1
        self._drawn_at = Size(0, 0)
        self._end_seen = True
        """Whether the end is in sight, or was before there were new entries: the wheel leaves the cursor at the end."""

    # ---- content --------------------------------------------------------------------------------
    def set_entries(self, entries: Iterable[Entry], head: Sequence[Line] = ()) -> None:
        """Replace everything; the cursor stays on its key, or at the end when it followed the end."""
        at_end = self.follow and self._end_seen and self._cursor >= self._last_selectable()
        shown, fixed = list(entries), list(head)
        size = self.scrollable_content_region.size
        if shown == self._all and fixed == self.head and size == self._drawn_at:
            self._all = shown
            return
        before = self._picture()
        self._all, self.head, self._drawn_at = shown, fixed, size
        self._apply(at_end, before)

    def set_filter(self, text: str) -> None:
        before = self._picture()
        self.filter = text
        self._apply(False, before)

    @property
    def current(self) -> Entry | None:
        return self.entries[self._cursor] if 0 <= self._cursor < len(self.entries) else None

    @property
    def total(self) -> int:
        return len(self._all)

    def _apply(self, at_end: bool, before: list[tuple[Line, str]]) -> None:
        words = self.filter.split()
        self.entries = [e for e in self._all if not words or (e.selectable and has_words(e.search, self.filter))]
        self.matching = len(self.entries)
        if words and self._all and not self.entries:
            none = line((f"Nothing here has “{self.filter}”.", "dim"))
            self.entries = [Entry("nothing", (none,), selectable=False)]
        self._starts, self._lines = [], []
        for index, entry in enumerate(self.entries):
            self._starts.append(len(self._lines))
            self._lines += [(index, line) for line in entry.lines]
        place = next((i for i, e in enumerate(self.entries) if e.key == self._cursor_key), -1)
        if at_end or (self.follow and not self._cursor_key):
            place = self._last_selectable()
        elif place < 0:
            place = self._nearest(max(self._cursor, 0))
        self._cursor = place
        self._cursor_key = self.entries[place].key if 0 <= place < len(self.entries) else self._cursor_key
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._lines) + len(self.head))
        if at_end or (self.follow and self._end_seen and place == self._last_selectable()):
            self.scroll_end(animate=False, force=True)
        for y, (old, new) in enumerate(zip(before, self._picture(), strict=True)):
            if old != new:
                self.refresh(Region(0, y, self.size.width, 1))

    def _last_selectable(self) -> int:
        return next((i for i in range(len(self.entries) - 1, -1, -1) if self.entries[i].selectable), -1)

    def _nearest(self, start: int) -> int:
        forward = next((i for i in range(start, len(self.entries)) if self.entries[i].selectable), -1)
        return forward if forward >= 0 else self._last_selectable()

    # ---- the cursor -----------------------------------------------------------------------------
    def move_to(self, index: int, *, quietly: bool = False) -> None:
        """Move the cursor to an entry. With `quietly` no `Moved` is posted, because the operator did not move it."""
        if not 0 <= index < len(self.entries) or not self.entries[index].selectable:
            return
        before = self._cursor
        self._cursor, self._cursor_key = index, self.entries[index].key
        self._show_cursor()
        for changed in {before, index}:  # only these rows are painted again
            if 0 <= changed < len(self.entries):
                self.refresh_lines(self._starts[changed] + len(self.head), len(self.entries[changed].lines))
        if not quietly:
            self.post_message(self.Moved(self, self.current))

    def select(self, key: str) -> None:
        """Put the cursor on the entry with this key, if it is there."""
        for index, entry in enumerate(self.entries):
            if entry.key == key:
                self.move_to(index)
                return

    def _step(self, by: int) -> None:
        index = self._cursor
        while 0 <= index + by < len(self.entries):
            index += by
            if self.entries[index].selectable:
                self.move_to(index)
                return
        self.scroll_relative(y=by, animate=False)

    def _show_cursor(self) -> None:
        if self._cursor < 0:
            return
        top = self._starts[self._cursor] if self._cursor else 0
        height = len(self.entries[self._cursor].lines)
        region = Region(0, top, 1, min(height, max(self._room, 1)) + len(self.head))
        self.scroll_to_region(region, animate=False, force=True)

    def reveal(self) -> None:
        """Bring the entry under the cursor into sight, its beginning if it is longer than the pane."""
        self.call_after_refresh(self._show_cursor)

    @property
    def _room(self) -> int:
        return self.scrollable_content_region.height - len(self.head)

    def action_cursor_down(self) -> None:
        self._step(1)

    def action_cursor_up(self) -> None:
        self._step(-1)

    def action_page(self, pages: int) -> None:
        line = int(self.scroll_y) + pages * max(self._room - 1, 1)
        start = self._starts[self._cursor] if self._cursor >= 0 else 0
        target = min(max(start + pages * max(self._room - 1, 1), 0), max(len(self._lines) - 1, 0))
        if not any(entry.selectable for entry in self.entries):
            self.scroll_to(y=line, animate=False)
        elif self._lines:
            index = self._lines[target][0]
            self.move_to(
                self._nearest(index) if pages > 0 else index if self.entries[index].selectable else self._nearest(0)
            )

    def action_edge(self, end: bool) -> None:
        if any(entry.selectable for entry in self.entries):
            self.move_to(self._last_selectable() if end else self._nearest(0))
        if end:
            self.scroll_end(animate=False, force=True)
        else:
            self.scroll_home(animate=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "choose":
            return self.current is not None and self.current.selectable
        return super().check_action(action, parameters)

    def action_choose(self) -> None:
        if self.current:
            self.post_message(self.Chosen(self, self.current))

    def on_click(self, event: events.Click) -> None:
        index = self._entry_at(event.y)
        if index is not None and self.entries[index].selectable:
            again = index == self._cursor
            self.move_to(index)
            if event.chain == 2 or (again and event.chain == 1 and self.has_focus and event.ctrl):
                self.action_choose()

    def _entry_at(self, y: int) -> int | None:
        inside = y - self.gutter.top
        if not len(self.head) <= inside < self.scrollable_content_region.height:
            return None
        row = inside - len(self.head) + int(self.scroll_y)
        return self._lines[row][0] if 0 <= row < len(self._lines) else None

    # ---- drawing --------------------------------------------------------------------------------
    @property
    def width(self) -> int:
        """Cells for a line of content."""
        return max(self.scrollable_content_region.width, 8)

    def render_line(self, y: int) -> Strip:
        line, under = self._row(y)
        return self.painted(line, self.scrollable_content_region.width, under)

    def _row(self, y: int) -> tuple[Line, str]:
        """What a row of the pane shows, and the style under it."""
        if y < len(self.head):
            return self.head[y], ""
        row = y - len(self.head) + int(self.scroll_y)
        if row >= len(self._lines):
            return (), ""
        index, line = self._lines[row]
        long = len(self.entries[index].lines) > LONG and row > self._starts[index]
        if index == self._cursor and not long and self.cursor_shown and self.entries[index].selectable:
            return line, "row" if self.has_focus else "row_idle"
        return line, ""

    def _picture(self) -> list[tuple[Line, str]]:
        return [self._row(y) for y in range(self.size.height)]

    def seen(self) -> str:
        """The visible text."""
        return "\n".join(plain(shown) for shown, _ in self._picture())

    def on_resize(self, event: events.Resize) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._lines) + len(self.head))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        # Kept, because new entries and a new size move the end away before the pane has scrolled there.
        self._end_seen = self.is_vertical_scroll_end

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        # Textual hands the place on to the scroll bar only while it is shown (`ScrollView.watch_scroll_y`): one that
        # comes after the pane was scrolled to its end would stand at the top until the next scroll.
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def watch_has_focus(self, value: bool) -> None:
        super().watch_has_focus(value)
        self.refresh()

    def yank(self) -> str:
        """What `y` copies."""
        return self.current.yank if self.current else ""

    def _watch_theme(self, *_: Any) -> None:
        self.refresh()

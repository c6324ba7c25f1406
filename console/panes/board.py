"""The panes of the session screen on one board: placed by `view.layout`, resized by keys and by dragging borders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from textual import events
from textual.geometry import Region as Area
from textual.geometry import Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.message import Message
from textual.widget import Widget

from rlgpt.console.view import layout
from rlgpt.console.view.layout import Choices, Region, Variant


class _Tiles(Layout):
    name = "tiles"

    def __init__(self, regions: Callable[[int, int], dict[str, Region]]) -> None:
        self._regions = regions

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> ArrangeResult:
        regions = self._regions(size.width, size.height)
        return [
            WidgetPlacement(
                Area(*regions[child.id]), Area(0, 0, 0, 0).offset, child.styles.margin, child, 0, False, False, False
            )
            for child in children
            if child.id in regions
        ]


class Board(Widget):
    """Its children's ids are the names of `layout.PANES`."""

    class Changed(Message):
        """Another pane is shown, or sizes moved: what is visible must be drawn and the choice remembered."""

    class Dragged(Message):
        """A border was let go."""

    def __init__(self, *children: Widget, choices: Choices | None = None) -> None:
        super().__init__(*children, id="board")
        self.choices = choices or Choices()
        self._dragged: tuple[str, int, int] | None = None
        self._tiles = _Tiles(lambda width, height: layout.arrange(self.variant, self.choices, width, height))

    @property
    def layout(self) -> Layout:
        return self._tiles

    @property
    def variant(self) -> Variant:
        return layout.variant(self.app.size.width, self.app.size.height)

    @property
    def visible_panes(self) -> dict[str, tuple[str, ...]]:
        """Visible pane -> all panes of its slot."""
        return layout.shown_panes(self.variant, self.choices)

    def choose(self, choices: Choices) -> None:
        self.choices = choices
        self.arrange_panes()
        self.post_message(self.Changed())

    def arrange_panes(self) -> None:
        """Show the panes that have a place now, hide the others."""
        visible = self.visible_panes
        for child in self.children:
            child.display = child.id in visible
        # A widget keeps how it arranged its children until one of them asks for a layout; asking itself is not enough.
        for child in self.children:
            child.refresh(layout=True)

    def show(self, pane: str) -> None:
        """Bring a pane to the front of its slot (or under the zoom)."""
        zoomed = pane if self.choices.zoomed else ""
        self.choose(replace(self._with_shown(pane), zoomed=zoomed))

    def _with_shown(self, pane: str) -> Choices:
        return replace(self.choices, shown={**self.choices.shown, layout.slot_of(self.variant, pane): pane})

    def zoom(self, pane: str) -> None:
        self.choose(replace(self.choices, zoomed="" if self.choices.zoomed else pane))

    def resize(self, pane: str, columns: float, rows: float) -> None:
        """Make a pane wider (taller) by a share of the board: the border behind it moves, of the last one the border
        before it."""
        here = self.variant
        column, slot = layout.place_of(here, pane)
        widths, heights = dict(self.choices.widths), dict(self.choices.heights)
        shares, every_height = layout.sizes(here, self.choices)
        if columns:
            widths[here.name] = layout.grown(shares, column, columns)
        if rows:
            every = list(every_height)
            every[column] = layout.grown(every[column], slot, rows)
            heights[here.name] = tuple(every)
        self.choose(replace(self.choices, widths=widths, heights=heights))

    # ---- dragging a border ----------------------------------------------------------------------
    def on_mouse_down(self, event: events.MouseDown) -> None:
        x, y = event.screen_x - self.region.x, event.screen_y - self.region.y
        for name, (left, top, width, height) in layout.arrange(self.variant, self.choices, *self.size).items():
            inside_y, inside_x = top <= y < top + height, left <= x < left + width
            if inside_y and x in (left + width - 1, left + width) and left + width < self.size.width:
                self._dragged = (name, left + width, -1)
            elif inside_x and y in (top + height - 1, top + height) and top + height < self.size.height:
                self._dragged = (name, -1, top + height)
            else:
                continue
            self.capture_mouse()
            event.stop()
            return

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragged is None:
            return
        name, edge_x, edge_y = self._dragged
        x, y = event.screen_x - self.region.x, event.screen_y - self.region.y
        if edge_x >= 0 and x != edge_x:
            self.resize(name, (x - edge_x) / max(self.size.width, 1), 0)
            self._dragged = (name, x, -1)
        elif edge_y >= 0 and y != edge_y:
            self.resize(name, 0, (y - edge_y) / max(self.size.height, 1))
            self._dragged = (name, -1, y)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._dragged is not None:
            self._dragged = None
            self.release_mouse()
            self.post_message(self.Dragged())

    def on_resize(self, event: events.Resize) -> None:
        focused = self.screen.focused
        if focused is not None and focused in self.children and str(focused.id) not in self.visible_panes:
            self.choices = self._with_shown(str(focused.id))  # another layout shall not hide what is looked at
        self.arrange_panes()
        self.post_message(self.Changed())
